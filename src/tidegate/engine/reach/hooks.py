"""Hooks in the cluster: how they stand, and how they are let go.

A finalizer holds a hook until it is judged. It is taken off when the verdict is in the journal, or
before the hook is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.reach.outlook import Outlook
from tidegate.engine.reach.writing import delete, read_body
from tidegate.engine.vocabulary import Collect, Spot, Stand
from tidegate.model.journal import Entry
from tidegate.model.objects import Json, Live
from tidegate.model.plan import FINALIZER, HookPolicy, Item, Step
from tidegate.model.reading import listed
from tidegate.world.calls import Verb, Write
from tidegate.world.facts import is_refusal


def stand_of_hook(item: Item, live: Live | None, known: Entry) -> Stand | None:
    """How a hook stands in this rollout; None where what lives must be compared.

    A hook of an earlier rollout does not count. With its default policy it makes room.
    """
    if known.opened == item.digest != "":
        return Stand.FINISHED
    if live is None:
        return Stand.ABSENT
    if (known.uid, known.digest) == (live.uid, item.digest):
        return Stand.SAME
    makes_room = HookPolicy.BEFORE_CREATION in (item.hook or ())
    return Stand.IMMUTABLE if makes_room else None


def let_go(spots: Iterable[Spot], outlook: Outlook) -> Errand[None]:
    """Take our finalizer off these, where they still have it."""
    asks = []
    for spot in spots:
        live = outlook.lives.get(spot)
        kept = _other_finalizers(live)
        if live is not None and kept is not None:
            body = msgspec.json.encode({"metadata": {"finalizers": kept}})
            write = Write(verb=Verb.PATCH, ref=spot.ref, body=body, uid=live.uid)
            asks.append(Ask(spot.cluster, write))
    yield tuple(asks)


def _other_finalizers(live: Live | None) -> list[Json] | None:
    """The finalizers that are not ours; None where ours is not there."""
    held = listed(read_body(live), "metadata", "finalizers") if live is not None else []
    return [one for one in held if one != FINALIZER] if FINALIZER in held else None


def collect(command: Collect, steps: Iterable[Step], outlook: Outlook) -> Errand[tuple[Spot, ...]]:
    """Let all hooks go, and delete those whose policy fits the end of their unit."""
    wanted = {
        **dict.fromkeys(command.passed, HookPolicy.SUCCEEDED),
        **dict.fromkeys(command.failed, HookPolicy.FAILED),
    }
    hooks = [
        (Spot(step.cluster, item.ref), wanted[step.unit] in item.hook)
        for step in steps
        for batch in step.batches
        for item in batch
        if item.hook is not None and step.unit in wanted
    ]
    yield from let_go((spot for spot, _ in hooks), outlook)
    deleted: list[Spot] = []
    for spot in dict.fromkeys(spot for spot, goes in hooks if goes):
        live = outlook.lives.get(spot)
        if live is not None and not is_refusal((yield from delete(spot, live.uid))):
            deleted.append(spot)
    return tuple(deleted)

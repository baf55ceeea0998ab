"""Hooks in the cluster: how they stand, and how they are let go.

A finalizer holds a hook until it is judged. It is taken off when the verdict is in the journal, or
before the hook is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from tidegate.engine.reach.errands import Ask, Errand, Pause
from tidegate.engine.reach.outlook import Outlook
from tidegate.engine.reach.writing import delete, is_leaving, read_body
from tidegate.engine.vocabulary import Collect, Stand, Written
from tidegate.model.journal import Entry
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Live, Propagation, Spot
from tidegate.model.plan import FINALIZER, HookPolicy, Item, Step, items_of
from tidegate.model.reading import listed
from tidegate.world import facts
from tidegate.world.calls import Get, Verb, Write

WITHIN = Ms(30 * SECOND)
"""How long troubles of a cluster may keep us from letting a hook go."""
AGAIN = Ms(SECOND // 5)
OURS = frozenset({FINALIZER})
ENDS = {True: HookPolicy.SUCCEEDED, False: HookPolicy.FAILED}
Now: TypeAlias = Callable[[], Ms]
Passing: TypeAlias = facts.Lost | facts.Throttled | facts.Failed


def stand_of_hook(item: Item, live: Live | None, known: Entry) -> Stand | None:
    """How a hook stands in this rollout; None where what lives must be compared.

    A hook of an earlier rollout does not count. With its default policy, or if it is on its way out
    anyhow, it makes room. What was made since the hook was announced is of this rollout, though
    nobody may have heard of it.
    """
    if item.digest in known.ran:
        return Stand.FINISHED
    if live is None:
        return Stand.ABSENT
    if (known.uid, known.digest) == (live.uid, item.digest):
        return Stand.SAME
    if is_announced(known) and known.uid != live.uid:
        return None
    makes_room = HookPolicy.BEFORE_CREATION in (item.hook or ()) or is_leaving(live)
    return Stand.OBSOLETE if makes_room else None


def is_announced(known: Entry) -> bool:
    """Whether the journal says that a hook is about to be made in the place of `uid`, if any."""
    return known.hook and not known.digest


def announcement(live: Written | None, known: Entry) -> Entry:
    """What is remembered before a hook is made, so that it is known whose it is."""
    uid = "" if live is None else live.uid
    return msgspec.structs.replace(known, digest="", seal="", uid=uid, hook=True)


def let_go(
    spots: Iterable[Spot], outlook: Outlook, now: Now, more: Iterable[str] = ()
) -> Errand[None]:
    """Take our finalizer off these, and `more`, where they still have them."""
    lives = ((spot, outlook.lives.get(spot)) for spot in spots)
    there = {spot: live for spot, live in lives if live is not None}
    freed = yield from _let_go(there, now, frozenset({FINALIZER, *more}))
    for spot, live in freed.items():
        known = outlook.lives.get(spot)
        if known is not None and known.uid == live.uid:
            outlook.wrote(spot, live)


def free(spots: Iterable[Spot], now: Now) -> Errand[None]:
    """The same for hooks that nobody has in view any more."""
    yield from _let_go((yield from _find(dict.fromkeys(spots))), now)


def _let_go(
    lives: dict[Spot, Live], now: Now, ours: frozenset[str] = OURS
) -> Errand[dict[Spot, Live]]:
    """What they are then. Troubles of the cluster are waited out, for a while."""
    ends, freed = now() + WITHIN, dict[Spot, Live]()
    while held := {spot: live for spot, live in lives.items() if _is_held(live, ours)}:
        outcomes = yield tuple(_release(spot, live, ours) for spot, live in held.items())
        left: dict[Spot, Live] = {}
        for (spot, live), outcome in zip(held.items(), outcomes, strict=True):
            if isinstance(outcome, facts.Done) and outcome.live is not None:
                freed[spot] = outcome.live
            elif isinstance(outcome, facts.Conflict | Passing):
                left[spot] = live
        if not left or now() >= ends:
            break
        if any(isinstance(outcome, Passing) for outcome in outcomes):
            yield Pause(Ms(now() + AGAIN))
        lives = yield from _find(left)
    return freed


def _find(known: Mapping[Spot, Live | None]) -> Errand[dict[Spot, Live]]:
    """Those of these that are there, or may be by what was known; another object is not."""
    outcomes = yield tuple(Ask(spot.cluster, Get(spot.ref)) for spot in known)
    found: dict[Spot, Live] = {}
    for (spot, before), outcome in zip(known.items(), outcomes, strict=True):
        live = outcome.live if isinstance(outcome, facts.Done) else before
        is_same = before is None or live is None or before.uid == live.uid
        if live is not None and is_same and not isinstance(outcome, facts.Missing):
            found[spot] = live
    return found


def _is_held(live: Live, ours: frozenset[str]) -> bool:
    return any(one in ours for one in listed(read_body(live), "metadata", "finalizers"))


def _release(spot: Spot, live: Live, ours: frozenset[str]) -> Ask:
    """Leave the finalizers of others as they are, which is why what lives must be the newest."""
    held = listed(read_body(live), "metadata", "finalizers")
    kept = [one for one in held if one not in ours]
    body = msgspec.json.encode({"metadata": {"finalizers": kept}})
    write = Write(verb=Verb.PATCH, ref=spot.ref, body=body, uid=live.uid, version=live.version)
    return Ask(spot.cluster, write)


def collect(
    steps: Iterable[Step], outlook: Outlook, now: Now, ended: Collect
) -> Errand[tuple[Spot, ...]]:
    """Let the hooks of a unit go, and delete those whose policy fits its end, or their own."""
    runs = None if ended.runs is None else {one.ref: one.passed for one in ended.runs}

    def goes(item: Item) -> bool:
        passed = not ended.failed if runs is None else runs.get(item.ref)
        return passed is not None and ENDS[passed] in (item.hook or ())

    hooks = [
        (Spot(step.cluster, item.ref), item.handling.propagation, goes(item))
        for step in steps
        for item in items_of(step)
        if item.hook is not None
    ]
    yield from let_go((spot for spot, *_ in hooks), outlook, now)
    deleted: list[Spot] = []
    for spot, how in {spot: how for spot, how, is_going in hooks if is_going}.items():
        live = outlook.lives.get(spot)
        if live is not None and not facts.is_refusal((yield from _delete(spot, live, how, now))):
            deleted.append(spot)
    return tuple(deleted)


def _delete(spot: Spot, live: Live, how: Propagation, now: Now) -> Errand[facts.Outcome]:
    ends = now() + WITHIN
    while True:
        outcome = yield from delete(spot, live.uid, how, live)
        if not isinstance(outcome, Passing) or now() >= ends:
            return outcome
        yield Pause(Ms(now() + AGAIN))

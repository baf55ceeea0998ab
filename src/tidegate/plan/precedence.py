"""What comes before what, said of units, objects and steps, becomes edges between steps.

Objects of one step that come one after another part it:

a wave with a, b, c and "c after a"   →   `wave 0`: a, b    `wave 0` part 2: c

So do those that wait for what nobody here brings: the rest of their step does not wait with them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

import msgspec

from tidegate.errors import PlanError, foreign
from tidegate.model.objects import Ref, Spot
from tidegate.model.plan import (
    Edge,
    End,
    Item,
    Precedence,
    Step,
    digest_step,
    items_of,
    own_items_of,
)
from tidegate.model.unit import UnitId
from tidegate.plan.cycles import arrange

Pair: TypeAlias = tuple[Spot, Spot]


def make_edges(told: Iterable[Precedence], chains: Mapping[UnitId, list[Step]]) -> list[Edge]:
    """Edges between the steps of these units; steps by their ids may be elsewhere."""
    told = list(told)
    ends = _Ends(chains, told)
    return [
        Edge(before, after, one.because, one.strength, one.where)
        for one in told
        for after in ends.begin(one.after)
        for before in ends.done(one.before)
        if before != after
    ]


class _Ends:
    """Where units and objects begin, and where they are done."""

    def __init__(self, chains: Mapping[UnitId, list[Step]], told: list[Precedence]) -> None:
        self._chains = {
            name: [step.id for step in chain if not step.rescues] for name, chain in chains.items()
        }
        wanted = {end for one in told for end in (one.before, one.after) if isinstance(end, Spot)}
        self._steps: dict[Spot, list[str]] = {spot: [] for spot in wanted}
        steps = (step for chain in chains.values() for step in chain) if wanted else ()
        for step in steps:
            for spot in {Spot(step.cluster, item.ref) for item in own_items_of(step)} & wanted:
                self._steps[spot].append(step.id)
        self._behind: dict[UnitId, list[End]] = {}
        for one in told:
            if isinstance(one.after, UnitId):
                self._behind.setdefault(one.after, []).append(one.before)

    def begin(self, end: End) -> list[str]:
        match end:
            case UnitId():
                return self._chains.get(end, [])[:1]
            case Spot():
                return self._steps[end]
            case _:
                return [end]

    def done(self, end: End) -> list[str]:
        """A unit without objects is done when those are that it waits for."""
        found: dict[str, None] = {}
        seen: set[End] = set()
        pending = [end]
        while pending:
            one = pending.pop()
            if one in seen:
                continue
            seen.add(one)
            last = self._chains.get(one, [])[-1:] if isinstance(one, UnitId) else self.begin(one)
            found |= dict.fromkeys(last)
            if not last and isinstance(one, UnitId):
                pending += reversed(self._behind.get(one, []))
        return list(found)


def pairs_of(told: Iterable[Precedence]) -> list[Pair]:
    """The objects that wait for objects."""
    return [
        (one.before, one.after)
        for one in told
        if isinstance(one.before, Spot) and isinstance(one.after, Spot)
    ]


def part_steps(steps: Iterable[Step], pairs: list[Pair], held: Collection[Spot] = ()) -> list[Step]:
    """The steps of a unit, those parted whose own objects wait for each other, or are held."""
    if not pairs and not held:
        return list(steps)
    return [part for step in steps for part in _parts(step, pairs, held)]


def _parts(step: Step, pairs: list[Pair], held: Collection[Spot]) -> list[Step]:
    inside = dict.fromkeys(Spot(step.cluster, item.ref) for item in items_of(step))
    own = [(before, after) for before, after in pairs if before in inside and after in inside]
    late = {spot for spot in inside if spot in held}
    if not own and len(late) in {0, len(inside)}:
        return [step]
    ordered, circle = arrange(inside, own)
    if circle:
        told = " waits for ".join(f"`{one.ref}`" for one in (*circle, circle[0]))
        raise PlanError("plan.cycle", f"objects wait for each other: {foreign(told)}")
    after: dict[Spot, list[Spot]] = {}
    for before, behind in own:
        after.setdefault(behind, []).append(before)
    levels: dict[Ref, int] = {}
    for spot in ordered:
        earlier = [levels[one.ref] for one in after.get(spot, ())]
        levels[spot.ref] = 1 + max(earlier, default=0 if spot in late else -1)
    first = min(levels.values())
    levels = {ref: level - first for ref, level in levels.items()}
    return [_part(step, number, levels) for number in range(max(levels.values()) + 1)]


def _part(step: Step, number: int, levels: Mapping[Ref, int]) -> Step:
    def is_here(item: Item) -> bool:
        return levels[item.ref] == number

    kept = (tuple(filter(is_here, batch)) for batch in step.batches)
    batches = tuple(batch for batch in kept if batch)
    return msgspec.structs.replace(
        step,
        id=f"{step.id}.{number + 1}" if number else step.id,
        part=number + 1 if number else 0,
        batches=batches,
        digest=digest_step(batches, step.expands),
    )

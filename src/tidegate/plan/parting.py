"""Objects of one step that come one after another: the step is parted.

a wave with a, b, c and "c after a"   →   `wave 0`: a, b    `wave 0` part 2: c
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from tidegate.errors import PlanError, foreign
from tidegate.model.objects import Ref, Spot
from tidegate.model.plan import Item, Precedence, Step, digest_step, items_of
from tidegate.plan.cycles import arrange

Pair: TypeAlias = tuple[Spot, Spot]


def pairs_of(told: Iterable[Precedence]) -> list[Pair]:
    """The objects that wait for objects."""
    return [
        (one.before, one.after)
        for one in told
        if isinstance(one.before, Spot) and isinstance(one.after, Spot)
    ]


def part_steps(steps: Iterable[Step], pairs: list[Pair]) -> list[Step]:
    """The steps of a unit, those parted whose own objects wait for each other."""
    if not pairs:
        return list(steps)
    return [part for step in steps for part in _parts(step, pairs)]


def _parts(step: Step, pairs: list[Pair]) -> list[Step]:
    inside = dict.fromkeys(Spot(step.cluster, item.ref) for item in items_of(step))
    own = [(before, after) for before, after in pairs if before in inside and after in inside]
    if not own:
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
        levels[spot.ref] = 1 + max((levels[one.ref] for one in after.get(spot, ())), default=-1)
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

"""Objects and units whose position among the others changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tidegate.graph.comparison.sides import NodePair, OrderSide
from tidegate.graph.levels import unit_levels
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import FieldPath
from tidegate.model.plans.graph import NO_STEP
from tidegate.model.rollouts.names import step_name
from tidegate.model.units.unit import UnitId
from tidegate.model.views.order_diff import LevelChange, Move, MoveType, Renumbering

ORDER_ANNOTATIONS = (
    "argocd.argoproj.io/sync-wave",
    "argocd.argoproj.io/hook",
    "helm.sh/hook",
    "helm.sh/hook-weight",
)
"""Annotations that set the position of an object, the most specific first."""


class _Ranks(NamedTuple):
    """The positions of an object among the steps of its unit that have common objects."""

    base: int
    head: int


class UnitMoves(NamedTuple):
    """The objects of one unit that were moved, and the waves with other numbers."""

    moves: tuple[Move, ...]
    renumbering: Renumbering | None


def find_moved_objects(
    base: OrderSide, head: OrderSide, pairs: Iterable[NodePair]
) -> Iterator[UnitMoves]:
    """Yield the moved objects of each unit: as few as explain the new order."""
    by_unit: dict[UnitId, list[NodePair]] = {}
    for pair in pairs:
        if pair.head.unit is not None and NO_STEP not in (pair.base.step, pair.head.step):
            by_unit.setdefault(pair.head.unit, []).append(pair)
    for unit, unit_pairs in by_unit.items():
        kept = _longest_kept_order(
            Counter(map(_ranks, unit_pairs)),
            Counter(_ranks(pair) for pair in unit_pairs if not _has_new_name(base, head, pair)),
        )
        moved = [pair for pair in unit_pairs if _ranks(pair) not in kept]
        renamed = dict.fromkeys(
            (_step_name(base, pair.base.step), _step_name(head, pair.head.step))
            for pair in sorted(unit_pairs, key=_ranks)
            if _ranks(pair) in kept and _has_new_name(base, head, pair)
        )
        yield UnitMoves(
            tuple(_object_move(base, head, pair) for pair in moved),
            Renumbering(unit=unit, steps=tuple(renamed)) if renamed else None,
        )


def _ranks(pair: NodePair) -> _Ranks:
    """Return the steps of a pair; the steps of a unit are numbered in their order."""
    return _Ranks(pair.base.step, pair.head.step)


def _longest_kept_order(
    counts: Mapping[_Ranks, int], unchanged: Mapping[_Ranks, int]
) -> frozenset[_Ranks]:
    """Return the positions with most objects that are in the same order on both sides.

    Of equal choices, the one with most unchanged names of steps.
    """
    ordered = sorted(counts)
    best: dict[_Ranks, tuple[int, int]] = {}
    previous: dict[_Ranks, _Ranks | None] = {}
    for ranks in ordered:
        earlier = [other for other in best if other.base < ranks.base and other.head < ranks.head]
        last = max(earlier, key=lambda other: (best[other], other), default=None)
        count, unchanged_count = best[last] if last else (0, 0)
        best[ranks] = (count + counts[ranks], unchanged_count + unchanged.get(ranks, 0))
        previous[ranks] = last
    current = max(best, key=lambda other: (best[other], other), default=None)
    kept: set[_Ranks] = set()
    while current is not None:
        kept.add(current)
        current = previous[current]
    return frozenset(kept)


def _step_name(side: OrderSide, number: int) -> str:
    return step_name(side.graph.steps[number])


def _has_new_name(base: OrderSide, head: OrderSide, pair: NodePair) -> bool:
    return _step_name(base, pair.base.step) != _step_name(head, pair.head.step)


def _object_move(base: OrderSide, head: OrderSide, pair: NodePair) -> Move:
    unit, ref = pair.head.unit, pair.head.ref
    if unit is None or ref is None or pair.base.ref is None:
        raise ValueError(pair.head.name)
    field = _moved_field(base, head, pair)
    unit_id = next(
        (
            child
            for child in head.children.get(unit, ())
            if (child.kind, child.namespace, child.name) == (ref.kind.name, ref.namespace, ref.name)
        ),
        None,
    )
    return Move(
        type=MoveType.OBJECT if unit_id is None else MoveType.UNIT,
        unit=unit if unit_id is None else unit_id,
        name=pair.head.name if unit_id is None else str(unit_id),
        before=_step_name(base, pair.base.step),
        after=_step_name(head, pair.head.step),
        location=head.locate_field(unit, ref, field) or pair.head.location,
        base_location=base.locate_field(unit, pair.base.ref, field) or pair.base.location,
        ref=ref,
    )


def _moved_field(base: OrderSide, head: OrderSide, pair: NodePair) -> FieldPath:
    """Return the annotation that moved an object; empty if none did."""
    if pair.head.unit is None or pair.head.ref is None or pair.base.ref is None:
        return ()
    before = get_mapping(base.find_body(pair.head.unit, pair.base.ref), "metadata", "annotations")
    after = get_mapping(head.find_body(pair.head.unit, pair.head.ref), "metadata", "annotations")
    changed = (name for name in ORDER_ANNOTATIONS if before.get(name) != after.get(name))
    name = next(changed, None)
    return ("metadata", "annotations", name) if name else ()


def find_moved_units(base: OrderSide, head: OrderSide) -> Iterator[Move]:
    """Yield the units with another step in the RollingSync strategy of their ApplicationSet."""
    for unit_id, unit in head.units.items():
        old_unit = base.units.get(unit_id)
        before = old_unit.rolling_sync_step if old_unit else None
        after = unit.rolling_sync_step
        if before is None or after is None or before.number == after.number:
            continue
        yield Move(
            type=MoveType.UNIT,
            unit=unit_id,
            name=str(unit_id),
            before=f"step {before.number}" if before.number else "no step",
            after=f"step {after.number}" if after.number else "no step",
            location=unit.location,
            base_location=old_unit.location if old_unit else None,
        )


def find_level_changes(
    base: OrderSide, head: OrderSide, units: Iterable[UnitId]
) -> Iterator[LevelChange]:
    """Yield the units with another level of dependencies."""
    before, after = unit_levels(base.units.values()), unit_levels(head.units.values())
    for unit in sorted(units):
        levels = before.get(unit, 0), after.get(unit, 0)
        if levels[0] != levels[1]:
            yield LevelChange(unit=unit, before=levels[0], after=levels[1])

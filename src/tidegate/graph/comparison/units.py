"""Units that were added, removed or renamed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from tidegate.graph.comparison.sides import OrderSide, node_key
from tidegate.model.k8s.objects import versionless_key
from tidegate.model.plans.graph import NodeKind
from tidegate.model.units.unit import Unit, UnitId
from tidegate.model.views.order_diff import Removal, StillNeeded, UnitChange, UnitChangeType

FindRemoval = Callable[[UnitId], Removal | None]
"""Returns what happens to the objects of a unit of the base that is gone; None if not known."""
DATA_KINDS = frozenset({("", "PersistentVolumeClaim"), ("", "PersistentVolume")})
"""Kinds whose deletion may delete data."""


def find_unit_changes(
    base: OrderSide, head: OrderSide, find_removal: FindRemoval
) -> Iterator[UnitChange]:
    """Yield the removed units, then the renamed, then the added."""
    removed = _declared_units(base, head)
    added = _declared_units(head, base)
    new_names = _find_renamed(base, head, removed, added)
    base_counts, head_counts = _object_counts(base), _object_counts(head)
    for unit in removed:
        if unit.id not in new_names:
            yield UnitChange(
                type=UnitChangeType.REMOVED,
                unit=unit.id,
                object_count=base_counts[unit.id],
                location=unit.location,
                removal=_with_needs(find_removal(unit.id), unit, head),
            )
    for old, new in new_names.items():
        yield UnitChange(
            type=UnitChangeType.RENAMED,
            unit=new.id,
            old_unit=old,
            object_count=head_counts[new.id],
            location=new.location,
            removal=_with_needs(find_removal(old), base.units[old], head),
        )
    renamed = {unit.id for unit in new_names.values()}
    for unit in added:
        if unit.id not in renamed:
            yield UnitChange(
                type=UnitChangeType.ADDED,
                unit=unit.id,
                object_count=head_counts[unit.id],
                location=unit.location,
            )


def _declared_units(side: OrderSide, other: OrderSide) -> list[Unit]:
    """Return the units of one side alone, without those that are only assumed."""
    return [
        unit for unit in side.units.values() if unit.id not in other.units and not unit.is_implicit
    ]


def _with_needs(removal: Removal | None, unit: Unit, head: OrderSide) -> Removal | None:
    """Return a removal with the deleted objects that others still need, or that hold data."""
    if removal is None or not removal.steps:
        return removal
    needed_by: dict[tuple[str, ...], dict[str, None]] = {}
    for edge in head.graph.edges:
        before, after = head.graph.nodes[edge.before], head.graph.nodes[edge.after]
        if before.kind is NodeKind.EXTERNAL and before.key is not None and not edge.is_optional:
            needed_by.setdefault(before.key, {}).setdefault(after.name)
    cluster = unit.destination.cluster
    needs = (
        StillNeeded(ref=ref, needed_by=tuple(needed_by.get((cluster, *versionless_key(ref)), ())))
        for step in removal.steps
        for ref in step
    )
    return replace(
        removal,
        still_needed=tuple(
            need
            for need in needs
            if need.needed_by or (need.ref.kind.group, need.ref.kind.name) in DATA_KINDS
        ),
    )


def _object_counts(side: OrderSide) -> Counter[UnitId | None]:
    return Counter(node.unit for node in side.graph.nodes if node.kind is NodeKind.OBJECT)


def _find_renamed(
    base: OrderSide, head: OrderSide, removed: list[Unit], added: list[Unit]
) -> dict[UnitId, Unit]:
    """Return the new unit by the id of the old one: of the same kind, with the same objects."""
    base_objects, head_objects = _objects_by_unit(base), _objects_by_unit(head)
    renamed: dict[UnitId, Unit] = {}
    remaining = list(added)
    for old in removed:
        for new in remaining:
            objects = base_objects.get(old.id, frozenset())
            is_same_kind = old.id.kind == new.id.kind and old.destination == new.destination
            if is_same_kind and objects and objects == head_objects.get(new.id):
                renamed[old.id] = new
                remaining.remove(new)
                break
    return renamed


def _objects_by_unit(side: OrderSide) -> dict[UnitId, frozenset[tuple[str, ...]]]:
    """Return the identities of the objects of each unit, without the unit."""
    objects: dict[UnitId, set[tuple[str, ...]]] = {}
    for node in side.graph.nodes:
        if node.kind is NodeKind.OBJECT and node.unit is not None:
            key = node_key(node)
            objects.setdefault(node.unit, set()).add((*key[:1], *key[2:]))
    return {unit: frozenset(keys) for unit, keys in objects.items()}

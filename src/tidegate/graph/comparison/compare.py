"""The whole comparison of two orders."""

from __future__ import annotations

from msgspec.structs import replace

from tidegate.graph.comparison.dependencies import find_dependency_changes
from tidegate.graph.comparison.gates import find_gate_changes
from tidegate.graph.comparison.impact import (
    Times,
    compare_critical_paths,
    find_affected_units,
    find_changed_units,
)
from tidegate.graph.comparison.moves import (
    find_level_changes,
    find_moved_objects,
    find_moved_units,
)
from tidegate.graph.comparison.sides import OrderSide, node_key, pair_nodes
from tidegate.graph.comparison.units import FindRemoval, find_unit_changes
from tidegate.model.views.order_diff import MoveType, OrderDiff


def compare_orders(
    base: OrderSide,
    head: OrderSide,
    *,
    find_removal: FindRemoval,
    base_times: Times,
    head_times: Times,
) -> OrderDiff:
    """Return the differences between two orders.

    Units whose objects are not all known on one side are left out of all but the list of units.
    """
    has_cycle = base.has_cycle or head.has_cycle
    unknown = base.unknown_units | head.unknown_units
    both = [unit for unit in head.units if unit in base.units]
    compared = [unit for unit in both if unit not in unknown]
    nodes = pair_nodes(base, head, compared)
    unit_moves = list(find_moved_objects(base, head, nodes.pairs))
    diff = OrderDiff(
        gates=tuple(find_gate_changes(base, head, nodes, both)),
        moves=(
            *(move for moved in unit_moves for move in moved.moves),
            *find_moved_units(base, head),
        ),
        levels=() if has_cycle else tuple(find_level_changes(base, head, compared)),
        renumbered=tuple(moved.renumbering for moved in unit_moves if moved.renumbering),
        dependencies=tuple(
            find_dependency_changes(
                base, head, compared, (node_key(pair.head) for pair in nodes.pairs)
            )
        ),
        units=tuple(find_unit_changes(base, head, find_removal)),
        not_compared=tuple(unit for unit in sorted({*base.units, *head.units}) if unit in unknown),
        unit_count=len(head.units),
    )
    moved = (move.unit for move in diff.moves if move.type is MoveType.UNIT)
    changed = tuple(dict.fromkeys((*find_changed_units(base, head), *moved)))
    if diff.is_same_order:
        return replace(diff, changed_units=changed)
    return replace(
        diff,
        critical_path=None
        if has_cycle
        else compare_critical_paths(base, head, base_times, head_times),
        changed_units=changed,
        affected_units=find_affected_units(base, head, changed),
    )

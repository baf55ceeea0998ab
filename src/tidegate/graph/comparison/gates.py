"""Gates that were lost or gained, and the units that wait for them.

Each function returns the gates of one side that the other side lacks: called with the base first,
those that were lost, and with the head first, those that were gained.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec

from tidegate.errors import Location
from tidegate.graph.comparison.sides import NodePair, OrderSide, PairedNodes, dependency_keys
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import FieldPath, JsonObject, versionless_key
from tidegate.model.k8s.pods import POD_SPEC_PATHS
from tidegate.model.plans.graph import NO_STEP, GraphNode
from tidegate.model.rollouts.names import step_name
from tidegate.model.units.policy import GateScope
from tidegate.model.units.semantics import ChildGates
from tidegate.model.units.unit import Dependency, Unit, UnitId
from tidegate.model.views.order_diff import Change, GateChange, GateType

PROBES = ("readinessProbe", "startupProbe")


class _Gate(msgspec.Struct, frozen=True, kw_only=True):
    """A gate of one side, before it is located."""

    type: GateType
    unit: UnitId
    subject: str = ""
    node: GraphNode | None = None
    """The object with the gate; None if it is a gate of the unit."""
    field: FieldPath = ()
    """The field of the object, or the item below the field of the unit resource."""
    dependency: Dependency | None = None


def find_gate_changes(
    base: OrderSide, head: OrderSide, nodes: PairedNodes, units: Iterable[UnitId]
) -> list[GateChange]:
    """Return the gates that were lost, then those that were gained.

    `units`: all units of both sides. The gates of a unit are known even if its objects are not.
    """
    units = tuple(units)
    reversed_nodes = PairedNodes(
        tuple(NodePair(pair.head, pair.base) for pair in nodes.pairs),
        nodes.only_head,
        nodes.only_base,
    )
    lost = _missing_gates(base, head, nodes, units)
    gained = _missing_gates(head, base, reversed_nodes, units)
    return [
        *(_gate_change(gate, Change.REMOVED, base, head) for gate in lost),
        *(_gate_change(gate, Change.ADDED, head, base) for gate in gained),
    ]


def _missing_gates(
    side: OrderSide, other: OrderSide, nodes: PairedNodes, units: Iterable[UnitId]
) -> Iterator[_Gate]:
    for unit in units:
        yield from _unit_gates(side, other, unit)
        yield from _dependencies(side.units[unit], other.units[unit])
    yield from _hooks(nodes)
    yield from _health_rules(side, nodes)
    yield from _probes(side, other, nodes)
    yield from _barriers(side, nodes)


def _unit_gates(side: OrderSide, other: OrderSide, unit_id: UnitId) -> Iterator[_Gate]:
    """Yield the gates that the policy of a unit sets."""
    unit, other_unit = side.units[unit_id], other.units[unit_id]
    policy, other_policy = unit.policy, other_unit.policy
    if policy.gates is GateScope.ALL and other_policy.gates is not GateScope.ALL:
        yield _Gate(type=GateType.WAIT, unit=unit_id)
    other_refs = {versionless_key(ref) for ref in other_policy.gating_refs}
    for index, ref in enumerate(policy.gating_refs):
        if versionless_key(ref) not in other_refs and other_policy.gates is not GateScope.ALL:
            yield _Gate(type=GateType.HEALTH_CHECK, unit=unit_id, subject=str(ref), field=(index,))
    other_kinds = {(rule.group, rule.kind) for rule in other_policy.expressions}
    for index, rule in enumerate(policy.expressions):
        if (rule.group, rule.kind) not in other_kinds:
            yield _Gate(type=GateType.EXPRESSION, unit=unit_id, subject=rule.kind, field=(index,))
    is_known = unit_id not in side.unknown_units | other.unknown_units
    gates_children = is_known and policy.semantics.child_gates is not ChildGates.NEVER
    other_gates_children = other_policy.semantics.child_gates is not ChildGates.NEVER
    if gates_children and not other_gates_children and side.children.get(unit_id):
        yield _Gate(type=GateType.CHILDREN, unit=unit_id)
    if other_unit.is_suspended and not unit.is_suspended:
        yield _Gate(type=GateType.RECONCILIATION, unit=unit_id)


def _dependencies(unit: Unit, other_unit: Unit) -> Iterator[_Gate]:
    others = dependency_keys(other_unit)
    for key, dependency in dependency_keys(unit).items():
        if key not in others:
            subject = dependency.unit if dependency.unit is not None else dependency.ref
            yield _Gate(
                type=GateType.DEPENDS_ON, unit=unit.id, subject=str(subject), dependency=dependency
            )


def _hooks(nodes: PairedNodes) -> Iterator[_Gate]:
    changed = (pair.base for pair in nodes.pairs if pair.base.is_hook and not pair.head.is_hook)
    for node in (*changed, *(node for node in nodes.only_base if node.is_hook)):
        if node.unit is not None:
            yield _Gate(type=GateType.HOOK, unit=node.unit, subject=node.name, node=node)


def _health_rules(side: OrderSide, nodes: PairedNodes) -> Iterator[_Gate]:
    """Yield the kinds whose objects the other side accepts as soon as they are applied."""
    gates: dict[tuple[UnitId, str, str], _Gate] = {}
    for pair in nodes.pairs:
        node = pair.base
        is_checked = _is_gated(side, node) and node.has_health_check
        if not is_checked or pair.head.has_health_check or node.ref is None or node.unit is None:
            continue
        kind = node.ref.kind
        gate = _Gate(type=GateType.HEALTH_RULE, unit=node.unit, subject=kind.name, node=node)
        gates.setdefault((node.unit, kind.group, kind.name), gate)
    yield from gates.values()


def _is_gated(side: OrderSide, node: GraphNode) -> bool:
    return node.is_gating and node.step != NO_STEP and side.graph.steps[node.step].is_gated


def _probes(side: OrderSide, other: OrderSide, nodes: PairedNodes) -> Iterator[_Gate]:
    for pair in nodes.pairs:
        node = pair.base
        if node.unit is None or node.ref is None or pair.head.ref is None:
            continue
        if not _is_gated(side, node):
            continue
        containers = dict(_containers(side.find_body(node.unit, node.ref)))
        other_containers = {
            name: container
            for (name, container), _ in _containers_with_paths(
                other.find_body(node.unit, pair.head.ref)
            )
        }
        for name, (container, path) in containers.items():
            for probe in PROBES:
                if probe in container and probe not in other_containers.get(name, container):
                    yield _Gate(
                        type=GateType.PROBE,
                        unit=node.unit,
                        subject=f"{probe} of `{name}` of {node.name}",
                        node=node,
                        field=(*path, probe),
                    )


def _containers(body: JsonObject) -> Iterator[tuple[str, tuple[JsonObject, FieldPath]]]:
    for (name, container), path in _containers_with_paths(body):
        yield name, (container, path)


def _containers_with_paths(
    body: JsonObject,
) -> Iterator[tuple[tuple[str, JsonObject], FieldPath]]:
    """Yield the containers of an object by name, with their paths."""
    for spec in POD_SPEC_PATHS:
        for index, container in enumerate(get_mappings(get_mapping(body, *spec), "containers")):
            yield (get_text(container, "name"), container), (*spec, "containers", index)


def _barriers(side: OrderSide, nodes: PairedNodes) -> Iterator[_Gate]:
    """Yield the steps whose objects all start together with those of the step before."""
    steps: dict[UnitId, dict[int, set[int]]] = {}
    for pair in nodes.pairs:
        if pair.base.unit is not None and NO_STEP not in (pair.base.step, pair.head.step):
            other_steps = steps.setdefault(pair.base.unit, {}).setdefault(pair.base.step, set())
            other_steps.add(pair.head.step)
    for unit, other_steps_by_step in steps.items():
        ordered = sorted(other_steps_by_step)
        for first, second in pairwise(ordered):
            merged = other_steps_by_step[first] | other_steps_by_step[second]
            if len(merged) == 1:
                names = [step_name(side.graph.steps[number]) for number in (first, second)]
                node = next(
                    pair.base
                    for pair in nodes.pairs
                    if (pair.base.unit, pair.base.step) == (unit, second)
                )
                yield _Gate(
                    type=GateType.BARRIER,
                    unit=unit,
                    subject=f"between {names[0]} and {names[1]}",
                    node=node,
                )


def _gate_change(gate: _Gate, change: Change, side: OrderSide, other: OrderSide) -> GateChange:
    here, there = _locate(gate, side, is_owner=True), _locate(gate, other, is_owner=False)
    start = gate.node.step if gate.node is not None else side.last_steps.get(gate.unit, NO_STEP)
    waiting = side.units_after([start])
    if gate.type in {GateType.DEPENDS_ON, GateType.CHILDREN}:
        waiting = tuple(sorted({gate.unit, *waiting}))
    is_removed = change is Change.REMOVED
    return GateChange(
        change=change,
        type=gate.type,
        unit=gate.unit,
        subject=gate.subject,
        waiting_units=waiting,
        location=there if is_removed else here,
        base_location=here if is_removed else None,
    )


def _locate(gate: _Gate, side: OrderSide, *, is_owner: bool) -> Location | None:
    """Return the location of a gate on a side; where it is missing, of what is closest to it."""
    unit = side.units[gate.unit]
    if gate.type is GateType.HEALTH_RULE and gate.node is not None and gate.node.ref is not None:
        kind = gate.node.ref.kind
        return side.locate_health_rule(kind.group, kind.name) or unit.location
    if gate.node is not None and gate.node.ref is not None:
        return side.locate_field(gate.unit, gate.node.ref, gate.field) or unit.location
    if is_owner and gate.dependency is not None and gate.dependency.location is not None:
        return side.locate_line(gate.dependency.location)
    field = gate.field if is_owner else ()
    return side.locate_gate(gate.unit, gate.type, field) or unit.location

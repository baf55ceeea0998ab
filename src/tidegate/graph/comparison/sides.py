"""One side of a comparison, and the objects that are on both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.errors import Location
from tidegate.model.k8s.objects import FieldPath, JsonObject, Ref, versionless_key
from tidegate.model.plans.graph import NO_STEP, Graph, GraphNode, NodeKind
from tidegate.model.plans.plan import Plan
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.unit import Dependency, Unit, UnitId
from tidegate.model.views.order_diff import GateType

HASH_SUFFIX = lazy_regex(r"-[bcdfghkmt2456789]{10}$")
"""The hash that kustomize adds to the names of generated ConfigMaps and Secrets."""
LocateField: TypeAlias = Callable[[UnitId, Ref | None, FieldPath], Location | None]
"""Finds a field, or its closest parent, in an object of a unit; without a reference, in the unit
resource.
"""
LocateGate: TypeAlias = Callable[[UnitId, GateType, FieldPath], Location | None]
"""Finds the field of a unit resource that sets a gate, and an item below it."""
LocateHealthRule: TypeAlias = Callable[[str, str], Location | None]
"""Finds the health rule for a group and a kind."""
LocateLine: TypeAlias = Callable[[Location], Location]
"""Returns a location at the line of its field."""
NodeKey: TypeAlias = tuple[str, ...]


class OrderSide(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The order of the units of one revision."""

    graph: Graph
    plan: Plan
    units: Mapping[UnitId, Unit]
    unknown_units: frozenset[UnitId] = frozenset()
    """Units whose objects are not all known."""
    has_cycle: bool = False
    """Whether declared dependencies form a cycle: then the order is not known."""
    find_body: Callable[[UnitId, Ref], JsonObject]
    """Returns an object of a unit as its file has it; empty if it is in none."""
    locate_field: LocateField
    locate_gate: LocateGate
    locate_health_rule: LocateHealthRule
    locate_line: LocateLine

    @cached_property
    def first_steps(self) -> dict[UnitId, int]:
        """The first step of each unit."""
        steps: dict[UnitId, int] = {}
        for step in self.graph.steps:
            steps.setdefault(step.unit, step.number)
        return steps

    @cached_property
    def last_steps(self) -> dict[UnitId, int]:
        """The last step of each unit."""
        return {step.unit: step.number for step in self.graph.steps}

    @cached_property
    def children(self) -> dict[UnitId, list[UnitId]]:
        """The units that each unit creates."""
        children: dict[UnitId, list[UnitId]] = {}
        for unit in self.units.values():
            if unit.parent is not None:
                children.setdefault(unit.parent, []).append(unit.id)
        return children

    def steps_after(self, steps: Iterable[int]) -> set[int]:
        """Return the steps that start only after at least one of these steps."""
        pending = [step for step in dict.fromkeys(steps) if step != NO_STEP]
        reached: set[int] = set()
        while pending:
            for step in self.graph.next_steps[pending.pop()]:
                if step not in reached:
                    reached.add(step)
                    pending.append(step)
        return reached

    def units_after(self, steps: Iterable[int]) -> tuple[UnitId, ...]:
        """Return the units whose first step starts only after one of these steps."""
        reached = self.steps_after(steps)
        return tuple(sorted(unit for unit, step in self.first_steps.items() if step in reached))


class NodePair(NamedTuple):
    """An object that is on both sides in one unit."""

    base: GraphNode
    head: GraphNode


class PairedNodes(NamedTuple):
    """The objects of the units that are compared."""

    pairs: tuple[NodePair, ...]
    only_base: tuple[GraphNode, ...]
    """Objects of units of both sides that only the base has."""
    only_head: tuple[GraphNode, ...]
    """Objects of units of both sides that only the head has."""


def dependency_keys(unit: Unit) -> dict[tuple[str, ...], Dependency]:
    """Return the declared dependencies of a unit by what they wait for."""
    return {_dependency_key(dependency): dependency for dependency in unit.dependencies}


def _dependency_key(dependency: Dependency) -> tuple[str, ...]:
    ref = versionless_key(dependency.ref) if dependency.ref else ()
    return (str(dependency.unit or ""), *ref, dependency.ready_when, dependency.state)


def node_key(node: GraphNode) -> NodeKey:
    """Return what identifies an object, without its version and without a hash in its name."""
    unit = str(node.unit) if node.unit is not None else ""
    if node.kind is not NodeKind.OBJECT or node.ref is None:
        return (node.kind, unit, node.cluster, node.name)
    group, kind, namespace, name = versionless_key(node.ref)
    return (node.kind, unit, node.cluster, group, kind, namespace, HASH_SUFFIX.sub("", name))


def pair_nodes(base: OrderSide, head: OrderSide, units: Iterable[UnitId]) -> PairedNodes:
    """Pair the objects of these units. A hook of several phases is paired phase by phase."""
    compared = set(units)
    base_nodes, head_nodes = _nodes_by_key(base, compared), _nodes_by_key(head, compared)
    pairs: list[NodePair] = []
    only_base: list[GraphNode] = []
    only_head: list[GraphNode] = []
    for key in dict.fromkeys((*base_nodes, *head_nodes)):
        before, after = base_nodes.get(key, []), head_nodes.get(key, [])
        same_phase = [
            NodePair(old, new)
            for old in before
            for new in after
            if _phase(base, old) == _phase(head, new)
        ][: min(len(before), len(after))]
        paired = (
            {pair.base.number for pair in same_phase},
            {pair.head.number for pair in same_phase},
        )
        remaining_before = [node for node in before if node.number not in paired[0]]
        remaining_after = [node for node in after if node.number not in paired[1]]
        pairs += same_phase
        pairs += map(NodePair, remaining_before, remaining_after)
        only_base += remaining_before[len(remaining_after) :]
        only_head += remaining_after[len(remaining_before) :]
    return PairedNodes(tuple(pairs), tuple(only_base), tuple(only_head))


def _nodes_by_key(side: OrderSide, units: set[UnitId]) -> dict[NodeKey, list[GraphNode]]:
    nodes: dict[NodeKey, list[GraphNode]] = {}
    for node in side.graph.nodes:
        if node.kind is NodeKind.OBJECT and node.unit in units:
            nodes.setdefault(node_key(node), []).append(node)
    return nodes


def _phase(side: OrderSide, node: GraphNode) -> str:
    return "" if node.step == NO_STEP else side.graph.steps[node.step].phase

"""The graph of a repository: units, objects, external dependencies, and who needs whom.

It contains two orders. `order` is the declared order of steps: waves, phases, stages, parents,
dependsOn. `edges` is what nodes need from each other: references, producers, and depends-on
annotations of objects. Comparing both shows what cannot work.

Nodes and steps are identified by number: their index in `Graph.nodes` and `Graph.steps`.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.errors import Location
from tidegate.model.k8s.objects import Ref, versionless_key
from tidegate.model.operators.rows import Effect, RequiredState
from tidegate.model.plans.plan import Edge
from tidegate.model.times import Ms
from tidegate.model.units.unit import Strength, UnitId

NO_STEP = -1
"""The step of a node that no step writes."""
ObjectKey: TypeAlias = tuple[str, str, str, str, str]
"""A cluster, and the identity of an object across the versions of its kind."""

DEFAULT_CLASS = "(default)"
"""Placeholder name of the default storage class."""


class NodeKind(StrEnum):
    UNIT = "unit"
    OBJECT = "object"
    """An object that a unit of the repository writes."""
    EXTERNAL = "outside"
    """A required object that no unit of the repository provides."""


class EdgeKind(StrEnum):
    """Why one node needs another."""

    PARENT = "parent"
    """A unit is created by another unit."""
    DEPENDS_ON = "dependsOn"
    """A unit declares the dependency."""
    ANNOTATION = "depends-on"
    """An annotation of an object declares it: Tidegate's, or the one of cli-utils."""
    CHANGE_RULE = "change rule"
    """Annotations of kapp declare it."""
    REFERENCE = "reference"
    """An object references another one in a field."""
    NAMESPACE = "namespace"
    DEFINITION = "definition"
    """A custom resource needs its CRD."""
    OPERATOR = "operator"
    """A custom resource needs the operator that serves its kind."""
    HOST = "host"
    """A text names a Service as a host."""
    SELECTOR = "selects"
    """A Service selects the pods of a workload."""


class HealthCoverage(NamedTuple):
    """Health rules of a unit for a kind."""

    has_health_check: bool = True
    """Whether a rule knows when its objects are ready."""
    ready_without_status: bool = False
    """Whether an object counts as ready while it has no status, as before its operator runs."""


class GraphNode(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A unit, an object that a unit writes in one phase, or an external dependency."""

    number: int
    kind: NodeKind
    name: str
    """Display name, unique among nodes of its kind in one cluster and unit."""
    cluster: str = ""
    unit: UnitId | None = None
    """The unit itself, or the unit that writes the object."""
    ref: Ref | None = None
    """The object of the node.

    For a unit, its unit resource; for an undefined kind, its CustomResourceDefinition. None for an
    external operator.
    """
    step: int = NO_STEP
    """The number of the step that writes it."""
    location: Location | None = None
    is_gating: bool = True
    """Whether the steps after its step wait for it."""
    has_health_check: bool = True
    """Whether the rules of its unit know when it is ready.

    If not, it gates only until it is applied.
    """
    ready_without_status: bool = False
    """Whether it counts as ready until its operator has written a status."""
    is_hook: bool = False
    """Whether it is a hook."""
    is_task: bool = False
    """Whether it runs to completion."""

    @property
    def key(self) -> ObjectKey | None:
        return (self.cluster, *versionless_key(self.ref)) if self.ref else None


class GraphStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of the plan, with the numbers of its nodes; `id` is the id in the plan."""

    number: int
    id: str
    unit: UnitId
    phase: str
    wave: int
    stage: str
    part: int
    nodes: tuple[int, ...]
    is_last: bool
    is_gated: bool
    """Whether the steps after it wait for its objects, with the semantics of its unit."""
    is_fenced: bool = False
    """Whether a verdict about its objects must refer to the applied version."""


class GraphEdge(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A dependency: node `after` needs node `before`."""

    before: int
    after: int
    alternative: int
    """Edges of one node with the same number are alternatives: one of them is enough."""
    kind: EdgeKind
    strength: Strength
    effect: Effect = Effect.BLOCKED
    required_state: RequiredState = RequiredState.EXISTS
    """The required state: existing, ready or serving."""
    field: tuple[str | int, ...] = ()
    """The path in `after` that declares the dependency."""
    required_object: Ref | None = None
    """The required object, if `before` only creates it or serves it."""
    key: str = ""
    """The required key or port of the object."""
    is_key_missing: bool = False
    """Whether the existing object is known to lack the key."""
    is_optional: bool = False
    """Whether `after` works without it. The same holds if `effect` is none."""
    must_be_absent: bool = False
    """Whether the object must not exist."""
    is_enforced: bool = True
    """Whether the semantics of the unit enforce the edge."""
    is_certain: bool = True
    """Whether the edge is certain.

    A guess is a string that is a host name if such a Service exists.
    """
    location: Location | None = None
    """The location that declares the edge, usually that of `after`."""


class UnparsedAnnotation(msgspec.Struct, frozen=True, gc=False):
    """A part of an ordering annotation that cannot be parsed."""

    node: int
    annotation: str
    text: str


class Graph(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The graph, with indexes that are computed on first use."""

    nodes: tuple[GraphNode, ...] = ()
    steps: tuple[GraphStep, ...] = ()
    order: tuple[Edge, ...] = ()
    edges: tuple[GraphEdge, ...] = ()
    incomplete_units: tuple[UnitId, ...] = ()
    """Units whose objects are not all known. A missing dependency may be one of theirs."""
    unparsed_annotations: tuple[UnparsedAnnotation, ...] = ()
    """Ordering annotations that cannot be parsed."""
    services_without_endpoints: frozenset[int] = frozenset()
    """Services without matching pods in the repository, for which no operator could create pods."""

    @cached_property
    def unit_nodes(self) -> dict[UnitId, GraphNode]:
        return {node.unit: node for node in self.nodes if node.kind is NodeKind.UNIT and node.unit}

    @cached_property
    def dependency_edges(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the indexes in `edges` of its dependencies."""
        indexes: list[list[int]] = [[] for _ in self.nodes]
        for index, edge in enumerate(self.edges):
            indexes[edge.after].append(index)
        return tuple(map(tuple, indexes))

    @cached_property
    def dependent_edges(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the indexes in `edges` of its dependents."""
        indexes: list[list[int]] = [[] for _ in self.nodes]
        for index, edge in enumerate(self.edges):
            indexes[edge.before].append(index)
        return tuple(map(tuple, indexes))

    @cached_property
    def step_numbers(self) -> dict[str, int]:
        """The numbers of steps by their ids in the plan."""
        return {step.id: step.number for step in self.steps}

    @cached_property
    def next_steps(self) -> tuple[tuple[int, ...], ...]:
        """For each step, the steps that follow it directly."""
        following: list[list[int]] = [[] for _ in self.steps]
        numbers = self.step_numbers
        for edge in self.order:
            if edge.before in numbers and edge.after in numbers:
                following[numbers[edge.before]].append(numbers[edge.after])
        return tuple(map(tuple, following))


class WaitLink(msgspec.Struct, frozen=True, kw_only=True):
    """One link of a chain: the waiter, the reason, and the location that declares it."""

    waiter: str
    reason: str
    location: Location | None = None
    node: int | None = None
    """The number of the waiting node."""
    step: int | None = None
    """The number of the waiting step."""
    edge: int | None = None
    """The index in `Graph.edges`."""


class Cycle(msgspec.Struct, frozen=True):
    """A dependency cycle: each link waits for the next one, and the last for the first."""

    links: tuple[WaitLink, ...]


class CriticalStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step on the critical path: its duration, its end, and its slowest object."""

    step: int
    duration: Ms
    finishes_at: Ms
    slowest_node: int
    """The number of the slowest node, or -1 if the step waits for nothing."""


class UnmetDependencyType(StrEnum):
    """The type of a dependency that the repository does not provide."""

    DEFINITION = "definition"
    NAMESPACE = "namespace"
    OPERATOR = "operator"
    STORAGE_CLASS = "storage class"
    ISSUER = "issuer"
    STORE = "secret store"
    SECRET = "Secret"  # noqa: S105 - it is a kind
    CONFIG_MAP = "ConfigMap"
    KEY = "key"
    PORT = "port"
    SERVICE = "Service"
    PODS = "pods"
    ACCOUNT = "service account"
    UNIT = "unit"
    OTHER = "object"


class Dependent(msgspec.Struct, frozen=True, kw_only=True):
    """A node that needs an unmet dependency, with the field and the location."""

    node: int
    name: str
    ref: Ref | None = None
    """The object; for a unit, its unit resource."""
    is_unit: bool = False
    field: tuple[str | int, ...] = ()
    location: Location | None = None
    effect: Effect = Effect.BLOCKED


class UnmetDependency(msgspec.Struct, frozen=True, kw_only=True):
    """A dependency that the repository does not provide, and all nodes that need it."""

    type: UnmetDependencyType
    name: str
    node: int
    """The node that represents it; for a key, the object that lacks it."""
    cluster: str = ""
    ref: Ref | None = None
    key: str = ""
    dependents: tuple[Dependent, ...] = ()

"""The graph of a repository: units, objects, what lies outside, and who needs whom.

Two orders stand beside each other. `order` is what somebody declared between steps: waves, phases,
stages, parents, dependsOn. `edges` is what nodes need of each other: references, producers, and
what annotations declare between objects. Whoever compares them finds what cannot work.

Nodes and steps are known by their numbers: their places in `Graph.nodes` and `Graph.steps`.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.errors import Place
from tidegate.model.moment import Ms
from tidegate.model.objects import Ref, identity
from tidegate.model.operators import Effect, Until
from tidegate.model.plan import Edge
from tidegate.model.unit import Strength, UnitId

NOWHERE = -1
"""The step of a node that no step writes."""
SpotKey: TypeAlias = tuple[str, str, str, str, str]
"""A cluster, and what is the same in all versions of an object's kind."""


class NodeKind(StrEnum):
    UNIT = "unit"
    OBJECT = "object"
    """Something that a unit of the repository writes."""
    OUTSIDE = "outside"
    """Something that is needed and that nobody in the repository brings."""


class Tie(StrEnum):
    """Why one node needs another."""

    PARENT = "parent"
    """A unit is brought by another one."""
    DEPENDS_ON = "dependsOn"
    """A unit says so."""
    ANNOTATION = "depends-on"
    """An annotation of an object says so: ours, or the one of cli-utils."""
    CHANGE_RULE = "change rule"
    """kapp's annotations say so."""
    REFERENCE = "reference"
    """An object names another one in a field."""
    NAMESPACE = "namespace"
    DEFINITION = "definition"
    """A custom resource needs the definition of its kind."""
    OPERATOR = "operator"
    """A custom resource needs whoever serves its kind."""
    HOST = "host"
    """A text names a Service as a host."""
    SELECTS = "selects"
    """A Service answers through the pods of a workload."""


class NodeCheck(NamedTuple):
    """What the rules of a unit can say of objects of a kind.

    `checked`: when they are ready. `unseen`: they call one ready as long as nobody has written a
    status, as when its operator does not run yet.
    """

    checked: bool = True
    unseen: bool = False


class GraphNode(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A unit, an object as one unit writes it in one phase, or a thing outside the repository.

    `unit`: the unit that it is, or that writes it. `ref`: an object's; of a unit, its own object's;
    of a kind that nobody defines, that of its CustomResourceDefinition; an operator outside has
    none. `step`: the number of the step that writes it. `gates`: what comes behind its step waits
    for it; unless it is `checked`, that is over as soon as it is applied: by the rules of its unit
    nobody can say when it is ready. `unseen`: it counts as ready until its operator looks at it.
    `hook`: it is run, not kept. `is_task`: it ends by itself.
    `name`: for people, and unique among nodes of its kind in one cluster and unit.
    """

    number: int
    kind: NodeKind
    name: str
    cluster: str = ""
    unit: UnitId | None = None
    ref: Ref | None = None
    step: int = NOWHERE
    where: Place | None = None
    gates: bool = True
    checked: bool = True
    unseen: bool = False
    hook: bool = False
    is_task: bool = False

    @property
    def spot(self) -> SpotKey | None:
        return (self.cluster, *identity(self.ref)) if self.ref else None


class GraphStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of the plan, with its objects by number; `id` is the plan's."""

    number: int
    id: str
    unit: UnitId
    phase: str
    wave: int
    stage: str
    part: int
    nodes: tuple[int, ...]
    last: bool
    is_gated: bool
    """Whether what comes behind it waits for its objects, by the rules of its unit."""
    is_fenced: bool = False
    """Whether a verdict about them must speak of what was applied."""


class GraphEdge(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """`after` needs `before`.

    `want`: edges of one node with the same number are alternatives: one of them is enough.
    `field`: the path in `after` that says so. `through`: what is needed, where `before` is not that
    itself but makes it, or answers for it; with `key`, that key of it, or that port. `until`: what
    is asked of it: to be there, ready, or serving. A node does without what is `optional`; so it
    does where the `effect` is nothing. `in_force`: the rules that the unit runs by obey it.
    """

    before: int
    after: int
    want: int
    tie: Tie
    strength: Strength
    effect: Effect = Effect.HELD
    until: Until = Until.EXISTS
    field: tuple[str | int, ...] = ()
    through: Ref | None = None
    key: str = ""
    lacks_key: bool = False
    """What is there is known not to have it."""
    optional: bool = False
    absent: bool = False
    """It is asked not to be there."""
    in_force: bool = True
    certain: bool = True
    """Else it is a guess: a word that may be a host, and is one where such a Service is there."""
    where: Place | None = None
    """Where that is said: the place of `after`, unless something else says it."""


class Misreading(msgspec.Struct, frozen=True, gc=False):
    """A part of an annotation that says what comes before what, in words that nobody can read."""

    node: int
    annotation: str
    said: str


class Graph(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All of it, and indexes that are made when they are first asked for.

    `unread`: units of which not all objects are known; what is missing may be theirs. `misread`:
    annotations that declare nothing, though they should. `unanswered`: Services for which no pods
    of the repository answer, where nobody in it could make some.
    """

    nodes: tuple[GraphNode, ...] = ()
    steps: tuple[GraphStep, ...] = ()
    order: tuple[Edge, ...] = ()
    edges: tuple[GraphEdge, ...] = ()
    unread: tuple[UnitId, ...] = ()
    misread: tuple[Misreading, ...] = ()
    unanswered: frozenset[int] = frozenset()

    @cached_property
    def units(self) -> dict[UnitId, GraphNode]:
        return {one.unit: one for one in self.nodes if one.kind is NodeKind.UNIT and one.unit}

    @cached_property
    def objects(self) -> dict[SpotKey, tuple[int, ...]]:
        """By cluster and identity, the nodes that write an object: several, if several units do."""
        found: dict[SpotKey, list[int]] = {}
        for one in self.nodes:
            if one.kind is NodeKind.OBJECT and one.spot:
                found.setdefault(one.spot, []).append(one.number)
        return {spot: tuple(numbers) for spot, numbers in found.items()}

    @cached_property
    def needs(self) -> tuple[tuple[int, ...], ...]:
        """By node, the places in `edges` of what it needs."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for at, edge in enumerate(self.edges):
            found[edge.after].append(at)
        return tuple(map(tuple, found))

    @cached_property
    def needed_by(self) -> tuple[tuple[int, ...], ...]:
        """By node, the places in `edges` of those that need it."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for at, edge in enumerate(self.edges):
            found[edge.before].append(at)
        return tuple(map(tuple, found))

    @cached_property
    def step_numbers(self) -> dict[str, int]:
        """The numbers of steps by the plan's ids."""
        return {one.id: one.number for one in self.steps}

    @cached_property
    def behind(self) -> tuple[tuple[int, ...], ...]:
        """By step, the steps that start after it, one edge away."""
        found: list[list[int]] = [[] for _ in self.steps]
        numbers = self.step_numbers
        for edge in self.order:
            if edge.before in numbers and edge.after in numbers:
                found[numbers[edge.before]].append(numbers[edge.after])
        return tuple(map(tuple, found))


class WaitLink(msgspec.Struct, frozen=True, kw_only=True):
    """One link of a chain: who waits, for whom or what, and where that is said.

    `node` and `step` are those who wait, by number; `edge` is the place in `Graph.edges`.
    """

    who: str
    why: str
    where: Place | None = None
    node: int | None = None
    step: int | None = None
    edge: int | None = None


class Circle(msgspec.Struct, frozen=True):
    """Those that wait for each other: each link for the next one, and the last for the first."""

    waits: tuple[WaitLink, ...]


class CriticalStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step on the critical path: how long it takes, when it is over, and what takes so long.

    `slowest` is a node by its number, or -1 where nothing is waited for.
    """

    step: int
    takes: Ms
    until: Ms
    slowest: int


class LackKind(StrEnum):
    """What kind of thing a repository takes for granted."""

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


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Who needs something that is missing: a node by its number, the field, the place.

    `ref`: the object that it is; of a unit, its own.
    """

    node: int
    name: str
    ref: Ref | None = None
    is_unit: bool = False
    field: tuple[str | int, ...] = ()
    where: Place | None = None
    effect: Effect = Effect.HELD


class MissingThing(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that nobody in the repository brings, and all who need it.

    `node`: what stands for it in the graph; of a key, the object that has not got it.
    """

    kind: LackKind
    name: str
    node: int
    cluster: str = ""
    ref: Ref | None = None
    key: str = ""
    askers: tuple[Asker, ...] = ()

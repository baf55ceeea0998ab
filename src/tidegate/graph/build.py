"""Units, their manifests, a plan and rows become a graph.

Two passes over the objects: who brings what, then what each asks for. Each costs what the objects
and their references do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from tidegate.errors import Place
from tidegate.graph.answering import find_unanswered
from tidegate.graph.asking import AskedFor, ask_for_groups, asked_by
from tidegate.graph.declared import misread_in, obeys_annotations
from tidegate.graph.ground import GraphGround
from tidegate.graph.placing import StepIndex, place_of
from tidegate.graph.supply import Supplier, Supply
from tidegate.knowledge.naming import Body, Pods
from tidegate.model.graph import (
    NOWHERE,
    Graph,
    GraphEdge,
    GraphNode,
    GraphStep,
    Misreading,
    NodeCheck,
    NodeKind,
    Tie,
)
from tidegate.model.manifest import Manifest, Manifests
from tidegate.model.objects import Kind, Ref
from tidegate.model.operators import Effect, Until
from tidegate.model.plan import Deed, Plan
from tidegate.model.reading import text
from tidegate.model.unit import Strength, Unit, UnitId


def build_graph(
    wanted: Iterable[Manifests],
    plan: Plan,
    ground: GraphGround,
    *,
    unread: Iterable[UnitId] = (),
    check: AskCheck | None = None,
    owns: Mapping[UnitId, Body] = MappingProxyType({}),
) -> Graph:
    """The graph of these units, in the order that the plan gives them.

    The plan may be of a part: what stands in no step of it is in no step of the graph. Without
    `check`, the rules of each unit can tell of every kind when an object is ready. `owns` are
    the own objects of units that nobody brings: what these name, their units need.
    """
    growing = _Growing(ground, tuple(wanted), plan, check)
    growing.place()
    growing.tie_units()
    growing.tie_objects()
    growing.tie_owns(owns)
    known = tuple(dict.fromkeys((*unread, *growing.unknown)))
    return Graph(
        nodes=tuple(growing.nodes),
        steps=growing.steps(),
        order=plan.edges,
        edges=tuple(growing.edges),
        unread=known,
        misread=tuple(growing.misread),
        unanswered=frozenset() if known else growing.unanswered(),
    )


MOST_ALTERNATIVES = 8
AskCheck = Callable[[Unit, Body], NodeCheck]
"""What the rules of a unit can say of objects of this body's kind."""


class _Body(NamedTuple):
    """An object as the second pass needs it."""

    number: int
    unit: Unit
    manifest: Manifest
    body: Body
    pods: Pods | None


class _Growing:
    """A graph on its way."""

    def __init__(
        self,
        ground: GraphGround,
        wanted: Sequence[Manifests],
        plan: Plan,
        check: AskCheck | None,
    ) -> None:
        self.nodes: list[GraphNode] = []
        self.edges: list[GraphEdge] = []
        self.misread: list[Misreading] = []
        self.unknown: list[UnitId] = [one.unit.id for one in wanted if not one.is_known]
        self._ground = ground
        self._wanted = wanted
        self._plan = plan
        self._supply = Supply(ground)
        self._ask_check = check
        self._checks: dict[tuple[str, str, str, str], NodeCheck] = {}
        self._stands = StepIndex(plan)
        self._bodies: list[_Body] = []
        self._units: dict[UnitId, int] = {}
        self._outside: dict[tuple[str, ...], int] = {}
        self._wants = 0

    def place(self) -> None:
        """A node for each unit and each of its objects; all suppliers are known after it."""
        own_kinds = {kind: group for group, kind in self._ground.engines}
        for one in self._wanted:
            unit = one.unit
            self._units[unit.id] = self._add_unit(unit)
            for manifest in one.manifests:
                self._add_object(unit, manifest)
        for name, number in self._units.items():
            if name.kind in own_kinds:
                kind = (own_kinds[name.kind], name.kind)
                self._supply.take_unit(number, name.cluster, kind, name.namespace, name.name)

    def _add_unit(self, unit: Unit) -> int:
        number = len(self.nodes)
        self.nodes.append(
            GraphNode(
                number=number,
                kind=NodeKind.UNIT,
                name=str(unit.id),
                cluster=unit.destination.cluster,
                unit=unit.id,
                where=unit.where,
            )
        )
        return number

    def _add_object(self, unit: Unit, manifest: Manifest) -> None:
        number, ref = len(self.nodes), manifest.ref
        body: Body = msgspec.json.decode(manifest.body)
        pods = self._ground.naming.pods_of(body, ref.kind)
        step, gates = self._stands.of(unit, manifest)
        check = self._check(unit, ref.kind, body)
        self.nodes.append(
            GraphNode(
                number=number,
                kind=NodeKind.OBJECT,
                name=str(ref),
                cluster=unit.destination.cluster,
                unit=unit.id,
                ref=ref,
                step=step,
                where=place_of(manifest.origin) or unit.where,
                gates=gates,
                checked=check.checked,
                unseen=check.unseen,
                hook=manifest.hook is not None,
                is_task=pods is not None and pods.row.is_task and not pods.row.later,
            )
        )
        self._bodies.append(_Body(number, unit, manifest, body, pods))
        if manifest.deed is not Deed.DELETE:
            self._supply.take(number, unit.destination.cluster, ref.kind, body, pods)

    def _check(self, unit: Unit, kind: Kind, body: Body) -> NodeCheck:
        """Asked once for each kind and each set of rules."""
        if self._ask_check is None:
            return NodeCheck()
        key = (unit.policy.rules, unit.policy.semantics.name, kind.group, kind.name)
        if key not in self._checks:
            self._checks[key] = self._ask_check(unit, body)
        return self._checks[key]

    def tie_units(self) -> None:
        """Who brings whom, and what units say they depend on."""
        for unit in (one.unit for one in self._wanted):
            after, where = self._units[unit.id], unit.where
            if unit.parent in self._units:
                before = self._units[unit.parent]
                self._tie(before, after, Tie.PARENT, Strength.HARD, where, until=Until.EXISTS)
            for one in unit.dependencies:
                if one.unit is not None:
                    self._tie_dependency(one.unit, unit, after, one.where)
                elif one.ref is not None:
                    cluster = unit.destination.cluster
                    suppliers = self._supply.find(cluster, *_parts(one.ref))
                    self._want(
                        _Side(after, unit, one.where or where),
                        AskedFor(
                            one.ref,
                            Tie.DEPENDS_ON,
                            until=Until.READY,
                            strength=Strength.HARD,
                        ),
                        suppliers,
                    )

    def _tie_dependency(self, name: UnitId, unit: Unit, after: int, where: Place | None) -> None:
        if name in self._units:
            before = self._units[name]
        else:
            key = ("unit", str(name))
            before = self._outside_node(key, str(name), unit.id.cluster, None, name)
        self._tie(before, after, Tie.DEPENDS_ON, Strength.HARD, where, until=Until.READY)

    def tie_objects(self) -> None:
        """What each object asks for."""
        for one in self._bodies:
            node, ref = self.nodes[one.number], one.manifest.ref
            side = _Side(one.number, one.unit, node.where)
            asked = asked_by(ref, one.body, one.pods, node.cluster, self._supply, self._ground)
            for need, suppliers in asked:
                self._want(side, need, suppliers)
            self.misread += [
                Misreading(one.number, wrong.annotation, wrong.said)
                for wrong in misread_in(one.body, ref.namespace)
            ]
        units = {one.number: one.unit for one in self._bodies}
        named = [(one.number, one.body) for one in self._bodies]
        for before, after, annotation in ask_for_groups(named):
            self._tie(
                before,
                after,
                Tie.CHANGE_RULE,
                Strength.HARD,
                self.nodes[after].where,
                until=Until.READY,
                field=("metadata", "annotations", annotation),
                in_force=obeys_annotations(units[after]),
            )

    def _want(self, side: _Side, asked: AskedFor, suppliers: Sequence[Supplier]) -> None:
        """One edge for each that brings it, or one to what nobody brings."""
        others = self._nearest(side, suppliers)
        if suppliers and not others:
            return  # it brings that itself
        number = self._wants
        self._wants += 1
        if not others:
            others = [Supplier(self._missing_node(asked, self.nodes[side.number]), is_made=False)]
        for one in others:
            is_made = one.is_made or asked.tie in (Tie.OPERATOR, Tie.DEFINITION)
            lacks = asked.key and one.keys is not None and asked.key not in one.keys
            self.edges.append(
                GraphEdge(
                    before=one.number,
                    after=side.number,
                    want=number,
                    tie=asked.tie,
                    strength=asked.strength,
                    effect=asked.effect,
                    until=asked.until,
                    field=asked.field,
                    through=asked.ref if is_made else None,
                    key=asked.key,
                    lacks_key=bool(lacks),
                    optional=asked.optional,
                    absent=asked.absent,
                    certain=asked.certain,
                    in_force=asked.strength is Strength.SOFT or _obeys(side.unit, asked.tie),
                    where=side.where,
                )
            )

    def unanswered(self) -> frozenset[int]:
        """Services whose pods nobody brings."""
        answered = {edge.after for edge in self.edges if edge.tie is Tie.SELECTS}
        bodies = (
            (one.number, one.unit.destination.cluster, one.manifest.ref, one.body)
            for one in self._bodies
            if one.number not in answered
        )
        return find_unanswered(bodies, self._ground)

    def tie_owns(self, owns: Mapping[UnitId, Body]) -> None:
        """What units need by their own objects, where nobody writes these."""
        for one in (one.unit for one in self._wanted if one.unit.id in owns):
            body, number = owns[one.id], self._units[one.id]
            kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
            ref = Ref(kind, one.id.namespace, one.id.name)
            if self._supply.find(one.id.cluster, *_parts(ref))[0].number == number:
                asked = asked_by(ref, body, None, one.id.cluster, self._supply, self._ground)
                for need, suppliers in asked:
                    self._want(_Side(number, one, one.where), need, suppliers)

    def _nearest(self, side: _Side, suppliers: Sequence[Supplier]) -> list[Supplier]:
        """Those of others. Of many, its own unit's, or those that come first: one is enough."""
        others = [one for one in suppliers if one.number != side.number]
        if len(others) <= MOST_ALTERNATIVES:
            return others
        own = [one for one in others if self.nodes[one.number].unit == side.unit.id]
        first = sorted(others, key=lambda one: self.nodes[one.number].step)
        return (own or first)[:MOST_ALTERNATIVES]

    def _missing_node(self, asked: AskedFor, asker: GraphNode) -> int:
        if asked.ref is None:
            key: tuple[str, ...] = ("operator", asker.cluster, asked.name)
            return self._outside_node(key, f"operator {asked.name}", asker.cluster, None, None)
        group, kind, namespace, name = _parts(asked.ref)
        if self._ground.is_wide(group, kind):
            namespace = ""
        ref = Ref(asked.ref.kind, namespace, name)
        key = (asker.cluster, group, kind, namespace, name)
        return self._outside_node(key, str(ref), asker.cluster, ref, None)

    def _outside_node(
        self,
        key: tuple[str, ...],
        name: str,
        cluster: str,
        ref: Ref | None,
        unit: UnitId | None,
    ) -> int:
        if key not in self._outside:
            self._outside[key] = len(self.nodes)
            self.nodes.append(
                GraphNode(
                    number=len(self.nodes),
                    kind=NodeKind.OUTSIDE,
                    name=name,
                    cluster=cluster,
                    ref=ref,
                    unit=unit,
                )
            )
        return self._outside[key]

    def _tie(  # noqa: PLR0913 - what an edge is made of
        self,
        before: int,
        after: int,
        tie: Tie,
        strength: Strength,
        where: Place | None,
        *,
        until: Until,
        field: tuple[str | int, ...] = (),
        in_force: bool = True,
    ) -> None:
        self.edges.append(
            GraphEdge(
                before=before,
                after=after,
                want=self._wants,
                tie=tie,
                strength=strength,
                effect=Effect.HELD,
                until=until,
                field=field,
                in_force=in_force,
                where=where,
            )
        )
        self._wants += 1

    def steps(self) -> tuple[GraphStep, ...]:
        members: list[list[int]] = [[] for _ in self._plan.steps]
        for node in self.nodes:
            if node.step != NOWHERE:
                members[node.step].append(node.number)
        rules = {one.id: one.policy.semantics for one in self._plan.units}
        return tuple(
            GraphStep(
                number=at,
                id=step.id,
                unit=step.unit,
                phase=step.phase,
                wave=step.wave,
                stage=step.stage,
                part=step.part,
                nodes=tuple(members[at]),
                last=step.last,
                is_gated=not step.last or rules[step.unit].gates_last,
                is_fenced=rules[step.unit].fenced,
            )
            for at, step in enumerate(self._plan.steps)
        )


class _Side(NamedTuple):
    """Who asks, and where that is said."""

    number: int
    unit: Unit
    where: Place | None


def _parts(ref: Ref) -> tuple[str, str, str, str]:
    return (ref.kind.group, ref.kind.name, ref.namespace, ref.name)


def _obeys(unit: Unit, tie: Tie) -> bool:
    return tie is not Tie.ANNOTATION or obeys_annotations(unit)

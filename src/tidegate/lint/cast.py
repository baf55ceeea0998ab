"""The graph and the scene together: which objects wait for what, and which of that never comes."""

from __future__ import annotations

from functools import cached_property, lru_cache

import msgspec
from msgspec.structs import replace

from tidegate.lint.scene import Actor, Coming, LintScene
from tidegate.lint.words import name
from tidegate.model.graph import NOWHERE, Graph, GraphEdge, GraphNode, GraphStep, NodeKind, Tie
from tidegate.model.operators import Effect, Until


class WaitCase(msgspec.Struct, frozen=True):
    """An object that wants something, the edge that says so, who brings it, and why it never comes.

    `way`: what stands between, in words. `by_luck`: it comes where the object is not looked at in
    time, and so counts as ready.
    """

    actor: Actor
    edge: GraphEdge
    maker: Actor | None
    wanted: str
    way: tuple[str, ...] = ()
    by_luck: bool = False


class Cast:
    """Made once for a scene; rules share it."""

    def __init__(self, scene: LintScene) -> None:
        self.scene = scene
        self._gated = {step.number: step.is_gated for step in scene.graph.steps}

    @property
    def graph(self) -> Graph:
        return self.scene.graph

    @cached_property
    def actors(self) -> dict[int, Actor]:
        """By node, the object with its text."""
        phases = {step.number: step.phase for step in self.graph.steps}
        known = {
            (one.unit.id, one.identity, one.manifest.phase.value): one for one in self.scene.actors
        }
        loose = {(one.unit.id, one.identity): one for one in self.scene.actors}
        found: dict[int, Actor] = {}
        for node in self.graph.nodes:
            if node.kind is not NodeKind.OBJECT or node.unit is None or node.spot is None:
                continue
            phase = phases.get(node.step, "sync")
            actor = known.get((node.unit, node.spot, phase)) or loose.get((node.unit, node.spot))
            if actor is not None:
                found[node.number] = actor
        return found

    def waits(self, node: GraphNode) -> bool:
        """Whether what comes behind its step waits until it is ready."""
        return node.gates and node.checked

    @cached_property
    def wants(self) -> dict[int, list[GraphEdge]]:
        """What nodes cannot do without, and who brings it: any of them is enough."""
        found: dict[int, list[GraphEdge]] = {}
        for edge in self.graph.edges:
            if is_asked(edge):
                found.setdefault(edge.want, []).append(edge)
        return found

    @cached_property
    def deadlocks(self) -> list[WaitCase]:
        """Objects whose step starts, and that wait for what comes only behind it; each once."""
        found = self._stuck(self.scene.course)
        if self.scene.luckless is not None:
            more = self._stuck(self.scene.luckless)
            found.update(
                {key: replace(one, by_luck=True) for key, one in more.items() if key not in found}
            )
        return [*found.values()]

    def _stuck(self, course: Coming) -> dict[tuple[int, int], WaitCase]:
        """By who waits, and who brings what it waits for."""
        found: dict[tuple[int, int], WaitCase] = {}
        for want, edges in self.wants.items():
            node = self.graph.nodes[edges[0].after]
            actor = self.actors.get(node.number)
            if course.meets(want) or actor is None or node.step == NOWHERE:
                continue
            if not course.starts(node.step) or not self._matters(node, edges[0]):
                continue
            way = course.way(want, node.step)
            if way is not None:
                edge = self.graph.edges[way.edge]
                maker = self._maker(edge)
                case = WaitCase(actor, edge, maker, self.wanted(edge), way.between)
                found.setdefault((node.number, id(maker)), case)
        return found

    def _matters(self, node: GraphNode, edge: GraphEdge) -> bool:
        """Whether its step is not over without it."""
        return edge.effect is Effect.REFUSED or (
            self._gated.get(node.step, False) and self.waits(node)
        )

    def _maker(self, edge: GraphEdge) -> Actor | None:
        return self.actors.get(edge.before)

    def wanted(self, edge: GraphEdge) -> str:
        """What is wanted, in words."""
        if edge.through is not None:
            return name(edge.through)
        node = self.graph.nodes[edge.before]
        return name(node.ref) if node.ref is not None else f"`{node.name}`"

    @cached_property
    def _mentioned(self) -> dict[int, list[GraphEdge]]:
        """All that is named, also what its namer is well without."""
        found: dict[int, list[GraphEdge]] = {}
        for edge in self.graph.edges:
            if is_asked(edge) or (edge.tie is Tie.REFERENCE and not edge.optional):
                found.setdefault(edge.want, []).append(edge)
        return found

    @cached_property
    def inversions(self) -> list[WaitCase]:
        """Objects that are applied before what they need, and recover; each want once."""
        order = self.scene.order
        found: list[WaitCase] = []
        for want, edges in self._mentioned.items():
            node = self.graph.nodes[edges[0].after]
            actor = self.actors.get(node.number)
            if actor is None or not self._meets(want):
                continue
            makers = [(edge, self._maker(edge)) for edge in edges]
            steps = self.graph.steps
            if node.step == NOWHERE or edges[0].effect is Effect.REFUSED:
                continue
            early = steps[node.step]
            behind = [
                edge
                for edge, maker in makers
                if maker is not None
                and (late := self.graph.nodes[edge.before].step) != NOWHERE
                and order.is_behind(steps[late].id, early.id)
                and not _is_one_turn(steps[late], early)
            ]
            if len(behind) == len(edges):
                edge = behind[0]
                found.append(WaitCase(actor, edge, self._maker(edge), self.wanted(edge)))
        return found

    def _meets(self, want: int) -> bool:
        """Whether it comes for sure."""
        return (self.scene.luckless or self.scene.course).meets(want)

    @cached_property
    def races(self) -> list[WaitCase]:
        """Tasks that fail without something that comes, and that nobody brings before them."""
        return self._unordered(Effect.FAILS)

    @cached_property
    def refusals(self) -> list[WaitCase]:
        """What a server refuses without something that comes, and that nobody brings before it."""
        return self._unordered(Effect.REFUSED)

    def _unordered(self, effect: Effect) -> list[WaitCase]:
        steps = self.graph.steps
        found: list[WaitCase] = []
        for want, edges in self.wants.items():
            first = edges[0]
            node = self.graph.nodes[first.after]
            actor = self.actors.get(node.number)
            if first.effect is not effect or actor is None or node.step == NOWHERE:
                continue
            if not self.scene.course.meets(want):
                continue
            late = steps[node.step].id
            makers = [(edge, one) for edge in edges for one in self._answering(edge)]
            unordered = [
                (edge, one)
                for edge, one in makers
                if one.step != NOWHERE and not self._is_sure(steps[one.step].id, late, one)
            ]
            if unordered and len(unordered) == len(makers):
                edge, one = unordered[0]
                maker = self.actors.get(one.number)
                found.append(WaitCase(actor, edge, maker, self.wanted(edge)))
        return found

    def _is_sure(self, early: str, late: str, maker: GraphNode) -> bool:
        """Whether one is ready before the step of the other begins."""
        is_before = self.scene.order.is_behind(late, early)
        return is_before and self._gated.get(maker.step, False) and self.waits(maker)

    def _answering(self, edge: GraphEdge) -> list[GraphNode]:
        """Who must be ready so that it is there; behind a Service, its workloads."""
        node = self.graph.nodes[edge.before]
        behind = [
            self.graph.nodes[self.graph.edges[at].before]
            for at in self.graph.needs[edge.before]
            if self.graph.edges[at].tie is Tie.SELECTS
        ]
        return behind or [node]


def _is_one_turn(late: GraphStep, early: GraphStep) -> bool:
    """Whether two are one to whoever wrote them: units stand before what is applied with them."""
    return (late.unit, late.phase, late.wave, late.stage) == (
        early.unit,
        early.phase,
        early.wave,
        early.stage,
    )


def is_asked(edge: GraphEdge) -> bool:
    """Whether an object cannot do without it."""
    by_units = edge.tie in {Tie.PARENT, Tie.DEPENDS_ON, Tie.SELECTS}
    is_idle = edge.optional or edge.absent or edge.effect is Effect.NOTHING
    return edge.in_force and not by_units and not is_idle


def needs_ready(edge: GraphEdge) -> bool:
    """Whether who brings it must be ready, and not only there."""
    return edge.through is not None or edge.until is not Until.EXISTS


@lru_cache(maxsize=2)
def cast_of(scene: LintScene) -> Cast:
    """The cast of a scene; rules that ask one after another share it."""
    return Cast(scene)

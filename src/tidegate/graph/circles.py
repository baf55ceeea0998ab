"""Those that wait for each other, as the shortest circle there is, in words."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from tidegate.documents.document import path_text
from tidegate.graph.happening import (
    ANSWERED,
    APPLIED,
    BEGUN,
    MET,
    OVER,
    READY,
    UNIT,
    Moment,
    Moments,
    take_apart,
)
from tidegate.model.graph import Circle, Graph, GraphStep, NodeKind, Tie, WaitLink
from tidegate.model.plan import Because

PAIRS = {ANSWERED: "answers when {} is ready", UNIT: "depends on {}"}
"""What one node waits for of another one, in words."""
MOST_STARTS = 100
"""From so many of those in one knot the shortest way round is looked for."""


def find_circles(graph: Graph) -> tuple[Circle, ...]:
    """One circle for each knot of moments that wait for each other; none where all can happen."""
    happening = take_apart(graph)
    stuck = happening.stuck()
    if not stuck:
        return ()
    knots = _knots(happening, stuck)
    return tuple(_in_words(graph, _shortest(happening, knot)) for knot in knots)


def _knots(happening: Moments, stuck: set[Moment]) -> Iterator[set[Moment]]:
    """The moments of which each waits for each."""
    walk = _Walk(happening, stuck)
    for start in sorted(stuck):
        for knot in walk.from_(start):
            moment = next(iter(knot))
            if len(knot) > 1 or moment in walk.others(moment):
                yield knot


class _Walk:
    """Tarjan's walk, without a stack of calls."""

    def __init__(self, happening: Moments, stuck: set[Moment]) -> None:
        self._happening = happening
        self._stuck = stuck
        self._index: dict[Moment, int] = {}
        self._low: dict[Moment, int] = {}
        self._open: dict[Moment, None] = {}

    def others(self, moment: Moment) -> list[Moment]:
        return [one for one, _ in self._happening.needs(moment) if one in self._stuck]

    def from_(self, start: Moment) -> Iterator[set[Moment]]:
        """The knots that are closed on the way from a moment where nobody has been."""
        if start in self._index:
            return
        path = [self._enter(start)]
        while path:
            moment, rest = path[-1]
            following = self._next(moment, rest)
            if following is not None:
                path.append(self._enter(following))
                continue
            path.pop()
            if path:
                above = path[-1][0]
                self._low[above] = min(self._low[above], self._low[moment])
            if self._low[moment] == self._index[moment]:
                yield set(self._close(moment))

    def _enter(self, moment: Moment) -> tuple[Moment, Iterator[Moment]]:
        self._index[moment] = self._low[moment] = len(self._index)
        self._open[moment] = None
        return moment, iter(self.others(moment))

    def _next(self, moment: Moment, rest: Iterator[Moment]) -> Moment | None:
        for one in rest:
            if one not in self._index:
                return one
            if one in self._open:
                self._low[moment] = min(self._low[moment], self._index[one])
        return None

    def _close(self, last: Moment) -> Iterator[Moment]:
        while True:
            moment, _ = self._open.popitem()
            yield moment
            if moment == last:
                return


def _shortest(happening: Moments, knot: set[Moment]) -> list[tuple[Moment, int | None]]:
    """The shortest way from a moment back to itself: each with the edge to the next one."""
    best: list[tuple[Moment, int | None]] = []
    for start in sorted(knot)[:MOST_STARTS]:
        found = _round(happening, knot, start, len(best) or len(knot) + 1)
        if found:
            best = found
    return best


def _round(
    happening: Moments, knot: set[Moment], start: Moment, less_than: int
) -> list[tuple[Moment, int | None]]:
    came: dict[Moment, tuple[Moment, int | None]] = {}
    pending = deque([(start, 0)])
    while pending:
        moment, length = pending.popleft()
        if length + 1 >= less_than:
            return []
        for other, edge in happening.needs(moment):
            if other not in knot or other in came:
                continue
            came[other] = (moment, edge)
            if other == start:
                return _back(came, start)
            pending.append((other, length + 1))
    return []


def _back(
    came: dict[Moment, tuple[Moment, int | None]], start: Moment
) -> list[tuple[Moment, int | None]]:
    moment, edge = came[start]
    found = [(moment, edge)]
    while moment != start:
        moment, edge = came[moment]
        found.append((moment, edge))
    return found[::-1]


def _in_words(graph: Graph, moments: list[tuple[Moment, int | None]]) -> Circle:
    """Each wait as a person would say it; what only leads from one to the next is left out."""
    waits = []
    for at, (moment, edge) in enumerate(moments):
        following = moments[(at + 1) % len(moments)][0]
        wait = _wait(graph, moment, following, edge)
        if wait is not None:
            waits.append(wait)
    first = min(range(len(waits)), key=lambda at: (not _asks(graph, waits[at]), waits[at].who))
    return Circle((*waits[first:], *waits[:first]))


def _asks(graph: Graph, wait: WaitLink) -> bool:
    """Whether it is a node that asks for something: the best beginning of a story."""
    return wait.edge is not None and graph.edges[wait.edge].after == wait.node


def _wait(graph: Graph, moment: Moment, following: Moment, at: int | None) -> WaitLink | None:
    (what, number), (then, other) = moment, following
    if what == MET:
        return _brought(graph, at, then)
    if then == MET:
        return _needs(graph, number, other, at)
    if (what, then) == (BEGUN, OVER):
        return _follows(graph, graph.steps[number], graph.steps[other])
    if (what, then) == (OVER, READY):
        step, node = graph.steps[number], graph.nodes[other]
        why = f"is over when {node.name} is ready"
        return WaitLink(who=name_of_step(step), why=why, step=number)
    if (what, then) == (APPLIED, BEGUN):
        node, why = graph.nodes[number], f"is applied in {name_of_step(graph.steps[other])}"
        return WaitLink(who=node.name, why=why, where=node.where, node=number, step=other)
    if what in PAIRS:
        node, by = graph.nodes[number], graph.nodes[other]
        edge = graph.edges[at] if at is not None else None
        where = edge.where if edge else node.where
        why = PAIRS[what].format(by.name)
        return WaitLink(who=node.name, why=why, where=where, node=number, edge=at)
    return None


def _needs(graph: Graph, number: int, want: int, at: int | None) -> WaitLink:
    """What an object waits for: the object that it names, whoever brings it."""
    edges = [graph.edges[one] for one in graph.needs[number] if graph.edges[one].want == want]
    edge, node = edges[0], graph.nodes[number]
    target = edge.through or graph.nodes[edge.before].ref
    named = str(target) if target else graph.nodes[edge.before].name
    said = f" ({path_text(edge.field)})" if edge.field else ""
    match edge.tie:
        case Tie.NAMESPACE | Tie.DEFINITION:
            why = f"is refused without {named}"
        case Tie.OPERATOR:
            why = f"is ready when its operator works, {graph.nodes[edge.before].name}"
        case Tie.HOST:
            why = f"calls {named}{said}"
        case _:
            why = f"waits for {named}{said}"
    return WaitLink(who=node.name, why=why, where=node.where, node=number, edge=at)


def _brought(graph: Graph, at: int | None, then: int) -> WaitLink | None:
    """Who brings what is waited for, where that is somebody else."""
    edge = graph.edges[at] if at is not None else None
    if edge is None or edge.through is None or edge.tie is Tie.OPERATOR:
        return None
    node = graph.nodes[edge.before]
    if node.kind is not NodeKind.OBJECT or then not in (READY, APPLIED):
        return None
    made = f"is made when {node.name} is ready" if then == READY else f"comes with {node.name}"
    return WaitLink(who=str(edge.through), why=made, where=node.where, node=edge.before, edge=at)


def _follows(graph: Graph, step: GraphStep, before: GraphStep) -> WaitLink:
    edge = next(one for one in graph.order if one.before == before.id and one.after == step.id)
    word = "" if edge.because in (Because.WAVE, Because.PHASE, Because.STAGE) else edge.because
    said = f" ({word})" if word else ""
    why = f"starts when {name_of_step(before)} is over{said}"
    return WaitLink(who=name_of_step(step), why=why, step=step.number)


def name_of_step(step: GraphStep) -> str:
    """`wave 2 of Application/argocd/shop`."""
    if step.stage:
        return f"{step.stage} of {step.unit}"
    phase = "" if step.phase == "sync" else f"{step.phase} "
    return f"{phase}wave {step.wave} of {step.unit}"

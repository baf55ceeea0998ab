"""What can come about at all: the least set of facts that follow from each other.

    a step starts       when every step before it is done
    an object is there  when its step has started, and all that the server asks for is there
    an object is ready  when it is there, and all that it waits for is there, or is ready
    a step is done      when its objects are there, and those that gate are ready
    a unit is done      when its steps are

A Service answers when one of those behind it is ready. Of several that can bring what is wanted,
one is enough. What does not follow never happens: that is
a deadlock, whatever time it is given. The cost is linear in steps, edges and references.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from tidegate.model.graph import NOWHERE, Graph, GraphEdge, GraphNode, NodeKind, Tie
from tidegate.model.operators import Effect, Until

Waits = Callable[[GraphNode], bool]
"""Whether what comes behind the step of an object waits until that is ready."""
ASKED = frozenset({Tie.REFERENCE, Tie.NAMESPACE, Tie.DEFINITION, Tie.OPERATOR, Tie.HOST})


class FactKind(IntEnum):
    """What a fact says."""

    START = 0
    """A step has started."""
    DONE = 1
    """A step is done."""
    THERE = 2
    """An object has been written."""
    READY = 3
    """An object, or a unit, is ready."""
    SERVING = 4
    """A Service answers: it is there, and one of those behind it is ready."""
    MET = 5
    """What somebody wants is there."""


class Fact(NamedTuple):
    """Something that comes about: of a step, a node or a want, by its number."""

    kind: FactKind
    number: int


def start(step: int) -> Fact:
    return Fact(FactKind.START, step)


def done(step: int) -> Fact:
    return Fact(FactKind.DONE, step)


def there(node: int) -> Fact:
    return Fact(FactKind.THERE, node)


def ready(node: int) -> Fact:
    return Fact(FactKind.READY, node)


def serving(node: int) -> Fact:
    return Fact(FactKind.SERVING, node)


def met(want: int) -> Fact:
    return Fact(FactKind.MET, want)


@dataclass(frozen=True)
class Reach:
    """The facts that come about, and what each of the others would need."""

    graph: Graph
    facts: frozenset[Fact]
    wants: dict[int, list[GraphEdge]]
    needs: dict[Fact, tuple[Fact, ...]]

    def starts(self, node: GraphNode) -> bool:
        return node.step == NOWHERE or start(node.step) in self.facts

    def why_not(self, fact: Fact, back_to: Fact) -> list[Fact]:
        """The shortest chain of facts that never come, from one to another; each needs the next."""
        came: dict[Fact, Fact] = {}
        pending = deque([fact])
        while pending:
            one = pending.popleft()
            for need in self.needs.get(one, ()):
                if need in self.facts or need in came:
                    continue
                came[need] = one
                if need == back_to:
                    return _chain(came, fact, need)
                pending.append(need)
        return []


def _chain(came: dict[Fact, Fact], first: Fact, last: Fact) -> list[Fact]:
    found = [last]
    while found[-1] != first or len(found) == 1:
        found.append(came[found[-1]])
        if found[-1] == first:
            break
    return found[::-1]


def reach(graph: Graph, waits: Waits, *, lacking: Iterable[int] = ()) -> Reach:
    """What comes about. `lacking`: nodes outside that are not there."""
    return _Reaching(graph, waits, frozenset(lacking)).run()


class _Reaching:
    """Facts on their way: each knows how many of its needs are still missing."""

    def __init__(self, graph: Graph, waits: Waits, lacking: frozenset[int]) -> None:
        self._graph = graph
        self._waits = waits
        self._lacking = lacking
        self._needs: dict[Fact, tuple[Fact, ...]] = {}
        self._any: dict[Fact, tuple[Fact, ...]] = {}
        self._wants: dict[int, list[GraphEdge]] = {}
        self._behind: dict[int, list[Fact]] = {}

    def run(self) -> Reach:
        for edge in self._graph.edges:
            if is_asked(edge):
                self._wants.setdefault(edge.want, []).append(edge)
            elif edge.tie is Tie.SELECTS:
                self._behind.setdefault(edge.after, []).append(ready(edge.before))
        self._rule_steps()
        self._rule_nodes()
        self._rule_wants()
        return Reach(self._graph, self._solve(), self._wants, {**self._needs, **self._any})

    def _rule_steps(self) -> None:
        numbers = self._graph.step_numbers
        before: dict[int, list[Fact]] = {}
        for edge in self._graph.order:
            if edge.before in numbers and edge.after in numbers:
                before.setdefault(numbers[edge.after], []).append(done(numbers[edge.before]))
        for step in self._graph.steps:
            self._needs[start(step.number)] = tuple(before.get(step.number, ()))
            nodes = [self._graph.nodes[one] for one in step.nodes]
            waited: list[Fact] = [there(one.number) for one in nodes]
            waited += [ready(one.number) for one in nodes if step.is_gated and self._waits(one)]
            self._needs[done(step.number)] = (start(step.number), *waited)

    def _rule_nodes(self) -> None:
        refused: dict[int, list[Fact]] = {}
        held: dict[int, list[Fact]] = {}
        for want, edges in self._wants.items():
            first = edges[0]
            where = refused if first.effect is Effect.REFUSED else held
            where.setdefault(first.after, []).append(met(want))
        steps: dict[object, list[Fact]] = {}
        for step in self._graph.steps:
            steps.setdefault(step.unit, []).append(done(step.number))
        for node in self._graph.nodes:
            number = node.number
            if node.kind is NodeKind.OUTSIDE:
                never: tuple[Fact, ...] = (there(number),) if number in self._lacking else ()
                self._needs[there(number)] = never
                self._needs[ready(number)] = (there(number),)
            elif node.kind is NodeKind.UNIT:
                self._needs[there(number)] = ()
                self._needs[ready(number)] = tuple(steps.get(node.unit, ()))
            else:
                begun: tuple[Fact, ...] = () if node.step == NOWHERE else (start(node.step),)
                self._needs[there(number)] = (*begun, *refused.get(number, ()))
                self._needs[ready(number)] = (there(number), *held.get(number, ()))
            self._rule_service(number)

    def _rule_service(self, number: int) -> None:
        """Those behind a Service that nobody here knows are taken to be there."""
        answers: Fact = met(-1 - number)
        behind = self._behind.get(number)
        self._needs[serving(number)] = (there(number), *([answers] if behind else ()))
        if behind:
            self._any[answers] = tuple(behind)

    def _rule_wants(self) -> None:
        for want, edges in self._wants.items():
            self._any[met(want)] = tuple(dict.fromkeys(map(provided, edges)))

    def _solve(self) -> frozenset[Fact]:
        left = {fact: len(set(needs)) for fact, needs in self._needs.items()}
        users: dict[Fact, list[Fact]] = {}
        for table in (self._needs, self._any):
            for fact, needs in table.items():
                for need in set(needs):
                    users.setdefault(need, []).append(fact)
        found: set[Fact] = set()
        pending: list[Fact] = [fact for fact, count in left.items() if not count]
        while pending:
            fact = pending.pop()
            if fact in found:
                continue
            found.add(fact)
            for user in users.get(fact, ()):
                if user in self._any:
                    pending.append(user)
                    continue
                left[user] -= 1
                if not left[user]:
                    pending.append(user)
        return frozenset(found)


def is_asked(edge: GraphEdge) -> bool:
    """Whether a node cannot do without it."""
    is_kept = edge.tie in ASKED or edge.in_force
    by_units = edge.tie in {Tie.PARENT, Tie.DEPENDS_ON}
    return (
        is_kept
        and not by_units
        and not (edge.optional or edge.absent or edge.effect is Effect.NOTHING)
    )


def provided(edge: GraphEdge) -> Fact:
    """What an edge asks of who brings it; what is made of something is there when that is ready."""
    if edge.until is Until.SERVING and edge.through is None:
        return serving(edge.before)
    waits = edge.through is not None or edge.until is not Until.EXISTS
    return ready(edge.before) if waits else there(edge.before)

"""Lookups for the lint rules: reachability of milestones, and locations of fields."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import cached_property

import msgspec

from tidegate.documents.document import format_path
from tidegate.errors import Location
from tidegate.graph.cycles import format_finish, format_start, format_waiting, is_unit_end
from tidegate.graph.milestones import (
    APPLIED,
    FINISHED,
    READY,
    SATISFIED,
    SERVING,
    STARTED,
    Milestone,
    Milestones,
    build_milestones,
)
from tidegate.lint.context import WaitChain
from tidegate.lint.names import object_name
from tidegate.lint.rule import FieldRef
from tidegate.model.finding import Finding
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.plans.graph import NO_STEP, Graph
from tidegate.model.plans.plan import EdgeReason
from tidegate.model.views.lint import Excerpt
from tidegate.workspace.locations import FieldLocator, SourceFile

NAMED_MILESTONES = {
    APPLIED: ("is applied", "is applied"),
    READY: ("becomes ready", "is ready"),
    SERVING: ("becomes ready", "is ready"),
}
"""Milestones of objects: the verb of an object that waits, and of one that is awaited."""


class GraphReachability:
    """Milestones of a graph, and those that are never reached."""

    def __init__(
        self, graph: Graph, milestones: Milestones, satisfied: frozenset[int] = frozenset()
    ) -> None:
        self._graph = graph
        self._milestones = milestones
        self._satisfied = satisfied
        self._stuck = milestones.blocked({(SATISFIED, requirement) for requirement in satisfied})

    @classmethod
    def from_graph(cls, graph: Graph, *, optimistic: bool = True) -> GraphReachability:
        return cls(graph, build_milestones(graph, is_optimistic=optimistic))

    def with_met(self, requirements: Iterable[int]) -> GraphReachability:
        if not self._stuck:
            return self
        return GraphReachability(self._graph, self._milestones, self._satisfied | {*requirements})

    def step_starts(self, step: int) -> bool:
        return step == NO_STEP or (STARTED, step) not in self._stuck

    def is_met(self, requirement: int) -> bool:
        return (SATISFIED, requirement) not in self._stuck

    def wait_chain(self, requirement: int, step: int) -> WaitChain | None:
        """Return the shortest chain from a requirement to the end of a step, or None."""
        start, goal = (SATISFIED, requirement), (FINISHED, step)
        previous: dict[Milestone, tuple[Milestone, int | None]] = {}
        pending = deque([start])
        while pending:
            current = pending.popleft()
            for milestone, edge in self._milestones.prerequisites(current):
                if milestone not in self._stuck or milestone in previous:
                    continue
                previous[milestone] = (current, edge)
                if milestone == goal:
                    return self._build_chain(previous, start, goal)
                pending.append(milestone)
        return None

    def _build_chain(
        self,
        previous: dict[Milestone, tuple[Milestone, int | None]],
        start: Milestone,
        goal: Milestone,
    ) -> WaitChain:
        milestones, edges = [goal], list[int | None]()
        while milestones[-1] != start:
            predecessor, edge = previous[milestones[-1]]
            milestones.append(predecessor)
            edges.append(edge)
        first = edges[-1]
        at = first if first is not None else 0
        between = milestones[-2::-1]
        return WaitChain(at, tuple(self._describe_links(between)), len(milestones))

    def _describe_links(self, milestones: list[Milestone]) -> list[str]:
        """Describe the links of a chain from the provider to the end of the waiting step."""
        links: list[str] = []
        waiter, verb, reason, is_end = "", "", EdgeReason.WAVE, False
        for at, (milestone_type, number) in enumerate(milestones):
            if milestone_type in NAMED_MILESTONES:
                name = self._node_name(number)
                if waiter not in {"", name}:
                    awaited = NAMED_MILESTONES[milestone_type][1]
                    links.append(f"{waiter} {verb} only after {name} {awaited}")
                waiter, verb = name, NAMED_MILESTONES[milestone_type][0]
            elif milestone_type == STARTED:
                step, before = self._graph.steps[number], self._graph.steps[milestones[at + 1][1]]
                is_implied = step.unit == before.unit and not step.stage
                waiter, verb = format_start(step, "" if is_implied else f"`{step.unit}`")
                reason = self._order_reasons[before.id, step.id]
                is_end = is_unit_end(step, before)
            elif milestone_type == FINISHED:
                step, unit = self._graph.steps[number], f"`{self._graph.steps[number].unit}`"
                if not is_end:
                    finish = format_finish(step, unit, reason=reason)
                    links.append(f"{waiter} {verb} only after {finish}")
                waiter, verb = format_waiting(step, unit)
        return list(dict.fromkeys(links))

    @cached_property
    def _order_reasons(self) -> dict[tuple[str, str], EdgeReason]:
        """The reasons of the edges between steps."""
        return {(edge.before, edge.after): edge.reason for edge in self._graph.order}

    def _node_name(self, number: int) -> str:
        node = self._graph.nodes[number]
        return object_name(node.ref) if node.ref is not None else f"`{node.name}`"


CONTEXT_LINES = 2
"""Number of lines shown above the reported line."""


class DiagnosticLocator(msgspec.Struct):
    """Finds locations in the files of one tree; documents from elsewhere keep their location."""

    files: FieldLocator

    def __call__(self, field_ref: FieldRef) -> Location:
        document = field_ref.document
        file = self.files.file(document.location.name)
        matching = file.find_document(document)
        if matching is None and file.is_template:
            body = document.body
            return file.locate_in_template(
                get_text(body, "kind"), get_text(body, "metadata", "name"), field_ref.path
            )
        if matching is None:
            field = format_path(field_ref.path)
            return document.location.with_field(field) if field else document.location
        return file.locations.find(matching, field_ref.path)

    def excerpts(self, findings: tuple[Finding, ...]) -> dict[Location, Excerpt]:
        """Return the reported line and the lines above it, by location; none for Secrets."""
        excerpts: dict[Location, Excerpt] = {}
        for location in dict.fromkeys(finding.location for finding in findings if finding.location):
            lines = self.files.file(location.name).lines if location.line else []
            if 0 < location.line <= len(lines) and not _is_in_secret(
                self.files.file(location.name), location
            ):
                first = max(1, location.line - CONTEXT_LINES)
                excerpts[location] = Excerpt(
                    first, tuple(lines[first - 1 : location.line]), location.column
                )
        return excerpts


def _is_in_secret(file: SourceFile, location: Location) -> bool:
    """Return whether the lines belong to a Secret, whose contents are never shown."""
    if not file.documents:
        return b"Secret" in file.content
    document = file.document_at_line(location.line)
    return document is None or get_text(document.body, "kind") == "Secret"

"""Which step comes behind which: questions about a plan that look at a part of it each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tidegate.model.manifest import Manifest
from tidegate.model.objects import Ref
from tidegate.model.plan import Edge, Plan, PlannedUnit, Step, items_of
from tidegate.model.unit import UnitId

NO_PLAN = Plan(digest="")


@dataclass(frozen=True)
class StepOrder:
    """The steps of a plan and what leads from one to another."""

    plan: Plan = NO_PLAN
    _behind: dict[tuple[str, str], bool] = field(default_factory=dict)

    @cached_property
    def steps(self) -> dict[str, Step]:
        return {step.id: step for step in self.plan.steps}

    @cached_property
    def units(self) -> dict[UnitId, PlannedUnit]:
        return {unit.id: unit for unit in self.plan.units}

    @cached_property
    def places(self) -> dict[str, int]:
        """Where in the plan each step stands: what comes before it stands before it."""
        return {step.id: at for at, step in enumerate(self.plan.steps)}

    @cached_property
    def entering(self) -> dict[str, list[Edge]]:
        """By step, what leads to it."""
        found: dict[str, list[Edge]] = {}
        for edge in self.plan.edges:
            found.setdefault(edge.after, []).append(edge)
        return found

    @cached_property
    def leaving(self) -> dict[str, list[Edge]]:
        found: dict[str, list[Edge]] = {}
        for edge in self.plan.edges:
            found.setdefault(edge.before, []).append(edge)
        return found

    @cached_property
    def by_unit(self) -> dict[UnitId, list[Step]]:
        found: dict[UnitId, list[Step]] = {}
        for step in self.plan.steps:
            found.setdefault(step.unit, []).append(step)
        return found

    @cached_property
    def _of_items(self) -> dict[tuple[UnitId, str, Ref], Step]:
        return {
            (step.unit, step.phase, item.ref): step
            for step in self.plan.steps
            for item in items_of(step)
        }

    def step_of(self, unit: UnitId, manifest: Manifest) -> Step | None:
        """The step that an object is in; one whose kind nobody serves is in none."""
        return self._of_items.get((unit, manifest.phase, manifest.ref))

    def is_behind(self, late: str, early: str) -> bool:
        """Whether a step starts only after the gate of another has opened."""
        if late == early or self.places[late] < self.places[early]:
            return False
        if (late, early) not in self._behind:
            self._behind[late, early] = self._search(late, early)
        return self._behind[late, early]

    def _search(self, late: str, early: str) -> bool:
        floor, seen, pending = self.places[early], {late}, [late]
        while pending:
            for edge in self.entering.get(pending.pop(), ()):
                if edge.before == early:
                    return True
                if edge.before not in seen and self.places[edge.before] > floor:
                    seen.add(edge.before)
                    pending.append(edge.before)
        return False

    def way(self, early: str, late: str) -> list[Edge]:
        """The shortest chain of edges from one step to another; nothing where there is none."""
        came: dict[str, Edge] = {}
        pending = deque([early])
        while pending:
            one = pending.popleft()
            if one == late:
                return [*_back(came, late)][::-1]
            for edge in self.leaving.get(one, ()):
                if edge.after not in came and edge.after != early:
                    came[edge.after] = edge
                    pending.append(edge.after)
        return []


def _back(came: dict[str, Edge], last: str) -> Iterator[Edge]:
    while last in came:
        yield came[last]
        last = came[last].before

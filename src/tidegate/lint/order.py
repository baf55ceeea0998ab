"""Order of the steps of a plan; each query reads only a part of the plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.manifest import Manifest
from tidegate.model.plans.plan import Edge, Plan, PlannedUnit, Step, step_items
from tidegate.model.units.unit import UnitId

NO_PLAN = Plan(digest="")


@dataclass(frozen=True)
class StepOrder:
    """The steps of a plan and the edges between them."""

    plan: Plan = NO_PLAN
    _after_cache: dict[tuple[str, str], bool] = field(default_factory=dict)

    @cached_property
    def steps(self) -> dict[str, Step]:
        return {step.id: step for step in self.plan.steps}

    @cached_property
    def units(self) -> dict[UnitId, PlannedUnit]:
        return {unit.id: unit for unit in self.plan.units}

    @cached_property
    def positions(self) -> dict[str, int]:
        """Position of each step in the plan; predecessors have lower positions."""
        return {step.id: at for at, step in enumerate(self.plan.steps)}

    @cached_property
    def incoming(self) -> dict[str, list[Edge]]:
        """Incoming edges by step."""
        edges: dict[str, list[Edge]] = {}
        for edge in self.plan.edges:
            edges.setdefault(edge.after, []).append(edge)
        return edges

    @cached_property
    def outgoing(self) -> dict[str, list[Edge]]:
        """Outgoing edges by step."""
        edges: dict[str, list[Edge]] = {}
        for edge in self.plan.edges:
            edges.setdefault(edge.before, []).append(edge)
        return edges

    @cached_property
    def by_unit(self) -> dict[UnitId, list[Step]]:
        steps: dict[UnitId, list[Step]] = {}
        for step in self.plan.steps:
            steps.setdefault(step.unit, []).append(step)
        return steps

    @cached_property
    def _steps_by_item(self) -> dict[tuple[UnitId, str, Ref], Step]:
        return {
            (step.unit, step.phase, item.ref): step
            for step in self.plan.steps
            for item in step_items(step)
        }

    @cached_property
    def _steps_by_ref(self) -> dict[tuple[UnitId, Ref], Step]:
        return {(unit, ref): step for (unit, _, ref), step in self._steps_by_item.items()}

    def step_for(self, unit: UnitId, manifest: Manifest) -> Step | None:
        """Return the step of an object, or None if its kind is not served.

        A Namespace or a CRD may be in an earlier phase than its own.
        """
        step = self._steps_by_item.get((unit, manifest.phase, manifest.ref))
        if step is None and manifest.hook_policies is None:
            return self._steps_by_ref.get((unit, manifest.ref))
        return step

    def is_after(self, later: str, earlier: str) -> bool:
        """Return whether a step starts only after the gate of another has opened."""
        if later == earlier or self.positions[later] < self.positions[earlier]:
            return False
        if (later, earlier) not in self._after_cache:
            self._after_cache[later, earlier] = self._search(later, earlier)
        return self._after_cache[later, earlier]

    def _search(self, later: str, earlier: str) -> bool:
        lowest_position, seen, pending = self.positions[earlier], {later}, [later]
        while pending:
            for edge in self.incoming.get(pending.pop(), ()):
                if edge.before == earlier:
                    return True
                if edge.before not in seen and self.positions[edge.before] > lowest_position:
                    seen.add(edge.before)
                    pending.append(edge.before)
        return False

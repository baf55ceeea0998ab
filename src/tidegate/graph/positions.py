"""Positions of objects: the step of the plan, and the location in a file."""

from __future__ import annotations

from tidegate.errors import Location
from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.graph import NO_STEP
from tidegate.model.plans.manifest import Manifest
from tidegate.model.plans.plan import Plan, managed_items
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.policy import Order
from tidegate.model.units.unit import Unit, UnitId

_ORIGIN = lazy_regex(
    r"(?P<name>.*?)(?::(?P<line>\d+))?(?::(?P<column>\d+))?(?: \((?P<field>.*)\))?"
)


class StepIndex:
    """The step of each object in a plan, and whether later steps wait for it there."""

    def __init__(self, plan: Plan) -> None:
        self._items: dict[tuple[UnitId, Ref, str], tuple[int, bool]] = {}
        self._items_by_ref: dict[tuple[UnitId, Ref], tuple[int, bool]] = {}
        self._wave_steps: dict[tuple[UnitId, str, int, str], int] = {}
        for index, step in enumerate(plan.steps):
            self._wave_steps.setdefault((step.unit, step.phase, step.wave, step.stage), index)
            for item in managed_items(step):
                position = (index, item.is_gating)
                self._items[step.unit, item.ref, step.phase] = position
                self._items_by_ref[step.unit, item.ref] = position

    def find(self, unit: Unit, manifest: Manifest) -> tuple[int, bool]:
        """Return the number of the step of a manifest, and whether it is gating.

        A Namespace or a CRD may be in an earlier phase than its own.
        """
        position = self._items.get((unit.id, manifest.ref, manifest.phase))
        if position is None and manifest.hook_policies is None:
            position = self._items_by_ref.get((unit.id, manifest.ref))
        if position is not None:
            return position
        # The unit resource may not be an item of the plan, but it has a position.
        stage = "rest" if unit.policy.order is Order.STAGES else ""
        wave_key = (unit.id, str(manifest.phase), manifest.wave, stage)
        return self._wave_steps.get(wave_key, NO_STEP), False


def parse_origin(origin: str) -> Location | None:
    """Return the location in the origin of a manifest, or None."""
    match = _ORIGIN.fullmatch(origin)
    if match is None or not match["name"]:
        return None
    line, column = int(match["line"] or 0), int(match["column"] or 0)
    return Location(match["name"], line, column, match["field"] or "")

"""Where objects stand: in which step of the plan, and in which file."""

from __future__ import annotations

from tidegate.errors import Place
from tidegate.model.graph import NOWHERE
from tidegate.model.manifest import Manifest
from tidegate.model.objects import Ref
from tidegate.model.patterns import late
from tidegate.model.plan import Plan, own_items_of
from tidegate.model.policy import Order
from tidegate.model.unit import Unit, UnitId

_ORIGIN = late(r"(?P<name>.*?)(?::(?P<line>\d+))?(?::(?P<column>\d+))?(?: \((?P<field>.*)\))?")


class StepIndex:
    """In which step of the plan an object stands, and whether others wait for it there."""

    def __init__(self, plan: Plan) -> None:
        self._items: dict[tuple[UnitId, Ref, str], tuple[int, bool]] = {}
        self._spots: dict[tuple[UnitId, str, int, str], int] = {}
        for at, step in enumerate(plan.steps):
            self._spots.setdefault((step.unit, step.phase, step.wave, step.stage), at)
            for item in own_items_of(step):
                self._items[step.unit, item.ref, step.phase] = (at, item.gates)

    def of(self, unit: Unit, manifest: Manifest) -> tuple[int, bool]:
        found = self._items.get((unit.id, manifest.ref, manifest.phase))
        if found is not None:
            return found
        # The own object of a unit may be skipped; it has its place all the same.
        stage = "rest" if unit.policy.order is Order.STAGES else ""
        spot = (unit.id, str(manifest.phase), manifest.wave, stage)
        return self._spots.get(spot, NOWHERE), False


def place_of(origin: str) -> Place | None:
    """Where an object stands, as its manifest says it."""
    found = _ORIGIN.fullmatch(origin)
    if found is None or not found["name"]:
        return None
    line, column = int(found["line"] or 0), int(found["column"] or 0)
    return Place(found["name"], line, column, found["field"] or "")

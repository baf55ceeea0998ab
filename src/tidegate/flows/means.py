"""What the engine is handed to judge and to compare with."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tidegate.engine.means import Body
from tidegate.engine.vocabulary import Compared, Stand
from tidegate.health.judge import Judge
from tidegate.model.change import Fate
from tidegate.model.moment import Ms
from tidegate.model.plan import Deed, Item, PlannedUnit
from tidegate.model.verdict import Verdict
from tidegate.plan.diff.adoption import adopted_managers, adoption_patch
from tidegate.plan.diff.compare import compare
from tidegate.plan.diff.seal import seal as seal_of
from tidegate.schema.fit import Misfit, find_misfit

STANDS = {
    Fate.CREATE: Stand.ABSENT,
    Fate.CHANGE: Stand.DIFFERENT,
    Fate.RECREATE: Stand.IMMUTABLE,
    Fate.KEEP: Stand.SAME,
}


@dataclass(frozen=True, slots=True)
class Craft:
    """Rules of health and of difference, as one hand-out."""

    rules: Judge

    def judge(self, unit: PlannedUnit, body: Body, now: Ms) -> Verdict:
        return self.rules.judge(body, now, rules=unit.rules)

    def stand(self, unit: PlannedUnit, item: Item, live: Body | None, seal: str) -> Compared:
        sealed = live is not None and seal and seal == seal_of(live, unit.manager)
        if sealed and live is not None and not adopted_managers(live, unit.manager):
            return Compared(Stand.SAME)
        wanted: Body = msgspec.json.decode(item.body)
        difference = compare(wanted, live, manager=unit.manager)
        return Compared(STANDS[difference.deed], difference.because)

    def misfit(self, item: Item, definition: bytes) -> Misfit | None:
        body: Body = msgspec.json.decode(item.body)
        applied = item.deed is Deed.APPLY and not item.handling.replaces
        return find_misfit(item.ref.kind, body, definition=definition, applied=applied)

    def seal(self, unit: PlannedUnit, live: Body) -> str:
        return seal_of(live, unit.manager)

    def adopt(self, unit: PlannedUnit, live: Body) -> bytes | None:
        return adoption_patch(live, unit.manager)

"""What the engine is handed to judge and to compare with."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tidegate.engine.means import Body
from tidegate.engine.vocabulary import Stand
from tidegate.health.judge import Judge
from tidegate.model.change import Fate
from tidegate.model.moment import Ms
from tidegate.model.plan import Item, PlannedUnit
from tidegate.model.verdict import Verdict
from tidegate.plan.adoption import adopted_managers, adoption_patch
from tidegate.plan.diff import compare
from tidegate.plan.seal import seal as seal_of

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

    def stand(self, unit: PlannedUnit, item: Item, live: Body | None, seal: str) -> Stand:
        sealed = live is not None and seal and seal == seal_of(live, unit.manager)
        if sealed and live is not None and not adopted_managers(live, unit.manager):
            return Stand.SAME
        wanted: Body = msgspec.json.decode(item.body)
        return STANDS[compare(wanted, live, manager=unit.manager).deed]

    def seal(self, unit: PlannedUnit, live: Body) -> str:
        return seal_of(live, unit.manager)

    def adopt(self, unit: PlannedUnit, live: Body) -> bytes | None:
        return adoption_patch(live, unit.manager)

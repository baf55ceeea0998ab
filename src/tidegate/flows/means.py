"""What the engine is handed to judge and to compare with."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tidegate.dialect.living import read_living
from tidegate.engine.means import Body, Found
from tidegate.engine.vocabulary import Compared, Stand
from tidegate.health.judge import ARGO, Judge
from tidegate.health.lua import NO_RULES, LuaRules, read_verdict
from tidegate.model.change import Fate
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.model.plan import Deed, Item, Plan, PlannedUnit
from tidegate.model.reading import text
from tidegate.model.verdict import Health, Verdict
from tidegate.plan.diff.adoption import adopted_managers, adoption_patch
from tidegate.plan.diff.compare import compare
from tidegate.plan.diff.seal import seal as seal_of
from tidegate.plan.hooks import without_hooks
from tidegate.plan.naming import name_generated
from tidegate.plan.pruning import Stale, add_prunes
from tidegate.schema.fit import Misfit, find_misfit
from tidegate.world.calls import Local
from tidegate.world.facts import Outcome, Said, is_refusal

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
    scripts: LuaRules = NO_RULES

    def script(self, unit: PlannedUnit, body: Body, now: Ms) -> Local | None:
        return self.scripts.request(body, now) if unit.rules == ARGO else None

    def scripted(self, outcome: Outcome, body: Body) -> Verdict:
        if isinstance(outcome, Said):
            return read_verdict(outcome.body, body)
        why = outcome.message if is_refusal(outcome) else "no answer came"
        return Verdict(Health.UNKNOWN, "LuaError", why)

    def judge(self, unit: PlannedUnit, body: Body, now: Ms) -> Verdict:
        return self.rules.judge(body, now, rules=unit.rules)

    def stand(self, unit: PlannedUnit, item: Item, live: Body | None, seal: str) -> Compared:
        sealed = live is not None and seal and seal == seal_of(live, unit.manager)
        if sealed and live is not None and not adopted_managers(live, unit.manager):
            return Compared(Stand.SAME)
        wanted: Body = msgspec.json.decode(item.body)
        difference = compare(wanted, live, manager=unit.manager)
        return Compared(STANDS[difference.deed], difference.because)

    def complete(self, plan: Plan, found: dict[str, Found]) -> Plan:
        idle = {name for name, one in found.items() if one.is_idle}
        completed = without_hooks(plan, idle) if idle else plan
        begun = min((one.begun for one in found.values()), default=Ms(0))
        completed = name_generated(completed, revision=plan.digest, begun=begun)
        for unit in plan.units:
            stale = (stale_of(body, unit.name) for body in found[unit.name].stale)
            completed = add_prunes(completed, unit, [one for one in stale if one is not None])
        return completed

    def misfit(self, item: Item, definition: bytes) -> Misfit | None:
        body: Body = msgspec.json.decode(item.body)
        applied = item.deed is Deed.APPLY and not item.handling.replaces
        return find_misfit(item.ref.kind, body, definition=definition, applied=applied)

    def seal(self, unit: PlannedUnit, live: Body) -> str:
        return seal_of(live, unit.manager)

    def adopt(self, unit: PlannedUnit, live: Body) -> bytes | None:
        return adoption_patch(live, unit.manager)


def stale_of(body: Body, unit: str, *, hooks: bool = False) -> Stale | None:
    """What a living object says about its own end; None where it is not the unit's to prune.

    `hooks`: they go as well, as they do when the whole unit is deleted.
    """
    living = read_living(body, unit)
    if living is None or (living.is_hook and not hooks):
        return None
    kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
    ref = Ref(kind, text(body, "metadata", "namespace"), text(body, "metadata", "name"))
    return Stale(ref, wave=living.wave, handling=living.handling)

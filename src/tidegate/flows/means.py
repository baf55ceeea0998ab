"""What the engine is handed to judge and to compare with."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

import msgspec

from tidegate.dialect.argo.permits import refuse_object
from tidegate.dialect.flux.notes import is_undetected
from tidegate.dialect.living import read_living
from tidegate.dialect.tracking import owner_of
from tidegate.dialect.units import is_own_kind
from tidegate.engine.means import Body, Draft, FoundUnit
from tidegate.engine.vocabulary import Compared, Stand
from tidegate.flows.comparing import (
    draft_of,
    find_difference,
    find_drift,
    is_forced,
    patch_to_adopt,
    seal_written,
    wants_peace,
    who_changed,
)
from tidegate.flows.jq import Jq
from tidegate.health.budget import farewell
from tidegate.health.cel import NO_EXPRESSIONS, CelRules, read_cel_verdict
from tidegate.health.cel.rules import CEL_WORK
from tidegate.health.judge import ARGO, Judge
from tidegate.health.lua import NO_RULES, LuaRules, read_verdict
from tidegate.model.change import Fate, mask_fields
from tidegate.model.drift import ObjectDrift
from tidegate.model.expressions import HealthExpressions
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.model.plan import Deed, Item, Plan, PlannedUnit
from tidegate.model.reading import listed, text
from tidegate.model.semantics import TIDEGATE
from tidegate.model.unit import UnitId
from tidegate.model.verdict import Health, Verdict
from tidegate.plan.hooks import without_hooks
from tidegate.plan.naming import name_generated
from tidegate.plan.pruning import Stale, prune_units
from tidegate.plan.settled import without_settled
from tidegate.schema.fit import Misfit, find_misfit
from tidegate.schema.openness import open_word
from tidegate.world.calls import Local
from tidegate.world.facts import Outcome, Said, is_refusal

STANDS = {
    Fate.CREATE: Stand.ABSENT,
    Fate.CHANGE: Stand.DIFFERENT,
    Fate.REPLACE: Stand.DIFFERENT,
    Fate.RECREATE: Stand.IMMUTABLE,
    Fate.KEEP: Stand.SAME,
}


class Craft(msgspec.Struct, frozen=True):
    """Rules of health and of difference, as one hand-out."""

    rules: Judge
    scripts: LuaRules = NO_RULES
    jq: Jq = msgspec.field(default_factory=Jq)
    expressions: CelRules = NO_EXPRESSIONS
    """The repository's own; they count by our rules alone."""
    owner_label: str = ""
    """By which Argo CD knows its objects, where that is no annotation."""

    def script(self, unit: PlannedUnit, body: Body, now: Ms) -> Local | None:
        """The unit's own expressions, then the repository's, then scripts.

        Flux looks at Jobs by its own rule first, unless it uses somebody else's rights.
        """
        policy = unit.policy
        jobs = policy.identity is not None or bool(unit.cluster)
        asked = _rules_of(policy.expressions).request(body, jobs=jobs)
        if asked is None and policy.semantics.name == TIDEGATE.name:
            asked = self.expressions.request(body)
        if asked is None and policy.rules == ARGO:
            asked = self.scripts.request(body, now)
        return asked

    def scripted(self, work: Local, outcome: Outcome, body: Body) -> Verdict:
        if isinstance(outcome, Said):
            read = read_cel_verdict if work.name == CEL_WORK else read_verdict
            return read(outcome.body, body)
        why = outcome.message if is_refusal(outcome) else "no answer came"
        return Verdict(Health.UNKNOWN, "ScriptError", why)

    def judge(self, unit: PlannedUnit, body: Body, now: Ms) -> Verdict:
        return self.rules.judge(body, now, rules=unit.policy.rules)

    def stand(self, unit: PlannedUnit, item: Item, live: Body | None, seal: str) -> Compared:
        if live is not None and wants_peace(unit, live):
            return Compared(Stand.LEFT)
        difference = find_difference(unit, item, live, self.jq, seal)
        stand = STANDS[difference.deed]
        if stand is Stand.IMMUTABLE and live is not None:
            makes_room = item.recreates or is_forced(unit, item, live)
            stand = Stand.OBSOLETE if makes_room else stand
        shown = mask_fields(difference, item.hidden).fields if item.hidden else difference.fields
        return Compared(stand, difference.because, difference.deed is Fate.REPLACE, shown)

    def changed(self, unit: PlannedUnit, item: Item, live: Body, seal: str) -> str:
        return who_changed(unit, item, live, self.jq, seal)

    def is_exempt(self, item: Item, live: Body | None) -> bool:
        wanted: Body = msgspec.json.decode(item.body)
        return any(map(is_undetected, (wanted, live or {})))

    def drift(self, unit: PlannedUnit, item: Item, live: Body | None) -> ObjectDrift | None:
        return find_drift(unit, item, live, self.jq)

    def owner(self, body: Body) -> str:
        return owner_of(body, self.owner_label)

    def complete(self, plan: Plan, found: dict[UnitId, FoundUnit]) -> Plan:
        named = name_generated(plan, begun={name: one.begun for name, one in found.items()})
        units = {unit.id for unit in plan.units}
        stale = [
            (unit, [one for body in found[unit.id].stale if (one := ending_of(body, unit, units))])
            for unit in plan.units
        ]
        return prune_units(named, stale)

    def without_hooks(self, plan: Plan, units: set[UnitId], *, but_tests: bool = False) -> Plan:
        return without_hooks(plan, units, but_tests=but_tests)

    def without_settled(self, plan: Plan, settled: set[tuple[UnitId, Ref]]) -> Plan:
        return without_settled(plan, settled)

    def misfit(self, item: Item, definition: bytes) -> Misfit | None:
        body: Body = msgspec.json.decode(item.body)
        applied = item.deed is Deed.APPLY and not item.handling.replaces
        return find_misfit(item.ref.kind, body, definition=definition, applied=applied)

    def left_open(self, item: Item, live: Body | None) -> bytes:
        return open_word(item.ref.kind, msgspec.json.decode(item.body), live)

    def draft(self, unit: PlannedUnit, item: Item, live: Body | None) -> Draft:
        return draft_of(unit, item, live, self.jq)

    def seal(self, unit: PlannedUnit, item: Item, live: Body) -> str:
        return seal_written(unit, item, live, self.jq)

    def adopt(self, unit: PlannedUnit, item: Item, live: Body) -> bytes | None:
        return patch_to_adopt(unit, item, live)


@cache
def _rules_of(expressions: tuple[HealthExpressions, ...]) -> CelRules:
    return CelRules.of(expressions)


def ending_of(
    body: Body, unit: PlannedUnit, units: Collection[UnitId], *, hooks: bool = False
) -> Stale | None:
    """The own object of a unit that ends with this plan is held by nobody else."""
    stale = stale_of(body, unit, hooks=hooks)
    if stale is None or not is_own_kind(stale.ref.kind):
        return stale
    ref = stale.ref
    if UnitId(ref.kind.name, unit.cluster, ref.namespace, ref.name) not in units:
        return stale
    finalizers = tuple(map(str, listed(body, "metadata", "finalizers")))
    return msgspec.structs.replace(stale, releases=finalizers)


def stale_of(body: Body, unit: PlannedUnit, *, hooks: bool = False) -> Stale | None:
    """What a living object says about its own end; None where it is not the unit's to prune.

    What its project does not allow is not the unit's either, as it is not for Argo CD.
    `hooks`: they go as well, as they do when the whole unit is deleted; those that are run behind
    everything do not.
    """
    living = read_living(body, unit)
    if living is None or living.outlives or (living.is_hook and not hooks):
        return None
    kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
    ref = Ref(kind, text(body, "metadata", "namespace"), text(body, "metadata", "name"))
    reach = unit.policy.reach
    if reach is not None and refuse_object(reach, ref, namespaced=bool(ref.namespace)):
        return None
    return Stale(ref, wave=living.wave, handling=living.handling, budget=farewell(body))

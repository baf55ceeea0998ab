"""The evaluator of the engine: health, comparison and validation of objects."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

import msgspec

from tidegate.clusters.diff import (
    build_adoption_patch,
    build_payload,
    describe_overwritten_fields,
    find_difference,
    find_drift,
    find_override,
    fingerprint_written,
    is_forced,
    is_unmanaged,
)
from tidegate.dialect.argo.project_permissions import check_object
from tidegate.dialect.flux.metadata import skips_drift_detection
from tidegate.dialect.ownership.live import other_owner, read_live_ownership
from tidegate.dialect.ownership.tracking import owning_unit
from tidegate.dialect.units import is_dialect_kind
from tidegate.engine.evaluator import UnitLiveState, WritePayload
from tidegate.engine.messages import CompareResult, Comparison, Override
from tidegate.health.cel import NO_EXPRESSIONS, CelRules, read_cel_verdict
from tidegate.health.cel.rules import CEL_WORKER
from tidegate.health.judge import ARGO, Judge
from tidegate.health.lua import NO_LUA_RULES, LuaRules, read_lua_verdict
from tidegate.health.readiness_timeout import termination_timeout
from tidegate.model.k8s.json_fields import get_list, object_ref
from tidegate.model.k8s.kinds import JOB
from tidegate.model.k8s.objects import JsonObject, Ref
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.plans.change import DiffAction, mask_fields
from tidegate.model.plans.drift import ObjectDrift
from tidegate.model.plans.plan import ItemAction, Plan, PlanItem, PlannedUnit
from tidegate.model.times import Ms
from tidegate.model.units.expressions import HealthExpressions
from tidegate.model.units.semantics import TIDEGATE
from tidegate.model.units.unit import UnitId
from tidegate.plan.build.hook_names import complete_hook_names
from tidegate.plan.changes.narrow import without_hooks, without_in_sync
from tidegate.plan.changes.prune import PruneCandidate, prune_units
from tidegate.schema.server_checked import server_checked_digest
from tidegate.schema.violations import SchemaViolations, find_schema_violations
from tidegate.workers.jq import Jq
from tidegate.world.messages import Outcome, RawResponse, is_error
from tidegate.world.requests import RunWorker

COMPARE_RESULTS = {
    DiffAction.CREATE: CompareResult.ABSENT,
    DiffAction.CHANGE: CompareResult.DIFFERENT,
    DiffAction.REPLACE: CompareResult.DIFFERENT,
    DiffAction.RECREATE: CompareResult.IMMUTABLE,
    DiffAction.KEEP: CompareResult.IN_SYNC,
}


class DefaultEvaluator(msgspec.Struct, frozen=True):
    """Health rules and diff rules for live objects."""

    rules: Judge
    scripts: LuaRules = NO_LUA_RULES
    jq: Jq = msgspec.field(default_factory=Jq)
    expressions: CelRules = NO_EXPRESSIONS
    """CEL expressions of the repository; they apply with Tidegate semantics only."""
    owner_label: str = ""
    """The label by which Argo CD tracks its objects; empty if it uses the annotation."""

    def health_script(self, unit: PlannedUnit, body: JsonObject, now: Ms) -> RunWorker | None:
        """Return the health script of an object: CEL of the unit or the repository, else Lua.

        None if no script applies. Flux checks Jobs with its built-in rule first, unless the
        unit impersonates an account or targets a remote cluster.
        """
        policy = unit.policy
        jobs = policy.identity is not None or bool(unit.cluster)
        request = _compile_expressions(policy.expressions).make_request(body, jobs=jobs)
        if request is None and policy.semantics.name == TIDEGATE.name:
            request = self.expressions.make_request(body)
        if request is None and policy.rules == ARGO:
            request = self.scripts.make_request(body, now)
        return request

    def verdict_from_script(self, script: RunWorker, outcome: Outcome, body: JsonObject) -> Verdict:
        if isinstance(outcome, RawResponse):
            parse = read_cel_verdict if script.name == CEL_WORKER else read_lua_verdict
            return parse(outcome.body, body)
        why = outcome.message if is_error(outcome) else "the script returned no result"
        return Verdict(Health.UNKNOWN, "ScriptError", why)

    def evaluate_health(self, unit: PlannedUnit, body: JsonObject, now: Ms) -> Verdict:
        return self.rules.judge(body, now, rules=unit.policy.rules)

    def find_override(self, unit: PlannedUnit, item: PlanItem, live: JsonObject) -> Override | None:
        return find_override(unit, item, live, self.jq)

    def compare(
        self, unit: PlannedUnit, item: PlanItem, live: JsonObject | None, fingerprint: str
    ) -> Comparison:
        if live is not None and is_unmanaged(unit, live):
            return Comparison(CompareResult.UNMANAGED)
        difference = find_difference(unit, item, live, self.jq, fingerprint)
        result = COMPARE_RESULTS[difference.action]
        if result is CompareResult.IMMUTABLE and live is not None:
            recreates_job = item.ref.kind == JOB and unit.policy.semantics.recreates_jobs
            recreates = recreates_job or is_forced(unit, item, live)
            result = CompareResult.RECREATE if recreates else result
        fields = (
            mask_fields(difference, item.hidden_fields).fields
            if item.hidden_fields
            else difference.fields
        )
        return Comparison(
            result, difference.immutable_fields, difference.action is DiffAction.REPLACE, fields
        )

    def describe_overwritten_fields(
        self, unit: PlannedUnit, item: PlanItem, live: JsonObject, fingerprint: str
    ) -> str:
        return describe_overwritten_fields(unit, item, live, self.jq, fingerprint)

    def is_drift_detection_disabled(self, item: PlanItem, live: JsonObject | None) -> bool:
        desired: JsonObject = msgspec.json.decode(item.body)
        return any(map(skips_drift_detection, (desired, live or {})))

    def find_drift(
        self, unit: PlannedUnit, item: PlanItem, live: JsonObject | None
    ) -> ObjectDrift | None:
        return find_drift(unit, item, live, self.jq)

    def find_owner(self, body: JsonObject) -> str:
        return owning_unit(body, self.owner_label)

    def find_other_owner(self, unit: PlannedUnit, item: PlanItem, body: JsonObject) -> str:
        is_deleted = item.action is ItemAction.DELETE
        return other_owner(body, unit, self.owner_label, is_deleted=is_deleted)

    def complete_plan(self, plan: Plan, live_states: dict[UnitId, UnitLiveState]) -> Plan:
        named_plan = complete_hook_names(
            plan, started_at={name: state.started_at for name, state in live_states.items()}
        )
        units = {unit.id for unit in plan.units}
        candidates = [
            (
                unit,
                [
                    candidate
                    for body in live_states[unit.id].prune_candidates
                    if (candidate := removal_candidate(body, unit, units))
                ],
            )
            for unit in plan.units
        ]
        return prune_units(named_plan, candidates)

    def remove_hooks(self, plan: Plan, units: set[UnitId], *, keep_tests: bool = False) -> Plan:
        return without_hooks(plan, units, except_tests=keep_tests)

    def remove_settled(self, plan: Plan, settled: set[tuple[UnitId, Ref]]) -> Plan:
        return without_in_sync(plan, settled)

    def find_schema_violations(self, item: PlanItem, crd: bytes) -> SchemaViolations | None:
        body: JsonObject = msgspec.json.decode(item.body)
        applied = item.action is ItemAction.APPLY and not item.options.replace
        return find_schema_violations(item.ref.kind, body, crd=crd, applied=applied)

    def server_checked_key(self, item: PlanItem, live: JsonObject | None) -> bytes:
        return server_checked_digest(item.ref.kind, msgspec.json.decode(item.body), live)

    def build_payload(
        self, unit: PlannedUnit, item: PlanItem, live: JsonObject | None
    ) -> WritePayload:
        return build_payload(unit, item, live, self.jq)

    def compute_fingerprint(self, unit: PlannedUnit, item: PlanItem, live: JsonObject) -> str:
        return fingerprint_written(unit, item, live, self.jq)

    def adoption_patch(self, unit: PlannedUnit, item: PlanItem, live: JsonObject) -> bytes | None:
        return build_adoption_patch(unit, item, live)


@cache
def _compile_expressions(expressions: tuple[HealthExpressions, ...]) -> CelRules:
    return CelRules.from_expressions(expressions)


def removal_candidate(
    body: JsonObject, unit: PlannedUnit, units: Collection[UnitId], *, hooks: bool = False
) -> PruneCandidate | None:
    """Return the prune candidate for an object, or None if the unit may not prune it.

    For the unit resource of a unit that this plan removes, the finalizers are removed first: no
    controller acts on them any more.
    """
    candidate = prune_candidate(body, unit, hooks=hooks)
    if candidate is None or not is_dialect_kind(candidate.ref.kind):
        return candidate
    ref = candidate.ref
    if UnitId(ref.kind.name, unit.cluster, ref.namespace, ref.name) not in units:
        return candidate
    finalizers = tuple(map(str, get_list(body, "metadata", "finalizers")))
    return msgspec.structs.replace(candidate, removed_finalizers=finalizers)


def prune_candidate(
    body: JsonObject, unit: PlannedUnit, *, hooks: bool = False
) -> PruneCandidate | None:
    """Return how a live object is pruned; None if the unit may not prune it.

    Like Argo CD, a unit does not prune what its project does not allow. `hooks`: prune hooks
    too, as on deletion of the whole unit; PostDelete hooks are excluded.
    """
    ownership = read_live_ownership(body, unit)
    if ownership is None or ownership.is_post_delete or (ownership.is_hook and not hooks):
        return None
    ref = object_ref(body)
    scope = unit.policy.project_scope
    if scope is not None and check_object(scope, ref, namespaced=bool(ref.namespace)):
        return None
    return PruneCandidate(
        ref,
        wave=ownership.wave,
        options=ownership.options,
        deletion_timeout=termination_timeout(body),
    )

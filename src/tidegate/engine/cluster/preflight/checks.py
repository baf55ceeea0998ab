"""Preflight checks: would the cluster accept the planned objects? Run before the first write.

Manifests are validated locally by the schemas of their kinds. A server-side dry run is sent
where only the server can decide: an admission webhook or policy applies, a schema has rules
that are not checked locally, an object is replaced as a whole, or a violation was found; in
mode `auto` also where the local rules leave something open. Objects with equal open parts get
the same answer, so only one of them is sent. Objects that depend on a planned CRD or webhook
cannot be tried before it exists: until then only the local validation counts, and their step
runs the dry run.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.engine.cluster.compare import WRITE_RESULTS, ComparedItem
from tidegate.engine.cluster.preflight.admission_context import (
    UNWRITTEN_ACTIONS,
    AdmissionContext,
    AdmissionRules,
)
from tidegate.engine.cluster.preflight.dry_runs import (
    DEFAULT_NAMESPACE,
    DryRunCandidate,
    GroupKey,
    find_failure,
    is_accepted,
    is_conclusive,
    to_creation,
)
from tidegate.engine.cluster.procedures import ApiCall, Procedure
from tidegate.engine.cluster.writes import build_write
from tidegate.engine.evaluator import ObjectEvaluator
from tidegate.engine.messages import CompareResult, Failure
from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.kinds import POD
from tidegate.model.k8s.objects import ClusterRef, Ref, object_body
from tidegate.model.plans.plan import ItemAction, PlannedUnit, Step
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.times import Ms
from tidegate.model.units.policy import PreflightMode
from tidegate.model.units.unit import UnitId
from tidegate.schema.violations import SchemaViolations
from tidegate.world import messages

ObjectFailure: TypeAlias = tuple[Step, Ref, Failure]
NO_VIOLATIONS = SchemaViolations()


class _DeferredCheck(NamedTuple):
    compared_item: ComparedItem
    awaited_refs: set[ClusterRef]


class PreflightChecker(msgspec.Struct):
    """Checker of objects that would be written."""

    evaluator: ObjectEvaluator
    units: dict[UnitId, PlannedUnit]
    admission: AdmissionContext
    mode: PreflightMode = PreflightMode.LOCAL
    _checked: set[tuple[ClusterRef, str]] = msgspec.field(default_factory=set)
    """Objects, by manifest digest, that need no further check."""
    _deferred: dict[ClusterRef, list[_DeferredCheck]] = msgspec.field(default_factory=dict)
    """Deferred checks, by the object that must serve first."""

    def find_failures(
        self, compared_items: Iterable[ComparedItem], *, is_last_check: bool
    ) -> Procedure[list[ObjectFailure]]:
        """Return the failures of these objects.

        Before a rollout, checks that are not conclusive yet are deferred. With `is_last_check`,
        when the step runs, they are failures.
        """
        written = [
            compared_item for compared_item in compared_items if will_be_written(compared_item)
        ]
        rewritten = (
            frozenset()
            if is_last_check
            else frozenset(compared.object_ref for *_, compared in written)
        )
        failures = [
            _immutable_failure(compared_item)
            for compared_item in written
            if _is_immutable(compared_item) and self._dry_runs_on_server(compared_item)
        ]
        failures += filter(None, map(_identity_failure, filter(self._dry_runs_on_server, written)))
        return failures + (yield from self._check(written, rewritten, is_last_check=is_last_check))

    def find_manifest_failures(self, compared_items: Iterable[ComparedItem]) -> list[ObjectFailure]:
        """Return the failures of new objects that need no response of a server."""
        unchecked = [
            compared_item for compared_item in compared_items if self._needs_check(compared_item)
        ]
        self.admission.parse_planned_crds()
        planned = frozenset(compared.object_ref for *_, compared in unchecked)
        failures = (
            (
                candidate.compared_item,
                find_failure(candidate, None, self.admission, is_last_check=False),
            )
            for candidate in self._candidates(unchecked, planned)
        )
        return [
            (step, item.ref, failure)
            for (step, item, _), failure in failures
            if failure is not None
        ]

    def check_deferred(
        self, object_ref: ClusterRef, started_steps: Container[str]
    ) -> Procedure[list[ObjectFailure]]:
        """Return the failures of objects of unstarted steps that waited only for this one."""
        ready: list[ComparedItem] = []
        for deferred in self._deferred.pop(object_ref, ()):
            deferred.awaited_refs.discard(object_ref)
            if not deferred.awaited_refs and deferred.compared_item[0].id not in started_steps:
                ready.append(deferred.compared_item)
        return (yield from self._check(ready, frozenset(), is_last_check=False))

    def _check(
        self,
        compared_items: list[ComparedItem],
        rewritten: frozenset[ClusterRef],
        *,
        is_last_check: bool,
    ) -> Procedure[list[ObjectFailure]]:
        unchecked = [
            compared_item for compared_item in compared_items if self._needs_check(compared_item)
        ]
        if not unchecked:
            return []
        yield from self.admission.load(
            (compared.object_ref, item) for _, item, compared in unchecked
        )
        return (
            yield from self._check_candidates(
                [*map(self._dry_run_of, self._candidates(unchecked, rewritten))],
                is_last_check=is_last_check,
            )
        )

    def _needs_check(self, compared_item: ComparedItem) -> bool:
        _, item, compared = compared_item
        is_checked = (compared.object_ref, item.digest) in self._checked
        return item.options.validate and not is_checked and not _is_immutable(compared_item)

    def _dry_runs_on_server(self, compared_item: ComparedItem) -> bool:
        """Return whether the server may reject an object before the first write."""
        return self.units[compared_item[0].unit].policy.semantics.dry_runs_on_server

    def _dry_run_of(self, candidate: DryRunCandidate) -> DryRunCandidate:
        """Return a candidate as its engine tries it.

        `kubectl apply --dry-run=client` of Argo CD only decodes: `validateObjects` in
        gitops-engine/pkg/sync/sync_context.go of Argo CD 3.5.6.
        """
        if self._dry_runs_on_server(candidate.compared_item):
            return candidate
        return _client_dry_run(candidate.compared_item, candidate.violations)

    def _check_candidates(
        self, candidates: list[DryRunCandidate], *, is_last_check: bool
    ) -> Procedure[list[ObjectFailure]]:
        outcomes = yield from self._dry_run_outcomes(candidates)
        failures: list[ObjectFailure] = []
        for index, candidate in enumerate(candidates):
            step, item, compared = candidate.compared_item
            outcome = outcomes.get(index)
            failure = find_failure(candidate, outcome, self.admission, is_last_check=is_last_check)
            if failure is not None:
                failures.append((step, item.ref, failure))
            elif is_conclusive(candidate, outcome):
                self._checked.add((compared.object_ref, item.digest))
            elif not is_last_check:
                self._defer(candidate)
        return failures

    def _dry_run_outcomes(
        self, candidates: list[DryRunCandidate]
    ) -> Procedure[dict[int, messages.Outcome]]:
        """Return the dry run outcomes by the index of their candidates.

        One candidate represents all with the same key, unless it is rejected: then each is
        sent.
        """
        groups: dict[GroupKey, list[int]] = {}
        for index, candidate in enumerate(candidates):
            if candidate.should_dry_run:
                groups.setdefault(candidate.group_key or (index,), []).append(index)
        outcomes = yield from self._send_dry_runs(
            candidates, [first for first, *_ in groups.values()]
        )
        others: list[int] = []
        for first, *similar in groups.values():
            if is_accepted(candidates[first], outcomes[first]):
                outcomes |= dict.fromkeys(similar, outcomes[first])
            else:
                others += similar
        return outcomes | (yield from self._send_dry_runs(candidates, others))

    def _send_dry_runs(
        self, candidates: list[DryRunCandidate], indexes: list[int]
    ) -> Procedure[dict[int, messages.Outcome]]:
        outcomes = yield tuple(self._dry_run_call(candidates[index]) for index in indexes)
        return dict(zip(indexes, outcomes, strict=True))

    def _defer(self, candidate: DryRunCandidate) -> None:
        deferred = _DeferredCheck(candidate.compared_item, set(candidate.awaited_refs))
        for object_ref in candidate.awaited_refs:
            self._deferred.setdefault(object_ref, []).append(deferred)

    def _dry_run_call(self, candidate: DryRunCandidate) -> ApiCall:
        """Return the dry run of a candidate.

        With violations, unknown fields are also rejected.
        """
        step, item, compared = candidate.compared_item
        unit = self.units[step.unit]
        live = self.admission.live_cache.objects.get(compared.object_ref)
        payload = self.evaluator.build_payload(
            unit, item, None if live is None else object_body(live)
        )
        write = build_write(item, unit, payload, live, dry_run=True)
        if candidate.trial_namespace is None:
            dry_run = msgspec.structs.replace(write, strict=bool(candidate.violations.unreadable))
        else:
            dry_run = to_creation(write, candidate.trial_namespace)
        return ApiCall(step.cluster, dry_run, identity=unit.policy.identity)

    def _candidates(
        self, compared_items: list[ComparedItem], rewritten: frozenset[ClusterRef]
    ) -> list[DryRunCandidate]:
        clusters = dict.fromkeys(step.cluster for step, *_ in compared_items)
        rules = {
            cluster: self.admission.admission_rules(cluster, rewritten) for cluster in clusters
        }
        return [
            self._candidate(compared_item, rules[compared_item[0].cluster], rewritten)
            for compared_item in compared_items
        ]

    def _candidate(
        self,
        compared_item: ComparedItem,
        rules: tuple[AdmissionRules, AdmissionRules],
        rewritten: frozenset[ClusterRef],
    ) -> DryRunCandidate:
        _, item, compared = compared_item
        admission = self.admission
        crd = admission.find_crd(compared.object_ref)
        violations = self.evaluator.find_schema_violations(item, crd.body if crd else b"")
        current_rules, future_rules = (
            admission.matching_rules(admission_rules, item, compared) for admission_rules in rules
        )
        awaited_refs = [
            object_ref
            for rule in future_rules
            for object_ref in rule.object_refs
            if object_ref in rewritten
        ]
        is_served = admission.live_cache.is_served(compared.object_ref)
        if crd is not None and crd.object_ref in rewritten:
            awaited_refs, is_served = [crd.object_ref, *awaited_refs], False
        may_be_mutated = any(rule.mutates for rule in (*current_rules, *future_rules))
        needs_own_dry_run = (
            self.mode is PreflightMode.SERVER
            or violations is None
            or violations.needs_server
            or compared.replaces
            or current_rules
        )
        open_key = (
            self._server_checked_key(compared_item)
            if self.mode is PreflightMode.AUTO and not needs_own_dry_run
            else b""
        )
        trial_namespace = self._trial_namespace(compared_item, violations or NO_VIOLATIONS)
        candidate = DryRunCandidate(
            compared_item,
            violations=violations or NO_VIOLATIONS,
            needs_dry_run=bool(needs_own_dry_run or open_key),
            can_dry_run=is_served and all(rule.allows_dry_run for rule in current_rules),
            trial_namespace=trial_namespace,
            may_be_mutated=may_be_mutated,
            is_admission_checked=bool(current_rules),
            awaited_refs=tuple(dict.fromkeys(awaited_refs)),
            group_key=self._group_key(compared_item, open_key) if open_key else (),
        )
        if candidate.is_relocated:
            return candidate._replace(
                can_dry_run=is_served and self._is_unaffected(rules[0], candidate)
            )
        return candidate

    def _server_checked_key(self, compared_item: ComparedItem) -> bytes:
        """Return the key of the part of an object that only the server can check."""
        _, item, compared = compared_item
        live = self.admission.live_cache.objects.get(compared.object_ref)
        if live is None or compared.result is CompareResult.RECREATE:
            return self.evaluator.server_checked_key(item, None)
        return self.evaluator.server_checked_key(item, object_body(live))

    def _group_key(self, compared_item: ComparedItem, open_key: bytes) -> GroupKey:
        """Return the key of equal dry runs; the namespace matters for pods only."""
        step, item, _ = compared_item
        kind = item.ref.kind
        namespace = item.ref.namespace if kind == POD else ""
        return (step.cluster, kind, namespace, self.units[step.unit].policy.identity, open_key)

    def _trial_namespace(
        self, compared_item: ComparedItem, violations: SchemaViolations
    ) -> str | None:
        """Return the namespace in which an object is tried as a new one.

        None if it is tried as it is.
        """
        _, item, compared = compared_item
        if compared.result is CompareResult.RECREATE:
            return item.ref.namespace
        can_relocate = self.mode is not PreflightMode.LOCAL and item.ref.kind != POD
        is_decodable = not violations.unreadable and not compared.replaces
        is_pending = (
            can_relocate
            and is_decodable
            and self.admission.is_namespace_pending(compared.object_ref)
        )
        return DEFAULT_NAMESPACE if is_pending else None

    def _is_unaffected(self, rules: AdmissionRules, candidate: DryRunCandidate) -> bool:
        """Return whether no rule changes the object, and none covers it in the trial namespace."""
        _, item, compared = candidate.compared_item
        other_rules = self.admission.matching_rules(
            rules, item, compared, namespace=DEFAULT_NAMESPACE
        )
        return not candidate.may_be_mutated and not other_rules


def _client_dry_run(compared_item: ComparedItem, violations: SchemaViolations) -> DryRunCandidate:
    """Return a candidate that is decoded and not sent to the server."""
    return DryRunCandidate(
        compared_item,
        violations=SchemaViolations(unreadable=violations.unreadable),
        needs_dry_run=False,
        can_dry_run=False,
        trial_namespace=None,
        may_be_mutated=False,
        is_admission_checked=False,
        awaited_refs=(),
    )


def failure_events(
    event_type: EventType,
    failures: Iterable[ObjectFailure],
    now: Ms,
    find_origin: Callable[[Step, Ref], str],
) -> Iterator[Event]:
    """Yield an event for each field of the failures, or for the whole object.

    `find_origin` returns the location of an object of a step.
    """
    for step, ref, failure in failures:
        origin = find_origin(step, ref)
        for field, message in failure.field_messages or (("", failure.message),):
            yield Event(
                now,
                event_type,
                step.id,
                ref,
                failure.reason,
                message,
                unit=step.unit,
                cluster=step.cluster,
                field=field,
                location=origin,
            )


def will_be_written(compared_item: ComparedItem) -> bool:
    """Return whether an object would be written."""
    _, item, compared = compared_item
    return compared.result in WRITE_RESULTS and item.action not in UNWRITTEN_ACTIONS


def _identity_failure(compared_item: ComparedItem) -> ObjectFailure | None:
    """Return the failure of a manifest that names another object than the live one, by its uid.

    A server refuses such an apply: `BeforeUpdate` and `Preconditions.Check` in
    `pkg/registry/generic/registry/store.go` of k8s.io/apiserver 0.36.4. A create replaces the uid.
    """
    step, item, compared = compared_item
    if b'"uid"' not in item.body and b'"resourceVersion"' not in item.body:
        return None
    body = msgspec.json.decode(item.body)
    uid, version = (get_text(body, "metadata", name) for name in ("uid", "resourceVersion"))
    live = None if compared.result is CompareResult.RECREATE else compared.live
    field = ""
    if uid and (live is None or live.uid != uid):
        field = "metadata.uid"
    elif version and live is not None and live.version != version:
        field = "metadata.resourceVersion"
    if not field or item.action is ItemAction.CREATE or compared.replaces:
        return None
    message = f"`{field}` is not that of the live object; remove it from the manifest"
    return step, item.ref, Failure("Conflict", message, final=True)


def _is_immutable(compared_item: ComparedItem) -> bool:
    return compared_item[2].result is CompareResult.IMMUTABLE


def _immutable_failure(compared_item: ComparedItem) -> ObjectFailure:
    step, item, compared = compared_item
    fields = ", ".join(f"`{name}`" for name in compared.immutable_fields) or "a changed field"
    suffix = "is immutable" if len(compared.immutable_fields) <= 1 else "are immutable"
    message = f"{fields} {suffix}"
    field_messages = tuple(
        (name, sanitize(f"`{name}` is immutable")) for name in compared.immutable_fields
    )
    return (
        step,
        item.ref,
        Failure("Immutable", sanitize(message), final=True, field_messages=field_messages),
    )

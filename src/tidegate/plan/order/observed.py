"""Order of steps as the timestamps of objects in a cluster show it.

All timestamps are whole seconds of the cluster's clock, so two in the same second prove nothing.
Only the last change of an object is known: a change after the rollout is not evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from tidegate.model.k8s.objects import ClusterRef
from tidegate.model.plans.plan import AWAIT_ACTIONS, ItemAction
from tidegate.model.plans.verification import ObservedObject, OrderEvidence, OrderPair, PairState
from tidegate.model.rollouts.run import RunHead, RunObject, RunStep
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.unit import UnitId

WRITE_ACTIONS = frozenset({ItemAction.APPLY, ItemAction.CREATE})
READINESS_ACTIONS = (WRITE_ACTIONS | AWAIT_ACTIONS) - {ItemAction.AWAIT_ABSENT}


class OrderInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of the order check."""

    observed_objects: Mapping[ClusterRef, ObservedObject]
    """Objects as the cluster has them."""
    started_at: Callable[[UnitId], Ms | None]
    """When the checked rollout of a unit started; None if unknown."""
    passed_at: Mapping[str, Ms] | None = None
    """When the gate of each step opened, by the run record."""
    is_unit_resource: Callable[[RunObject], bool] = lambda _: False
    """Whether an object is a unit resource, whose health is that of its unit."""


class _Readiness(msgspec.Struct, frozen=True):
    """The latest evidence that a step was ready."""

    final: OrderEvidence | None = None
    """Evidence that cannot change after the rollout."""
    revocable: OrderEvidence | None = None
    """Evidence that may be of a change after the rollout."""

    def merged_with(self, other: _Readiness) -> _Readiness:
        return _Readiness(latest(self.final, other.final), latest(self.revocable, other.revocable))


def latest(first: OrderEvidence | None, second: OrderEvidence | None) -> OrderEvidence | None:
    return max(
        (evidence for evidence in (first, second) if evidence),
        key=lambda evidence: evidence.at,
        default=None,
    )


class ObservedOrder:
    """Check of pairs of steps by the timestamps of a cluster."""

    def __init__(self, head: RunHead, inputs: OrderInputs) -> None:
        self._inputs = inputs
        self._steps = {step.id: step for step in head.steps}
        self._first_steps: dict[ClusterRef, str] = {}
        for step in head.steps:
            for run_object in step.objects:
                self._first_steps.setdefault(ClusterRef(step.cluster, run_object.ref), step.id)
        predecessors: dict[str, list[str]] = {}
        for edge in head.edges:
            predecessors.setdefault(edge.after, []).append(edge.before)
        self._readiness: dict[str, _Readiness] = {}
        for step in head.steps:  # a joint is ready when its predecessors are
            readiness = _Readiness()
            for predecessor in predecessors.get(step.id, ()) if not step.objects else ():
                readiness = readiness.merged_with(self._readiness.get(predecessor, _Readiness()))
            for evidence, is_final in self._ready_evidence(step):
                added = _Readiness(final=evidence) if is_final else _Readiness(revocable=evidence)
                readiness = readiness.merged_with(added)
            self._readiness[step.id] = readiness

    def last_ready(self, step: str) -> OrderEvidence | None:
        """Return the evidence of the last object of a step that became ready, or None."""
        readiness = self._readiness.get(step, _Readiness())
        return latest(readiness.final, readiness.revocable)

    def first_write(self, step: RunStep, since: Ms | None = None) -> OrderEvidence | None:
        """Return the evidence of the first write of a step after `since`, or None."""
        return min(
            self._write_evidence(step, since), key=lambda evidence: evidence.at, default=None
        )

    def check_pair(self, pair: OrderPair) -> OrderPair:
        """Return the pair with the evidence of the cluster."""
        after, readiness = self._steps[pair.after], self._readiness.get(pair.before, _Readiness())
        before_evidence = latest(readiness.final, readiness.revocable)
        if before_evidence is None:
            return _with_state(
                pair, PairState.UNPROVEN, "no object of the earlier step shows when it was ready"
            )
        since = self._rollout_start(before_evidence.unit, after.unit)
        after_evidence = self.first_write(after, since)
        if after_evidence is None:
            was_written = self.first_write(after) is not None
            return _with_state(
                pair, *(NOT_WRITTEN if was_written else NOT_OBSERVED), before_evidence
            )
        for evidence, is_final in ((readiness.final, True), (readiness.revocable, False)):
            if evidence is not None and _whole_seconds(after_evidence.at) < _whole_seconds(
                evidence.at
            ):
                is_conclusive = is_final or self._is_before_gate(evidence)
                return _with_state(
                    pair,
                    *self._violation_state(since, is_conclusive=is_conclusive),
                    evidence,
                    after_evidence,
                )
        if _whole_seconds(after_evidence.at) == _whole_seconds(before_evidence.at):
            return _with_state(
                pair,
                PairState.UNPROVEN,
                "both timestamps are in the same second",
                before_evidence,
                after_evidence,
            )
        return _with_state(pair, PairState.RESPECTED, "", before_evidence, after_evidence)

    def _violation_state(self, since: Ms | None, *, is_conclusive: bool) -> tuple[PairState, str]:
        if since is None:
            return PairState.UNPROVEN, "unknown whether both belong to the same rollout"
        if is_conclusive:
            return PairState.VIOLATED, ""
        has_record = self._inputs.passed_at is not None
        return PairState.UNPROVEN, CHANGED_SINCE if has_record else MAYBE_CHANGED_SINCE

    def _is_before_gate(self, evidence: OrderEvidence) -> bool:
        """Return whether the gate opened after this time, by the record, so that it is of the
        rollout.
        """
        gate_opened_at = (self._inputs.passed_at or {}).get(evidence.step)
        return gate_opened_at is not None and _whole_seconds(evidence.at) <= _whole_seconds(
            gate_opened_at
        )

    def _rollout_start(self, *units: UnitId) -> Ms | None:
        """Return when the latest rollout of these units started, or None if one is unknown."""
        starts = [self._inputs.started_at(unit) for unit in units]
        known_starts = [start for start in starts if start is not None]
        return max(known_starts) if len(known_starts) == len(starts) else None

    def _ready_evidence(self, step: RunStep) -> Iterator[tuple[OrderEvidence, bool]]:
        for run_object, observed in self._observed(step):
            if run_object.action not in READINESS_ACTIONS or not run_object.is_gating:
                continue
            yield self._evidence(step, run_object, observed.created_at), True
            if self._inputs.is_unit_resource(run_object):
                continue
            if observed.written_at is not None:
                yield self._evidence(step, run_object, observed.written_at, "written"), False
            if observed.ready_at is not None:
                yield (
                    self._evidence(step, run_object, observed.ready_at, "ready"),
                    observed.is_final,
                )

    def _write_evidence(self, step: RunStep, since: Ms | None) -> Iterator[OrderEvidence]:
        for run_object, observed in self._observed(step):
            is_first = self._first_steps[ClusterRef(step.cluster, run_object.ref)] == step.id
            # Several units may contain a namespace: only the first one counts.
            if run_object.action not in WRITE_ACTIONS or not is_first:
                continue
            if since is None or _whole_seconds(observed.created_at) >= _whole_seconds(since):
                yield self._evidence(step, run_object, observed.created_at)
            elif observed.written_at is not None and _whole_seconds(
                observed.written_at
            ) >= _whole_seconds(since):
                yield self._evidence(step, run_object, observed.written_at, "written")

    def _observed(self, step: RunStep) -> Iterator[tuple[RunObject, ObservedObject]]:
        for run_object in step.objects:
            observed = self._inputs.observed_objects.get(ClusterRef(step.cluster, run_object.ref))
            if observed is not None:
                yield run_object, observed

    def _evidence(
        self, step: RunStep, run_object: RunObject, at: Ms, event: str = "created"
    ) -> OrderEvidence:
        object_ref = ClusterRef(step.cluster, run_object.ref)
        creator = self._inputs.observed_objects[object_ref].created_by if event == "created" else ""
        return OrderEvidence(at, step.id, step.unit, object_ref, event, creator)


NOT_WRITTEN = PairState.IDLE, "the later step wrote nothing in this rollout"
NOT_OBSERVED = PairState.UNPROVEN, "no object of the later step shows when it was written"
CHANGED_SINCE = "the readiness of the earlier step changed after its gate opened"
MAYBE_CHANGED_SINCE = (
    "the readiness of the earlier step may have changed since; only a run record can prove it"
)


def _whole_seconds(time: Ms) -> int:
    return time // SECOND


def _with_state(
    pair: OrderPair,
    state: PairState,
    explanation: str,
    before_evidence: OrderEvidence | None = None,
    after_evidence: OrderEvidence | None = None,
) -> OrderPair:
    return msgspec.structs.replace(
        pair,
        observed=state,
        explanation=explanation,
        before_evidence=before_evidence,
        after_evidence=after_evidence,
    )

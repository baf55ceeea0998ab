"""State of a Job: its counted pods, its outcome, and its status.

The status follows the steps of the Kubernetes job controller. Finished pods are first listed in
the status, then lose their finalizer, then are counted. So the end of a Job takes two writes:
one announces the outcome, one records it.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.kinds import POD
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.batch.job_spec import (
    FAILURES,
    Indexes,
    JobPod,
    JobSpec,
    format_indexes,
    match_success_policy,
    parse_indexes,
    read_job_spec,
    restart_count,
)
from tidegate.sandbox.controllers.conditions import (
    Conditions,
    find_condition,
    new_condition,
    read_timestamp,
)
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.controllers.writes import list_controlled
from tidegate.sandbox.server.lifecycle import format_rfc3339
from tidegate.sandbox.server.store import StoredObject

CRITERIA_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"
PROBE_TIME = "lastProbeTime"


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """A Job and its counted pods. Pods without the tracking finalizer are already in the status."""

    job: StoredObject
    """The Job."""
    spec: JobSpec
    """The parsed spec."""
    pods: tuple[JobPod, ...]
    """The pods of the Job."""
    status: JsonObject
    """The status of the Job."""
    succeeded: int
    """Number of succeeded pods."""
    failed: int
    """Number of failed pods."""
    succeeded_indexes: Indexes
    """Succeeded indexes of an indexed Job."""
    failed_indexes: Indexes
    """Failed indexes, with a backoff limit per index."""

    @property
    def active(self) -> list[JobPod]:
        """The active pods."""
        return [pod for pod in self.pods if pod.is_active]

    @property
    def terminating(self) -> int:
        """The number of pods that are being deleted."""
        return sum(pod.is_terminating for pod in self.pods)

    def awaiting_replacement(self) -> dict[int, JobPod]:
        """Return, by index, the failed pod whose failure count its replacement inherits.

        Like `getPodsWithDelayedDeletionPerIndex` in `pkg/controller/job/indexed_job_utils.go` of
        Kubernetes 1.36.4.
        """
        excluded = self.succeeded_indexes | self.failed_indexes
        excluded |= {pod.index for pod in self.active if pod.index is not None}
        awaiting: dict[int, JobPod] = {}
        for pod in self.pods:
            index = pod.index
            if index is None or index in excluded or not (pod.is_tracked and pod.failed):
                continue
            known = awaiting.get(index)
            if known is None or (known.failures, known.finished_at) <= (
                pod.failures,
                pod.finished_at,
            ):
                awaiting[index] = pod
        return awaiting


class JobOutcome(NamedTuple):
    """The outcome of a Job."""

    is_success: bool
    """Whether the Job has succeeded."""
    reason: str
    """Reason of the condition."""
    message: str
    """Message of the condition."""
    is_recorded: bool = False
    """Whether the status already announces the outcome."""


def read_job_state(reader: ObjectReader, job: StoredObject) -> JobState:
    """Read a Job and count its pods."""
    spec = read_job_spec(job.body)
    pods = tuple(JobPod(pod, spec) for pod in list_controlled(reader, job, POD))
    status = get_mapping(job.body, "status")
    uncounted = [pod for pod in pods if pod.is_tracked and pod.is_valid]
    succeeded_indexes = _succeeded_indexes(spec, status, uncounted)
    newly_succeeded = sum(pod.succeeded for pod in uncounted)
    newly_failed = sum(pod.failed and pod.failure_match.counts_as_failure for pod in uncounted)
    return JobState(
        job=job,
        spec=spec,
        pods=pods,
        status=status,
        succeeded=len(succeeded_indexes)
        if spec.is_indexed
        else get_int(status, "succeeded") + newly_succeeded,
        failed=get_int(status, "failed") + newly_failed,
        succeeded_indexes=succeeded_indexes,
        failed_indexes=_failed_indexes(spec, status, uncounted),
    )


def _succeeded_indexes(spec: JobSpec, status: JsonObject, uncounted: list[JobPod]) -> Indexes:
    if not spec.is_indexed:
        return frozenset()
    counted = parse_indexes(get_text(status, "completedIndexes"), spec.index_count)
    return counted | {pod.index for pod in uncounted if pod.succeeded and pod.index is not None}


def _failed_indexes(spec: JobSpec, status: JsonObject, uncounted: list[JobPod]) -> Indexes:
    if spec.backoff_limit_per_index is None:
        return frozenset()
    counted = parse_indexes(get_text(status, "failedIndexes"), spec.index_count)
    return counted | {
        pod.index for pod in uncounted if pod.index is not None and _fails_index(pod, spec)
    }


def _fails_index(pod: JobPod, spec: JobSpec) -> bool:
    if not pod.failed:
        return False
    if pod.failure_match.action == "FailIndex":
        return True
    limit = spec.backoff_limit_per_index or 0
    return pod.failure_match.counts_as_failure and pod.annotated_count(FAILURES) >= limit


def find_outcome(state: JobState, now: Ms) -> JobOutcome | None:
    """Return the outcome of a Job, or None; completions are checked later, with the pods.

    Like `syncJob`, `pastBackoffLimitOnFailure` and `pastActiveDeadline` in
    `pkg/controller/job/job_controller.go` of Kubernetes 1.36.4.
    """
    return (
        _recorded_outcome(state) or _failure_outcome(state, now) or _success_policy_outcome(state)
    )


def _recorded_outcome(state: JobState) -> JobOutcome | None:
    for name in (CRITERIA_MET, FAILURE_TARGET):
        condition = find_condition(get_mappings(state.status, "conditions"), name)
        if condition is not None and condition.get("status") == "True":
            reason, message = get_text(condition, "reason"), get_text(condition, "message")
            return JobOutcome(name == CRITERIA_MET, reason, message, is_recorded=True)
    return None


def _failure_outcome(state: JobState, now: Ms) -> JobOutcome | None:
    for pod in state.pods:
        if pod.failed and pod.failure_match.action == "FailJob":
            return JobOutcome(False, "PodFailurePolicy", pod.failure_match.message)
    if state.failed > state.spec.backoff_limit or _exceeds_restart_limit(state):
        return JobOutcome(
            False, "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        )
    deadline = job_deadline(state)
    if deadline is not None and now >= deadline:
        return JobOutcome(
            False, "DeadlineExceeded", "Job was active longer than specified deadline"
        )
    spec, failed = state.spec, len(state.failed_indexes)
    if not spec.is_indexed or spec.backoff_limit_per_index is None:
        return None
    if spec.max_failed_indexes is not None and failed > spec.max_failed_indexes:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return JobOutcome(False, "MaxFailedIndexesExceeded", message)
    if failed and failed + len(state.succeeded_indexes) >= spec.index_count:
        return JobOutcome(False, "FailedIndexes", "Job has failed indexes")
    return None


def _success_policy_outcome(state: JobState) -> JobOutcome | None:
    message = match_success_policy(state.spec, state.succeeded_indexes)
    return JobOutcome(True, "SuccessPolicy", message) if message else None


def _exceeds_restart_limit(state: JobState) -> bool:
    if not state.spec.restarts_in_place:
        return False
    unfinished = (pod for pod in state.pods if pod.phase in ("Running", "Pending"))
    restarts = sum(restart_count(pod.stored.body) for pod in unfinished)
    return restarts > 0 if state.spec.backoff_limit == 0 else restarts >= state.spec.backoff_limit


def job_deadline(state: JobState) -> Ms | None:
    """Return when a started Job exceeds `activeDeadlineSeconds`; None without a deadline."""
    start = read_timestamp(state.status.get("startTime"))
    if state.spec.active_deadline is None or start is None or state.spec.is_suspended:
        return None
    return Ms(start + state.spec.active_deadline * SECOND)


class PodCounts(msgspec.Struct, frozen=True):
    """Counts of the unfinished pods of a Job."""

    active: int
    """Number of active pods."""
    ready: int
    """Number of ready pods."""
    terminating: int
    """Number of pods that are being deleted."""

    def after_deletion(self, pods: list[JobPod]) -> PodCounts:
        """Return the counts after these pods were deleted."""
        ready = sum(pod.is_ready for pod in pods)
        deleted = len(pods)
        return PodCounts(self.active - deleted, self.ready - ready, self.terminating + deleted)


class UncountedPods(msgspec.Struct, frozen=True):
    """Finished pods whose tracking finalizer is removed now, and those of them that are counted."""

    released: tuple[JobPod, ...]
    """Pods whose finalizer is removed."""
    succeeded: tuple[JobPod, ...]
    """Succeeded pods to count."""
    failed: tuple[JobPod, ...]
    """Failed pods to count."""


def finished_condition(job: JsonObject) -> str:
    """Return `Complete` or `Failed`; empty for a Job that is not finished."""
    for condition in get_mappings(job, "status", "conditions"):
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            return get_text(condition, "type")
    return ""


def find_uncounted_pods(state: JobState, outcome: JobOutcome | None) -> UncountedPods:
    """Return the finished pods that the status does not count yet."""
    awaited = {pod.uid for pod in state.awaiting_replacement().values()}
    keeps_failed_pods = state.spec.backoff_limit_per_index is not None
    is_over = outcome is not None or state.job.is_deleting
    released = [
        pod
        for pod in state.pods
        if pod.is_tracked
        and (
            is_over
            or pod.succeeded
            or (pod.failed and not (keeps_failed_pods and pod.uid in awaited))
        )
    ]
    is_failure = outcome is not None and not outcome.is_success
    succeeded = [] if state.spec.is_indexed else [pod for pod in released if pod.succeeded]
    failed = [
        pod
        for pod in released
        if not pod.succeeded
        and (pod.failed or is_failure)
        and pod.is_valid
        and pod.failure_match.counts_as_failure
    ]
    return UncountedPods(tuple(released), tuple(succeeded), tuple(failed))


def status_before_counting(
    state: JobState,
    counts: PodCounts,
    uncounted_pods: UncountedPods,
    conditions: Conditions,
    start: str,
) -> JsonObject:
    """Return the status that lists the pods to be counted.

    Like `trackJobStatusAndRemoveFinalizers` in `pkg/controller/job/job_controller.go` of Kubernetes
    1.36.4.
    """
    uids_by_result: dict[str, Json] = {
        name: [pod.uid for pod in pods]
        for name, pods in (
            ("succeeded", uncounted_pods.succeeded),
            ("failed", uncounted_pods.failed),
        )
        if pods
    }
    status: JsonObject = {
        **state.status,
        "active": counts.active,
        "ready": counts.ready,
        "terminating": counts.terminating,
        "uncountedTerminatedPods": uids_by_result,
        "conditions": [*conditions],
        "startTime": start,
    }
    if state.spec.is_indexed:
        status["succeeded"] = len(state.succeeded_indexes)
        status["completedIndexes"] = format_indexes(state.succeeded_indexes)
        if state.spec.backoff_limit_per_index is not None:
            status["failedIndexes"] = format_indexes(state.failed_indexes)
    return _without_empty(status)


def status_after_counting(before: JsonObject, uncounted_pods: UncountedPods) -> JsonObject:
    """Return the status with these pods counted.

    Like `flushUncountedAndRemoveFinalizers` in `pkg/controller/job/job_controller.go` of Kubernetes
    1.36.4.
    """
    return _without_empty(
        {
            **before,
            "succeeded": get_int(before, "succeeded") + len(uncounted_pods.succeeded),
            "failed": get_int(before, "failed") + len(uncounted_pods.failed),
            "uncountedTerminatedPods": {},
        }
    )


def _without_empty(status: JsonObject) -> JsonObject:
    """Return the status without empty fields, except the counts of ready and terminating pods."""
    omitted_if_empty = (
        "active",
        "succeeded",
        "failed",
        "conditions",
        "startTime",
        "completedIndexes",
    )
    return {k: v for k, v in status.items() if v or k not in omitted_if_empty}


def with_target_condition(
    conditions: Conditions, outcome: JobOutcome | None, now: Ms
) -> Conditions:
    """Return the conditions with the one that announces the outcome."""
    if outcome is None or outcome.is_recorded:
        return conditions
    name = CRITERIA_MET if outcome.is_success else FAILURE_TARGET
    return [
        *conditions,
        new_condition(
            name, "True", outcome.reason, outcome.message, now=now, extra_time_field=PROBE_TIME
        ),
    ]


def finished_status(status: JsonObject, outcome: JobOutcome, now: Ms) -> JsonObject:
    """Return the status with the final condition of the Job."""
    name = "Complete" if outcome.is_success else "Failed"
    final_condition = new_condition(
        name, "True", outcome.reason, outcome.message, now=now, extra_time_field=PROBE_TIME
    )
    finished: JsonObject = {
        **status,
        "conditions": [*get_mappings(status, "conditions"), final_condition],
    }
    return finished | ({"completionTime": format_rfc3339(now)} if outcome.is_success else {})


def with_suspended_condition(conditions: Conditions, *, is_suspended: bool, now: Ms) -> Conditions:
    """Return the conditions with Suspended updated; unchanged if the state is the same.

    Like `ensureJobConditionStatus` in `pkg/controller/job/job_controller.go` of Kubernetes 1.36.4.
    """
    status = "True" if is_suspended else "False"
    existing = next(
        (condition for condition in conditions if condition.get("type") == "Suspended"), None
    )
    if (existing is None and not is_suspended) or get_value(existing, "status") == status:
        return conditions
    reason, message = (
        ("JobSuspended", "Job suspended") if is_suspended else ("JobResumed", "Job resumed")
    )
    fresh = new_condition(
        "Suspended", status, reason, message, now=now, extra_time_field=PROBE_TIME
    )
    if existing is None:
        return [*conditions, fresh]
    return [fresh if condition is existing else condition for condition in conditions]

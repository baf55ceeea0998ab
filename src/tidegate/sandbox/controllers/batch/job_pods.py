"""Pods of an unfinished Job: one reconciliation creates or deletes pods, never both."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TypeAlias

from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.kinds import POD
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.batch.job_spec import (
    FAILURES,
    IGNORED_FAILURES,
    INDEX,
    TRACKING,
    JobPod,
    lowest_free_indexes,
    next_creation_time,
    next_creation_time_for_index,
)
from tidegate.sandbox.controllers.batch.job_state import JobState, PodCounts
from tidegate.sandbox.controllers.conditions import read_timestamp
from tidegate.sandbox.controllers.interface import RequeueAt
from tidegate.sandbox.controllers.pods import creation_error, pods_to_delete
from tidegate.sandbox.server.store import StoredObject
from tidegate.world.messages import Outcome, Success
from tidegate.world.requests import Write

MAX_NAME_PREFIX = 58
"""Maximum length of a name before the five characters that the server appends."""
INDEX_VARIABLE: Json = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
}
RECORDER = writes.EventRecorder("job-controller")
SYNC_BATCH_PERIOD = SECOND
"""Time in which changes of pods are batched.

Like `SyncJobBatchPeriod` in `pkg/controller/job/job_controller.go` of Kubernetes 1.36.4.
"""
BURST = 500
"""Maximum number of pods that one reconciliation creates or deletes.

Like `MaxPodCreateDeletePerSync` in `pkg/controller/job/job_controller.go` of Kubernetes 1.36.4.
"""
PodWrites: TypeAlias = Generator[Write | RequeueAt, Outcome | None, PodCounts]
"""Writes, and the pod counts after them."""


def create_pod(state: JobState, index: int | None, replaced: JobPod | None) -> Write:
    """Return the creation of the next pod, for this index in an indexed Job.

    Like `addCompletionIndexAnnotation` and `podGenerateNameWithIndex` in
    `pkg/controller/job/indexed_job_utils.go` of Kubernetes 1.36.4.
    """
    job = state.job
    template = get_mapping(job.body, "spec", "template")
    labels = get_mapping(template, "metadata", "labels")
    annotations = get_mapping(template, "metadata", "annotations")
    spec = get_mapping(template, "spec")
    prefix = f"{job.ref.name}-"
    if index is not None:
        suffix = f"-{index}-"
        prefix = job.ref.name[: MAX_NAME_PREFIX - len(suffix)] + suffix
        labels = {**labels, INDEX: str(index)}
        annotations = {**annotations, INDEX: str(index), **_failure_counts(state, replaced)}
        spec = _indexed_spec(spec, f"{job.ref.name}-{index}")
    finalizers = get_list(template, "metadata", "finalizers")
    metadata: JsonObject = {
        "generateName": prefix,
        "namespace": job.ref.namespace,
        "labels": labels,
        **({"annotations": annotations} if annotations else {}),
        "finalizers": [*(finalizer for finalizer in finalizers if finalizer != TRACKING), TRACKING],
        "ownerReferences": [writes.owner_reference(job)],
    }
    return writes.create(POD, job.ref.namespace, {"metadata": metadata, "spec": spec})


def _failure_counts(state: JobState, replaced: JobPod | None) -> dict[str, Json]:
    if state.spec.backoff_limit_per_index is None:
        return {}
    if replaced is None:
        return {FAILURES: "0"}
    is_counted = replaced.failure_match.counts_as_failure
    ignored = replaced.annotated_count(IGNORED_FAILURES) + (not is_counted)
    annotations: dict[str, Json] = {FAILURES: str(replaced.annotated_count(FAILURES) + is_counted)}
    return annotations | ({IGNORED_FAILURES: str(ignored)} if ignored else {})


def _indexed_spec(spec: dict[str, Json], hostname: str) -> dict[str, Json]:
    spec = {**spec, "hostname": hostname}
    for name in ("initContainers", "containers"):
        if name in spec:
            spec[name] = [_with_index(container) for container in get_mappings(spec, name)]
    return spec


def _with_index(container: dict[str, Json]) -> Json:
    variables = get_list(container, "env")
    if any(get_text(variable, "name") == "JOB_COMPLETION_INDEX" for variable in variables):
        return container
    return {**container, "env": [*variables, INDEX_VARIABLE]}


def delete_active_pods(state: JobState, counts: PodCounts, now: Ms) -> PodWrites:
    """Delete the active pods of a Job whose outcome is decided.

    Like `deleteActivePods` in `pkg/controller/job/job_controller.go` of Kubernetes 1.36.4.
    """
    for pod in state.active:
        yield writes.delete(pod.stored)
        yield _deletion_event(state.job, pod, now)
    return counts.after_deletion(state.active)


def manage_pods(state: JobState, counts: PodCounts, now: Ms) -> PodWrites:
    """Create or delete pods until the desired number is active, never both at once.

    Like `manageJob` in `pkg/controller/job/job_controller.go` of Kubernetes 1.36.4.
    """
    if state.spec.is_suspended:
        return (yield from _delete_pods(state, counts, state.active, now))
    desired = _desired_active(state, counts)
    if surplus := _surplus_pods(state, counts.active - desired):
        return (yield from _delete_pods(state, counts, surplus[:BURST], now))
    waiting = counts.terminating if state.spec.replaces_only_failed else 0
    missing = min(desired - waiting - counts.active, BURST)
    if missing <= 0:
        return counts
    return (yield from _create_pods(state, counts, missing, now))


def _desired_active(state: JobState, counts: PodCounts) -> int:
    if state.spec.completions is None:
        return counts.active if state.succeeded else state.spec.parallelism
    return max(0, min(state.spec.completions - state.succeeded, state.spec.parallelism))


def _surplus_pods(state: JobState, count: int) -> list[JobPod]:
    """Return the pods to delete: those with an invalid or duplicate index, then surplus ones.

    Like `activePodsForRemoval` in `pkg/controller/job/job_controller.go` of Kubernetes 1.36.4.
    """
    remaining, surplus = state.active, list[JobPod]()
    if state.spec.is_indexed:
        seen: set[int] = set()
        for pod in state.active:
            if pod.index is None or pod.index in seen:
                surplus.append(pod)
            else:
                seen.add(pod.index)
        remaining = [pod for pod in remaining if pod not in surplus]
    surplus_uids = {
        pod.uid
        for pod in pods_to_delete([p.stored for p in remaining], max(0, count - len(surplus)))
    }
    return [*surplus, *(pod for pod in remaining if pod.uid in surplus_uids)]


def _delete_pods(state: JobState, counts: PodCounts, pods: list[JobPod], now: Ms) -> PodWrites:
    """Delete pods without counting them as failed: their tracking finalizer is removed first.

    Like `deleteJobPods` in `pkg/controller/job/job_controller.go` of Kubernetes 1.36.4.
    """
    for pod in pods:
        if pod.is_tracked:
            yield remove_tracking(pod)
        yield writes.delete(pod.stored)
        yield _deletion_event(state.job, pod, now)
    return counts.after_deletion(pods)


def _create_pods(state: JobState, counts: PodCounts, missing: int, now: Ms) -> PodWrites:
    awaited = state.awaiting_replacement()
    indexes, start = _indexes_to_create(state, missing, now)
    if start > now:
        yield RequeueAt(Ms(max(start, now + SYNC_BATCH_PERIOD)))
        return counts
    created = 0
    for index in indexes:
        replaced = awaited.get(index) if index is not None else None
        outcome = yield create_pod(state, index, replaced)
        if not isinstance(outcome, Success):
            yield from _retry_creation(state, creation_error(outcome), now)
            break
        created += 1
        name = outcome.live.ref.name if outcome.live else ""
        yield RECORDER.record(state.job, "SuccessfulCreate", f"Created pod: {name}", now)
    return PodCounts(counts.active + created, counts.ready, counts.terminating)


def _indexes_to_create(state: JobState, missing: int, now: Ms) -> tuple[list[int | None], Ms]:
    """Return the indexes to create pods for, and the earliest time to do so.

    Like `firstPendingIndexes` in `pkg/controller/job/indexed_job_utils.go` and
    `getPodCreationInfoForIndependentIndexes` in `pkg/controller/job/job_controller.go` of
    Kubernetes 1.36.4.
    """
    spec = state.spec
    if spec.backoff_limit_per_index is None:
        start = next_creation_time(state.pods, state.failed)
        if not spec.is_indexed:
            return [None] * missing, start
        return [*lowest_free_indexes(missing, spec.index_count, _taken_indexes(state))], start
    awaited = state.awaiting_replacement()
    free = lowest_free_indexes(missing, spec.index_count, _taken_indexes(state))
    starts = [(next_creation_time_for_index(awaited.get(index)), index) for index in free]
    ready: list[int | None] = [index for start, index in starts if start <= now]
    return ready, Ms(0) if ready else min((start for start, _ in starts), default=Ms(0))


def _taken_indexes(state: JobState) -> frozenset[int]:
    unfinished = state.active
    if state.spec.replaces_only_failed:
        unfinished += [pod for pod in state.pods if pod.is_terminating]
    pod_indexes = {pod.index for pod in unfinished if pod.index is not None}
    return state.succeeded_indexes | state.failed_indexes | pod_indexes


def _retry_creation(state: JobState, error: str, now: Ms) -> Iterator[Write | RequeueAt]:
    """Record the error, and try again after 1 s, 2 s, 4 s, ... up to a minute."""
    if not error:
        return
    yield RECORDER.record_warning(state.job, "FailedCreate", f"Error creating: {error}", now)
    start_times = [read_timestamp(state.status.get("startTime"))]
    start_times += [
        read_timestamp(pod.stored.metadata.get("creationTimestamp")) for pod in state.pods
    ]
    since = max((start_time for start_time in start_times if start_time is not None), default=now)
    tries = ((now - since) // SECOND + 1).bit_length() - 1
    yield RequeueAt(Ms(now + min(SECOND << tries, MINUTE)))


def _deletion_event(job: StoredObject, pod: JobPod, now: Ms) -> Write:
    return RECORDER.record(job, "SuccessfulDelete", f"Deleted pod: {pod.stored.ref.name}", now)


def remove_tracking(pod: JobPod) -> Write:
    """Return the removal of the tracking finalizer of a pod."""
    return writes.remove_finalizer(pod.stored, TRACKING)

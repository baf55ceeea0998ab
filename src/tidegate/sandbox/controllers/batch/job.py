"""Jobs: create pods until enough have succeeded, or too many have failed.

The Kubernetes controller reconciles at once when a Job is created or its spec changes, and a
second after its pods or its status change. So two controllers share one reconcile function. Two
more clean up: one deletes Jobs after their TTL, one removes the finalizer from orphaned pods.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.kinds import JOB, POD
from tidegate.model.k8s.objects import Propagation, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.batch.job_pods import (
    RECORDER,
    SYNC_BATCH_PERIOD,
    delete_active_pods,
    manage_pods,
    remove_tracking,
)
from tidegate.sandbox.controllers.batch.job_spec import TRACKING, optional_int
from tidegate.sandbox.controllers.batch.job_state import (
    JobOutcome,
    JobState,
    PodCounts,
    find_outcome,
    find_uncounted_pods,
    finished_condition,
    finished_status,
    job_deadline,
    read_job_state,
    status_after_counting,
    status_before_counting,
    with_suspended_condition,
    with_target_condition,
)
from tidegate.sandbox.controllers.conditions import (
    Conditions,
    conditions_of,
    find_condition,
    read_timestamp,
)
from tidegate.sandbox.controllers.interface import (
    Controller,
    ObjectReader,
    Reconciliation,
    RequeueAt,
)
from tidegate.sandbox.server.lifecycle import format_rfc3339
from tidegate.sandbox.server.store import StoredObject, StoreEvent, get_owner_references
from tidegate.world.messages import WatchEventType
from tidegate.world.requests import Write


def reconcile_job(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
    """Evaluate a Job by its pods, create or delete pods, and update its status.

    Like `syncJob` in `pkg/controller/job/job_controller.go` of Kubernetes 1.36.4.
    """
    job = reader.get(ref)
    if job is None or finished_condition(job.body):
        return
    state = read_job_state(reader, job)
    if state.spec.is_managed_elsewhere:
        return
    outcome = find_outcome(state, now)
    active = state.active
    counts = PodCounts(len(active), sum(pod.is_ready for pod in active), state.terminating)
    updates_suspension = False
    if outcome is not None:
        counts = yield from delete_active_pods(state, counts, now)
    else:
        if not job.is_deleting:
            counts = yield from manage_pods(state, counts, now)
            updates_suspension = True
        outcome = _completion_outcome(state, counts)
    conditions = conditions_of(state.job)
    if updates_suspension and outcome is None:
        conditions = with_suspended_condition(
            conditions, is_suspended=state.spec.is_suspended, now=now
        )
    yield from _update_job_status(
        state, counts, outcome, with_target_condition(conditions, outcome, now), now
    )
    deadline = job_deadline(state)
    if deadline is not None and deadline > now and outcome is None:
        yield RequeueAt(deadline)


def _completion_outcome(state: JobState, counts: PodCounts) -> JobOutcome | None:
    desired = 1 if state.spec.completions is None else state.spec.completions
    if state.succeeded < desired or counts.active:
        return None
    return JobOutcome(True, "CompletionsReached", "Reached expected number of succeeded pods")


def _update_job_status(
    state: JobState, counts: PodCounts, outcome: JobOutcome | None, conditions: Conditions, now: Ms
) -> Iterator[Write]:
    """Yield status writes: list finished pods, release them, count them, finish the Job.

    Like `trackJobStatusAndRemoveFinalizers` in `pkg/controller/job/job_controller.go` of Kubernetes
    1.36.4.
    """
    known = [
        condition for condition in conditions_of(state.job) if condition.get("type") == "Suspended"
    ]
    changed = known != [
        condition for condition in conditions if condition.get("type") == "Suspended"
    ]
    start = _start_time(state, changed=changed, now=now)
    uncounted_pods = find_uncounted_pods(state, outcome)
    before = status_before_counting(state, counts, uncounted_pods, conditions, start)
    yield from writes.update_status(state.job, before)
    if changed:
        reason = "Suspended" if state.spec.is_suspended else "Resumed"
        yield RECORDER.record(state.job, reason, f"Job {reason.lower()}", now)
    yield from (remove_tracking(pod) for pod in uncounted_pods.released)
    after = status_after_counting(before, uncounted_pods)
    is_over = outcome is not None and counts.terminating == 0
    if outcome is not None and is_over:
        after = finished_status(after, outcome, now)
    if after != before:
        yield writes.set_status(state.job, after)
    if outcome is not None and is_over:
        yield _outcome_event(state.job, outcome, now)


def _start_time(state: JobState, *, changed: bool, now: Ms) -> str:
    """Return the start time: a resumed Job starts again, a suspended one has not started."""
    if state.spec.is_suspended:
        return "" if changed else get_text(state.status, "startTime")
    return (
        format_rfc3339(now)
        if changed
        else get_text(state.status, "startTime", default=format_rfc3339(now))
    )


def _outcome_event(job: StoredObject, outcome: JobOutcome, now: Ms) -> Write:
    if outcome.is_success:
        return RECORDER.record(job, "Completed", "Job completed", now)
    return RECORDER.record_warning(job, outcome.reason, outcome.message, now)


def _is_spec_change(event: StoreEvent) -> bool:
    return event.before is None or event.before.generation != event.stored.generation


def _map_spec_event(_reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == JOB and event.change is not WatchEventType.DELETED and _is_spec_change(event):
        yield ref


def _map_batched_event(_reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == POD:
        owner = writes.controller_of_kind(event.stored, JOB)
        if owner is not None:
            yield owner
    elif ref.kind == JOB and event.change is WatchEventType.MODIFIED and not _is_spec_change(event):
        yield ref


JOBS = Controller("jobs", reconcile_job, _map_spec_event, kinds=(JOB,))
JOB_PODS = Controller(
    "job-pods", reconcile_job, _map_batched_event, delay=SYNC_BATCH_PERIOD, kinds=(POD, JOB)
)


def delete_expired_job(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
    """Delete a Job `ttlSecondsAfterFinished` after its end, its pods first.

    Like `processJob` in `pkg/controller/ttlafterfinished/ttlafterfinished_controller.go` of
    Kubernetes 1.36.4.
    """
    job = reader.get(ref)
    expires_at = _expiry_time(job) if job is not None else None
    if job is None or expires_at is None or job.is_deleting:
        return
    if now < expires_at:
        yield RequeueAt(expires_at)
    else:
        yield writes.delete(job, Propagation.FOREGROUND)


def _expiry_time(job: StoredObject) -> Ms | None:
    ttl = optional_int(job.body, "spec", "ttlSecondsAfterFinished")
    condition = find_condition(
        get_mappings(job.body, "status", "conditions"), finished_condition(job.body)
    )
    finished_at = read_timestamp(condition.get("lastTransitionTime")) if condition else None
    return Ms(finished_at + ttl * SECOND) if finished_at is not None and ttl is not None else None


def release_orphan_pod(reader: ObjectReader, ref: Ref, _now: Ms) -> Reconciliation:
    """Remove the tracking finalizer from a pod whose Job is gone or finished.

    Like `handleSingleOrphanPod` in `pkg/controller/job/job_controller.go` of Kubernetes 1.36.4.
    """
    pod = reader.get(ref)
    if pod is not None and _is_orphan(reader, pod):
        yield writes.remove_finalizer(pod, TRACKING)


def _is_orphan(reader: ObjectReader, pod: StoredObject) -> bool:
    if TRACKING not in pod.finalizers:
        return False
    owner = writes.controller_of_kind(pod, JOB)
    if owner is None:
        return not any(
            reference.get("controller") for reference in get_owner_references(pod.metadata)
        )
    job = reader.get(owner)
    uids = [reference.get("uid") for reference in get_owner_references(pod.metadata)]
    return job is None or job.uid not in uids or finished_condition(job.body) != ""


def _map_finished_job_event(_reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    ref = event.stored.ref
    if (
        ref.kind == JOB
        and event.change is not WatchEventType.DELETED
        and finished_condition(event.stored.body)
    ):
        yield ref


def _map_orphan_pod_event(reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    stored, is_deleted = event.stored, event.change is WatchEventType.DELETED
    if stored.ref.kind == POD and not is_deleted and _is_orphan(reader, stored):
        yield stored.ref
    elif stored.ref.kind == JOB and (is_deleted or finished_condition(stored.body)):
        yield from (owned.ref for owned in reader.list_owned(stored.uid) if owned.ref.kind == POD)


FINISHED_JOBS = Controller(
    "finished-jobs", delete_expired_job, _map_finished_job_event, kinds=(JOB,)
)
ORPHAN_PODS = Controller("left-pods", release_orphan_pod, _map_orphan_pod_event, kinds=(POD, JOB))
JOB_CONTROLLERS = (JOBS, JOB_PODS, FINISHED_JOBS, ORPHAN_PODS)

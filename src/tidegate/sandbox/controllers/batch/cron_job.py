"""CronJobs: create a Job at each scheduled time, and keep a limited history of finished ones."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from typing import TypeAlias

from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.kinds import CRON_JOB, JOB
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.model.units.schedule import (
    CronSchedule,
    FixedInterval,
    ScheduleError,
    parse_schedule,
    parse_time_zone,
)
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.batch.job_spec import optional_int
from tidegate.sandbox.controllers.batch.job_state import finished_condition
from tidegate.sandbox.controllers.conditions import read_timestamp
from tidegate.sandbox.controllers.interface import (
    Controller,
    ObjectReader,
    Reconciliation,
    RequeueAt,
)
from tidegate.sandbox.controllers.writes import EventRecorder
from tidegate.sandbox.server.lifecycle import format_rfc3339
from tidegate.sandbox.server.store import StoredObject
from tidegate.world.messages import AlreadyExists, Outcome, Success, is_error
from tidegate.world.requests import Write

RECORDER = EventRecorder("cronjob-controller")
SKEW = Ms(100)
"""Delay after the full minute with which the controller of Kubernetes reconciles.

Like `nextScheduleDelta` in `pkg/controller/cronjob/cronjob_controllerv2.go` of Kubernetes 1.36.4.
"""
RETRY = Ms(5 * SECOND)
SCHEDULED_TIME = "batch.kubernetes.io/cronjob-scheduled-timestamp"
CONCURRENCY_FORBIDDEN = (
    "Not starting job because prior execution is running and concurrency policy is Forbid"
)
"""Message of the Event for a scheduled time at which a Job is still active.

Like `syncCronJob` in `pkg/controller/cronjob/cronjob_controllerv2.go` of Kubernetes 1.36.4.
"""
HISTORY_LIMITS = (
    ("Complete", "successfulJobsHistoryLimit", 3),
    ("Failed", "failedJobsHistoryLimit", 1),
)
"""Condition, field and default of the two history limits.

Like `SuccessfulJobsHistoryLimit` and `FailedJobsHistoryLimit` in `pkg/apis/batch/v1/defaults.go` of
Kubernetes 1.36.4.
"""
StatusWrites: TypeAlias = Generator[Write | RequeueAt, Outcome | None, JsonObject]
"""Writes, and the new status."""


def reconcile_cron_job(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
    """Delete old Jobs, create a due one, and update the status.

    Like `syncCronJob` and `cleanupFinishedJobs` in `pkg/controller/cronjob/cronjob_controllerv2.go`
    of Kubernetes 1.36.4.
    """
    cron_job = reader.get(ref)
    if cron_job is None:
        return
    jobs = writes.list_controlled(reader, cron_job, JOB)
    status = get_mapping(cron_job.body, "status")
    new_status = yield from _sync_active_jobs(cron_job, jobs, status, now)
    yield from _delete_old_jobs(cron_job, jobs, now)
    if not cron_job.is_deleting and get_value(cron_job.body, "spec", "suspend") is not True:
        new_status = yield from _create_due_job(reader, cron_job, new_status, now)
    yield from writes.update_status(cron_job, new_status)


def _sync_active_jobs(
    cron_job: StoredObject, jobs: list[StoredObject], status: JsonObject, now: Ms
) -> StatusWrites:
    """Remove finished and deleted Jobs from the active ones."""
    active: list[Json] = []
    jobs_by_uid = {job.uid: job for job in jobs}
    for reference in get_mappings(status, "active"):
        job, name = jobs_by_uid.get(get_text(reference, "uid")), get_text(reference, "name")
        finished = finished_condition(job.body) if job else ""
        if job and not finished:
            active.append(reference)
        elif job:
            message = f"Saw completed job: {name}, condition: {finished}"
            yield RECORDER.record(cron_job, "SawCompletedJob", message, now)
        else:
            yield RECORDER.record(cron_job, "MissingJob", f"Active job went missing: {name}", now)
    completion_times = [
        get_text(job.body, "status", "completionTime")
        for job in jobs
        if finished_condition(job.body) == "Complete"
    ]
    last_success = max([get_text(status, "lastSuccessfulTime"), *completion_times])
    return _with_fields(status, active=active, lastSuccessfulTime=last_success)


def _with_fields(status: JsonObject, **fields: Json) -> JsonObject:
    return {name: value for name, value in {**status, **fields}.items() if value}


def _delete_old_jobs(cron_job: StoredObject, jobs: list[StoredObject], now: Ms) -> Iterator[Write]:
    for condition_type, limit_name, default in HISTORY_LIMITS:
        limit = optional_int(cron_job.body, "spec", limit_name)
        finished = [
            job
            for job in jobs
            if finished_condition(job.body) == condition_type and not job.is_deleting
        ]
        finished.sort(key=lambda job: (get_text(job.body, "status", "startTime"), job.ref.name))
        surplus = len(finished) - (default if limit is None else limit)
        for job in finished[: max(0, surplus)]:
            yield writes.delete(job)
            yield _deletion_event(cron_job, job.ref.name, now)


def _deletion_event(cron_job: StoredObject, name: str, now: Ms) -> Write:
    return RECORDER.record(cron_job, "SuccessfulDelete", f"Deleted job {name}", now)


def _create_due_job(
    reader: ObjectReader, cron_job: StoredObject, status: JsonObject, now: Ms
) -> StatusWrites:
    spec = get_mapping(cron_job.body, "spec")
    try:
        schedule = parse_schedule(get_text(spec, "schedule"), get_text(spec, "timeZone"))
    except ScheduleError as error:
        yield RECORDER.record_warning(cron_job, _schedule_error_reason(spec), str(error), now)
        return status
    scheduled_at = _last_missed_time(cron_job, status, schedule, now)
    if scheduled_at is not None and format_rfc3339(scheduled_at) != get_text(
        status, "lastScheduleTime"
    ):
        status = yield from _start_job(reader, cron_job, status, scheduled_at, now)
    next_time = schedule.next_time(now)
    if next_time is not None:
        yield RequeueAt(Ms(next_time + SKEW))
    return status


def _schedule_error_reason(spec: JsonObject) -> str:
    try:
        parse_time_zone(get_text(spec, "timeZone"))
    except ScheduleError:
        return "UnknownTimeZone"
    return "UnparseableSchedule"


def _last_missed_time(
    cron_job: StoredObject, status: JsonObject, schedule: CronSchedule | FixedInterval, now: Ms
) -> Ms | None:
    """Return the last scheduled time that has passed unused; earlier ones are missed for good.

    Like `nextScheduleTime` and `mostRecentScheduleTime` in `pkg/controller/cronjob/utils.go` of
    Kubernetes 1.36.4.
    """
    since = read_timestamp(status.get("lastScheduleTime"))
    if since is None:
        since = read_timestamp(cron_job.metadata.get("creationTimestamp")) or now
    starting_deadline = optional_int(cron_job.body, "spec", "startingDeadlineSeconds")
    if starting_deadline is not None:
        since = Ms(max(since, now - starting_deadline * SECOND))
    return _last_before(schedule, since, now)


def _last_before(schedule: CronSchedule | FixedInterval, since: Ms, now: Ms) -> Ms | None:
    """Return the last scheduled time up to now, or None; long gaps are skipped in one stride."""
    next_time = schedule.next_time(since)
    time_after_next = schedule.next_time(next_time) if next_time is not None else None
    if next_time is not None and time_after_next is not None:
        skipped = (now - next_time) // (time_after_next - next_time) - 1
        if skipped > 0:
            next_time = schedule.next_time(
                Ms(next_time + skipped * (time_after_next - next_time) - 1)
            )
    last = None
    while next_time is not None and next_time <= now:
        last, next_time = next_time, schedule.next_time(next_time)
    return last


def _start_job(
    reader: ObjectReader, cron_job: StoredObject, status: JsonObject, scheduled_at: Ms, now: Ms
) -> StatusWrites:
    policy = get_text(cron_job.body, "spec", "concurrencyPolicy", default="Allow")
    active = get_mappings(status, "active")
    if policy == "Forbid" and active:
        yield RECORDER.record(cron_job, "JobAlreadyActive", CONCURRENCY_FORBIDDEN, now)
        return status
    if policy == "Replace":
        for reference in active:
            job = reader.get(Ref(JOB, cron_job.ref.namespace, get_text(reference, "name")))
            if job is not None:
                yield writes.delete(job)
                yield _deletion_event(cron_job, job.ref.name, now)
        active = []
    outcome = yield _new_job(cron_job, scheduled_at)
    if outcome is None or (is_error(outcome) and not isinstance(outcome, AlreadyExists)):
        message = f"Error creating job: {outcome.message if outcome is not None else ''}"
        yield RECORDER.record_warning(cron_job, "FailedCreate", message, now)
        yield RequeueAt(Ms(now + RETRY))
        return status
    name = _job_name(cron_job, scheduled_at)
    job = reader.get(Ref(JOB, cron_job.ref.namespace, name))
    if job is None or not writes.is_controlled_by(job, cron_job):
        return status
    if isinstance(outcome, Success):
        yield RECORDER.record(cron_job, "SuccessfulCreate", f"Created job {name}", now)
    created: JsonObject = {**writes.object_reference(job), "resourceVersion": str(job.version)}
    return _with_fields(
        status, active=[*active, created], lastScheduleTime=format_rfc3339(scheduled_at)
    )


def _job_name(cron_job: StoredObject, scheduled_at: Ms) -> str:
    return f"{cron_job.ref.name}-{scheduled_at // MINUTE}"


def _new_job(cron_job: StoredObject, scheduled_at: Ms) -> Write:
    template = get_mapping(cron_job.body, "spec", "jobTemplate")
    zone = parse_time_zone(get_text(cron_job.body, "spec", "timeZone"))
    local = datetime.fromtimestamp(scheduled_at // SECOND, UTC).astimezone(zone)
    scheduled_time = local.isoformat().replace("+00:00", "Z")
    labels = get_mapping(template, "metadata", "labels")
    metadata: JsonObject = {
        "name": _job_name(cron_job, scheduled_at),
        "namespace": cron_job.ref.namespace,
        **({"labels": labels} if labels else {}),
        "annotations": {
            **get_mapping(template, "metadata", "annotations"),
            SCHEDULED_TIME: scheduled_time,
        },
        "ownerReferences": [writes.owner_reference(cron_job)],
    }
    body: JsonObject = {"metadata": metadata, "spec": get_mapping(template, "spec")}
    return writes.create(JOB, cron_job.ref.namespace, body)


CRON_JOBS = Controller(
    "cron-jobs", reconcile_cron_job, writes.map_to_owner(CRON_JOB, JOB), kinds=(CRON_JOB, JOB)
)

"""CronJobs: make a Job when its time has come, and keep only so many of those that ended."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from typing import TypeAlias

from tidegate.model.moment import MINUTE, SECOND, Ms
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import mapping, mappings, part, text
from tidegate.model.schedule import (
    Interval,
    Schedule,
    ScheduleError,
    parse_schedule,
    read_zone,
)
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.batch.case import finished_as
from tidegate.sandbox.controllers.batch.order import whole
from tidegate.sandbox.controllers.conditions import moment_of
from tidegate.sandbox.controllers.reaction import At, Controller, Looking, Visible
from tidegate.sandbox.controllers.writes import Voice
from tidegate.sandbox.kinds import CRON_JOB, JOB
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body, Stored
from tidegate.world.calls import Write
from tidegate.world.facts import Done, Exists, Outcome, is_refusal

VOICE = Voice("cronjob-controller")
SKEW = Ms(100)
"""So long behind the minute the real controller looks."""
RETRY = Ms(5 * SECOND)
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
FORBIDDEN = "Not starting job because prior execution is running and concurrency policy is Forbid"
KEPT = (("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1))

Deeds: TypeAlias = Generator[Write | At, Outcome | None, Body]


def keep_schedule(view: Visible, ref: Ref, now: Ms) -> Looking:
    """Tidy up what ended, make what is due, and say what is going on."""
    cron_job = view.get(ref)
    if cron_job is None:
        return
    jobs = writes.controlled(view, cron_job, JOB)
    status = mapping(cron_job.body, "status")
    fresh = yield from _see(cron_job, jobs, status, now)
    yield from _forget_oldest(cron_job, jobs, now)
    if not cron_job.is_deleting and part(cron_job.body, "spec", "suspend") is not True:
        fresh = yield from _make_due(view, cron_job, fresh, now)
    yield from writes.say(cron_job, fresh)


def _see(cron_job: Stored, jobs: list[Stored], status: Body, now: Ms) -> Deeds:
    """Jobs that ended or are gone are no longer active."""
    active: list[Json] = []
    there = {job.uid: job for job in jobs}
    for known in mappings(status, "active"):
        job, name = there.get(text(known, "uid")), text(known, "name")
        ended = finished_as(job.body) if job else ""
        if job and not ended:
            active.append(known)
        elif job:
            said = f"Saw completed job: {name}, condition: {ended}"
            yield VOICE.tell(cron_job, "SawCompletedJob", said, now)
        else:
            yield VOICE.tell(cron_job, "MissingJob", f"Active job went missing: {name}", now)
    passed = [
        text(job.body, "status", "completionTime")
        for job in jobs
        if finished_as(job.body) == "Complete"
    ]
    last = max([text(status, "lastSuccessfulTime"), *passed])
    return _with(status, active=active, lastSuccessfulTime=last)


def _with(status: Body, **parts: Json) -> Body:
    return {name: value for name, value in {**status, **parts}.items() if value}


def _forget_oldest(cron_job: Stored, jobs: list[Stored], now: Ms) -> Iterator[Write]:
    for ending, limit_name, default in KEPT:
        limit = whole(cron_job.body, "spec", limit_name)
        ended = [job for job in jobs if finished_as(job.body) == ending and not job.is_deleting]
        ended.sort(key=lambda job: (text(job.body, "status", "startTime"), job.ref.name))
        surplus = len(ended) - (default if limit is None else limit)
        for job in ended[: max(0, surplus)]:
            yield writes.delete(job)
            yield _deleted(cron_job, job.ref.name, now)


def _deleted(cron_job: Stored, name: str, now: Ms) -> Write:
    return VOICE.tell(cron_job, "SuccessfulDelete", f"Deleted job {name}", now)


def _make_due(view: Visible, cron_job: Stored, status: Body, now: Ms) -> Deeds:
    spec = mapping(cron_job.body, "spec")
    try:
        schedule = parse_schedule(text(spec, "schedule"), text(spec, "timeZone"))
    except ScheduleError as error:
        yield VOICE.warn(cron_job, _trouble(spec), str(error), now)
        return status
    due = _due(cron_job, status, schedule, now)
    if due is not None and timestamp(due) != text(status, "lastScheduleTime"):
        status = yield from _start(view, cron_job, status, due, now)
    following = schedule.next(now)
    if following is not None:
        yield At(Ms(following + SKEW))
    return status


def _trouble(spec: Body) -> str:
    try:
        read_zone(text(spec, "timeZone"))
    except ScheduleError:
        return "UnknownTimeZone"
    return "UnparseableSchedule"


def _due(cron_job: Stored, status: Body, schedule: Schedule | Interval, now: Ms) -> Ms | None:
    """The last time that has come and was not used; those before it are missed for good."""
    begun = moment_of(status.get("lastScheduleTime"))
    if begun is None:
        begun = moment_of(cron_job.metadata.get("creationTimestamp")) or now
    patience = whole(cron_job.body, "spec", "startingDeadlineSeconds")
    if patience is not None:
        begun = Ms(max(begun, now - patience * SECOND))
    return _last_before(schedule, begun, now)


def _last_before(schedule: Schedule | Interval, begun: Ms, now: Ms) -> Ms | None:
    """The last moment up to now. Whole strides of a long time are not walked one by one."""
    following = schedule.next(begun)
    second = schedule.next(following) if following is not None else None
    if following is not None and second is not None:
        strides = (now - following) // (second - following) - 1
        if strides > 0:
            following = schedule.next(Ms(following + strides * (second - following) - 1))
    last = None
    while following is not None and following <= now:
        last, following = following, schedule.next(following)
    return last


def _start(view: Visible, cron_job: Stored, status: Body, due: Ms, now: Ms) -> Deeds:
    policy = text(cron_job.body, "spec", "concurrencyPolicy", default="Allow")
    active = mappings(status, "active")
    if policy == "Forbid" and active:
        yield VOICE.tell(cron_job, "JobAlreadyActive", FORBIDDEN, now)
        return status
    if policy == "Replace":
        for known in active:
            job = view.get(Ref(JOB, cron_job.ref.namespace, text(known, "name")))
            if job is not None:
                yield writes.delete(job)
                yield _deleted(cron_job, job.ref.name, now)
        active = []
    outcome = yield _job_of(cron_job, due)
    if outcome is None or (is_refusal(outcome) and not isinstance(outcome, Exists)):
        said = f"Error creating job: {outcome.message if outcome is not None else ''}"
        yield VOICE.warn(cron_job, "FailedCreate", said, now)
        yield At(Ms(now + RETRY))
        return status
    name = _name(cron_job, due)
    job = view.get(Ref(JOB, cron_job.ref.namespace, name))
    if job is None or not writes.is_controlled_by(job, cron_job):
        return status
    if isinstance(outcome, Done):
        yield VOICE.tell(cron_job, "SuccessfulCreate", f"Created job {name}", now)
    made: Body = {**writes.object_reference(job), "resourceVersion": str(job.version)}
    return _with(status, active=[*active, made], lastScheduleTime=timestamp(due))


def _name(cron_job: Stored, due: Ms) -> str:
    return f"{cron_job.ref.name}-{due // MINUTE}"


def _job_of(cron_job: Stored, due: Ms) -> Write:
    template = mapping(cron_job.body, "spec", "jobTemplate")
    zone = read_zone(text(cron_job.body, "spec", "timeZone"))
    local = datetime.fromtimestamp(due // SECOND, UTC).astimezone(zone)
    stamp = local.isoformat().replace("+00:00", "Z")
    labels = mapping(template, "metadata", "labels")
    metadata: Body = {
        "name": _name(cron_job, due),
        "namespace": cron_job.ref.namespace,
        **({"labels": labels} if labels else {}),
        "annotations": {**mapping(template, "metadata", "annotations"), SCHEDULED: stamp},
        "ownerReferences": [writes.owner_reference(cron_job)],
    }
    body: Body = {"metadata": metadata, "spec": mapping(template, "spec")}
    return writes.create(JOB, cron_job.ref.namespace, body)


CRON_JOBS = Controller(
    "cron-jobs", keep_schedule, writes.with_controlled(CRON_JOB, JOB), kinds=(CRON_JOB, JOB)
)

"""Jobs: make pods until enough have succeeded, or one too many has failed.

The real controller looks at once when a Job is made or its spec changes, and a second after its
pods or its status change. So there are two controllers with one way to look. Two more see to what a
Job leaves behind: itself when its time is up, and pods that nobody counts any more.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Propagation, Ref
from tidegate.model.reading import mappings, text
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.batch.case import (
    JobCase,
    JobEnding,
    UnderWay,
    count_pods,
    deadline_of,
    find_ending,
    finish,
    finished_as,
    foretell,
    note_suspension,
    read_case,
    status_after,
    status_before,
)
from tidegate.sandbox.controllers.batch.managing import BATCH, VOICE, manage, release, stop
from tidegate.sandbox.controllers.batch.order import TRACKING, whole
from tidegate.sandbox.controllers.conditions import (
    Conditions,
    conditions_of,
    find_condition,
    moment_of,
)
from tidegate.sandbox.controllers.reaction import At, Controller, Looking, Visible
from tidegate.sandbox.kinds import JOB, POD
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Stored, Transition, owner_references
from tidegate.world.calls import Write
from tidegate.world.facts import Change


def keep_job(view: Visible, ref: Ref, now: Ms) -> Looking:
    """Judge a Job by its pods, make or delete some, and say how it stands."""
    job = view.get(ref)
    if job is None or finished_as(job.body):
        return
    case = read_case(view, job)
    if case.order.is_foreign:
        return
    ending = find_ending(case, now)
    active = case.active
    running = UnderWay(len(active), sum(pod.is_ready for pod in active), case.terminating)
    suspends = False
    if ending is not None:
        running = yield from stop(case, running, now)
    else:
        if not job.is_deleting:
            running = yield from manage(case, running, now)
            suspends = True
        ending = _completed(case, running)
    conditions = conditions_of(case.job)
    if suspends and ending is None:
        conditions = note_suspension(conditions, suspended=case.order.is_suspended, now=now)
    yield from _report(case, running, ending, foretell(conditions, ending, now), now)
    due = deadline_of(case)
    if due is not None and due > now and ending is None:
        yield At(due)


def _completed(case: JobCase, running: UnderWay) -> JobEnding | None:
    wanted = 1 if case.order.completions is None else case.order.completions
    if case.succeeded < wanted or running.active:
        return None
    return JobEnding(True, "CompletionsReached", "Reached expected number of succeeded pods")


def _report(
    case: JobCase, running: UnderWay, ending: JobEnding | None, conditions: Conditions, now: Ms
) -> Iterator[Write]:
    """Name the pods that ended, let go of them, count them; then say that the Job has ended."""
    known = [one for one in conditions_of(case.job) if one.get("type") == "Suspended"]
    changed = known != [one for one in conditions if one.get("type") == "Suspended"]
    start = _start(case, changed=changed, now=now)
    counting = count_pods(case, ending)
    before = status_before(case, running, counting, conditions, start)
    yield from writes.say(case.job, before)
    if changed:
        reason = "Suspended" if case.order.is_suspended else "Resumed"
        yield VOICE.tell(case.job, reason, f"Job {reason.lower()}", now)
    yield from (release(pod) for pod in counting.released)
    after = status_after(before, counting)
    is_over = ending is not None and running.terminating == 0
    if ending is not None and is_over:
        after = finish(after, ending, now)
    if after != before:
        yield writes.set_status(case.job, after)
    if ending is not None and is_over:
        yield _ended(case.job, ending, now)


def _start(case: JobCase, *, changed: bool, now: Ms) -> str:
    """A Job that is resumed starts anew; one that is suspended has not started."""
    if case.order.is_suspended:
        return "" if changed else text(case.status, "startTime")
    return timestamp(now) if changed else text(case.status, "startTime", default=timestamp(now))


def _ended(job: Stored, ending: JobEnding, now: Ms) -> Write:
    if ending.is_success:
        return VOICE.tell(job, "Completed", "Job completed", now)
    return VOICE.warn(job, ending.reason, ending.message, now)


def _is_respecified(event: Transition) -> bool:
    return event.before is None or event.before.generation != event.stored.generation


def _concerns_at_once(_view: Visible, event: Transition) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == JOB and event.change is not Change.DELETED and _is_respecified(event):
        yield ref


def _concerns_batched(_view: Visible, event: Transition) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == POD:
        owner = writes.controller_of(event.stored, JOB)
        if owner is not None:
            yield owner
    elif ref.kind == JOB and event.change is Change.MODIFIED and not _is_respecified(event):
        yield ref


JOBS = Controller("jobs", keep_job, _concerns_at_once, kinds=(JOB,))
JOB_PODS = Controller("job-pods", keep_job, _concerns_batched, delay=BATCH, kinds=(POD, JOB))


def remove_finished(view: Visible, ref: Ref, now: Ms) -> Looking:
    """Delete a Job `ttlSecondsAfterFinished` after its end, its pods first."""
    job = view.get(ref)
    due = _due(job) if job is not None else None
    if job is None or due is None or job.is_deleting:
        return
    if now < due:
        yield At(due)
    else:
        yield writes.delete(job, Propagation.FOREGROUND)


def _due(job: Stored) -> Ms | None:
    span = whole(job.body, "spec", "ttlSecondsAfterFinished")
    ended = find_condition(mappings(job.body, "status", "conditions"), finished_as(job.body))
    moment = moment_of(ended.get("lastTransitionTime")) if ended else None
    return Ms(moment + span * SECOND) if moment is not None and span is not None else None


def release_pod(view: Visible, ref: Ref, _now: Ms) -> Looking:
    """A pod whose Job is gone or has ended is not held back."""
    pod = view.get(ref)
    if pod is not None and _is_left(view, pod):
        yield writes.without_finalizer(pod, TRACKING)


def _is_left(view: Visible, pod: Stored) -> bool:
    if TRACKING not in pod.finalizers:
        return False
    owner = writes.controller_of(pod, JOB)
    if owner is None:
        return not any(one.get("controller") for one in owner_references(pod.metadata))
    job = view.get(owner)
    uids = [one.get("uid") for one in owner_references(pod.metadata)]
    return job is None or job.uid not in uids or finished_as(job.body) != ""


def _concerns_job(_view: Visible, event: Transition) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == JOB and event.change is not Change.DELETED and finished_as(event.stored.body):
        yield ref


def _concerns_pods(view: Visible, event: Transition) -> Iterator[Ref]:
    stored, is_gone = event.stored, event.change is Change.DELETED
    if stored.ref.kind == POD and not is_gone and _is_left(view, stored):
        yield stored.ref
    elif stored.ref.kind == JOB and (is_gone or finished_as(stored.body)):
        yield from (own.ref for own in view.owned_by(stored.uid) if own.ref.kind == POD)


FINISHED_JOBS = Controller("finished-jobs", remove_finished, _concerns_job, kinds=(JOB,))
LEFT_PODS = Controller("left-pods", release_pod, _concerns_pods, kinds=(POD, JOB))
JOB_CONTROLLERS = (JOBS, JOB_PODS, FINISHED_JOBS, LEFT_PODS)

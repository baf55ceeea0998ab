"""A Job's case: all that is known of it, whether it is decided, and what its status says.

The status goes in the steps of the real controller. Pods that ended are first named in it, then
lose their finalizer, then are counted. So a Job's end is two writes: one that says how it will end,
one that says it has.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, mappings, number, part, text
from tidegate.sandbox.controllers.batch.order import (
    FAILURES,
    Indexes,
    JobPod,
    JobSpec,
    format_indexes,
    match_success,
    parse_indexes,
    read_order,
    restarts_of,
)
from tidegate.sandbox.controllers.conditions import (
    Conditions,
    find_condition,
    moment_of,
    new_condition,
)
from tidegate.sandbox.controllers.reaction import Visible
from tidegate.sandbox.controllers.writes import controlled
from tidegate.sandbox.kinds import POD
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body, Stored

CRITERIA_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"
PROBED = "lastProbeTime"


class JobCase(msgspec.Struct, frozen=True, kw_only=True):
    """A Job and its pods, counted. Pods without the tracking finalizer are in the status."""

    job: Stored
    order: JobSpec
    pods: tuple[JobPod, ...]
    status: Body
    succeeded: int
    failed: int
    succeeded_indexes: Indexes
    failed_indexes: Indexes

    @property
    def active(self) -> list[JobPod]:
        return [pod for pod in self.pods if pod.is_active]

    @property
    def terminating(self) -> int:
        return sum(pod.is_terminating for pod in self.pods)

    def awaiting_replacement(self) -> dict[int, JobPod]:
        """By index, the failed pod whose count of failures its replacement is to inherit."""
        settled = self.succeeded_indexes | self.failed_indexes
        settled |= {pod.index for pod in self.active if pod.index is not None}
        found: dict[int, JobPod] = {}
        for pod in self.pods:
            index = pod.index
            if index is None or index in settled or not (pod.is_tracked and pod.failed):
                continue
            known = found.get(index)
            if known is None or (known.failures, known.finished) <= (pod.failures, pod.finished):
                found[index] = pod
        return found


class JobEnding(NamedTuple):
    """How a Job is to end. `is_noted`: its status says so already."""

    is_success: bool
    reason: str
    message: str
    is_noted: bool = False


def read_case(view: Visible, job: Stored) -> JobCase:
    order = read_order(job.body)
    pods = tuple(JobPod(pod, order) for pod in controlled(view, job, POD))
    status = mapping(job.body, "status")
    fresh = [pod for pod in pods if pod.is_tracked and pod.is_valid]
    done = _succeeded_indexes(order, status, fresh)
    new = sum(pod.succeeded for pod in fresh)
    lost = sum(pod.failed and pod.verdict.counts for pod in fresh)
    return JobCase(
        job=job,
        order=order,
        pods=pods,
        status=status,
        succeeded=len(done) if order.is_indexed else number(status, "succeeded") + new,
        failed=number(status, "failed") + lost,
        succeeded_indexes=done,
        failed_indexes=_failed_indexes(order, status, fresh),
    )


def _succeeded_indexes(order: JobSpec, status: Body, fresh: list[JobPod]) -> Indexes:
    if not order.is_indexed:
        return frozenset()
    counted = parse_indexes(text(status, "completedIndexes"), order.span)
    return counted | {pod.index for pod in fresh if pod.succeeded and pod.index is not None}


def _failed_indexes(order: JobSpec, status: Body, fresh: list[JobPod]) -> Indexes:
    if order.backoff_limit_per_index is None:
        return frozenset()
    counted = parse_indexes(text(status, "failedIndexes"), order.span)
    return counted | {
        pod.index for pod in fresh if pod.index is not None and _fails_index(pod, order)
    }


def _fails_index(pod: JobPod, order: JobSpec) -> bool:
    if not pod.failed:
        return False
    if pod.verdict.action == "FailIndex":
        return True
    limit = order.backoff_limit_per_index or 0
    return pod.verdict.counts and pod.noted(FAILURES) >= limit


def find_ending(case: JobCase, now: Ms) -> JobEnding | None:
    """How the Job ends, if it is decided; completions are looked at later, with the pods."""
    return _noted(case) or _by_failure(case, now) or _by_success_rule(case)


def _noted(case: JobCase) -> JobEnding | None:
    for name in (CRITERIA_MET, FAILURE_TARGET):
        found = find_condition(mappings(case.status, "conditions"), name)
        if found is not None and found.get("status") == "True":
            reason, message = text(found, "reason"), text(found, "message")
            return JobEnding(name == CRITERIA_MET, reason, message, is_noted=True)
    return None


def _by_failure(case: JobCase, now: Ms) -> JobEnding | None:
    for pod in case.pods:
        if pod.failed and pod.verdict.action == "FailJob":
            return JobEnding(False, "PodFailurePolicy", pod.verdict.message)
    if case.failed > case.order.backoff_limit or _restarted_too_often(case):
        return JobEnding(
            False, "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        )
    due = deadline_of(case)
    if due is not None and now >= due:
        return JobEnding(False, "DeadlineExceeded", "Job was active longer than specified deadline")
    order, failed = case.order, len(case.failed_indexes)
    if not order.is_indexed or order.backoff_limit_per_index is None:
        return None
    if order.max_failed_indexes is not None and failed > order.max_failed_indexes:
        why = "Job has exceeded the specified maximal number of failed indexes"
        return JobEnding(False, "MaxFailedIndexesExceeded", why)
    if failed and failed + len(case.succeeded_indexes) >= order.span:
        return JobEnding(False, "FailedIndexes", "Job has failed indexes")
    return None


def _by_success_rule(case: JobCase) -> JobEnding | None:
    message = match_success(case.order, case.succeeded_indexes)
    return JobEnding(True, "SuccessPolicy", message) if message else None


def _restarted_too_often(case: JobCase) -> bool:
    if not case.order.restarts_in_place:
        return False
    going = (pod for pod in case.pods if pod.phase in ("Running", "Pending"))
    restarts = sum(restarts_of(pod.stored.body) for pod in going)
    return restarts > 0 if case.order.backoff_limit == 0 else restarts >= case.order.backoff_limit


def deadline_of(case: JobCase) -> Ms | None:
    """When the Job, once it has started, will have been active for too long."""
    start = moment_of(case.status.get("startTime"))
    if case.order.deadline is None or start is None or case.order.is_suspended:
        return None
    return Ms(start + case.order.deadline * SECOND)


class UnderWay(msgspec.Struct, frozen=True):
    """The pods that are under way."""

    active: int
    ready: int
    terminating: int

    def less(self, pods: list[JobPod]) -> UnderWay:
        """After these were told to go."""
        ready = sum(pod.is_ready for pod in pods)
        gone = len(pods)
        return UnderWay(self.active - gone, self.ready - ready, self.terminating + gone)


class Counting(msgspec.Struct, frozen=True):
    """The pods to be let go of now, and those of them that count."""

    released: tuple[JobPod, ...]
    succeeded: tuple[JobPod, ...]
    failed: tuple[JobPod, ...]


def finished_as(job: Body) -> str:
    """`Complete`, `Failed`, or empty while it goes on."""
    for condition in mappings(job, "status", "conditions"):
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            return text(condition, "type")
    return ""


def count_pods(case: JobCase, ending: JobEnding | None) -> Counting:
    awaited = {pod.uid for pod in case.awaiting_replacement().values()}
    keeps_last = case.order.backoff_limit_per_index is not None
    is_over = ending is not None or case.job.is_deleting
    released = [
        pod
        for pod in case.pods
        if pod.is_tracked
        and (is_over or pod.succeeded or (pod.failed and not (keeps_last and pod.uid in awaited)))
    ]
    is_failure = ending is not None and not ending.is_success
    succeeded = [] if case.order.is_indexed else [pod for pod in released if pod.succeeded]
    failed = [
        pod
        for pod in released
        if not pod.succeeded and (pod.failed or is_failure) and pod.is_valid and pod.verdict.counts
    ]
    return Counting(tuple(released), tuple(succeeded), tuple(failed))


def status_before(
    case: JobCase, running: UnderWay, counting: Counting, conditions: Conditions, start: str
) -> Body:
    """The status while pods are being counted."""
    uncounted: dict[str, Json] = {
        name: [pod.uid for pod in pods]
        for name, pods in (("succeeded", counting.succeeded), ("failed", counting.failed))
        if pods
    }
    status: Body = {
        **case.status,
        "active": running.active,
        "ready": running.ready,
        "terminating": running.terminating,
        "uncountedTerminatedPods": uncounted,
        "conditions": [*conditions],
        "startTime": start,
    }
    if case.order.is_indexed:
        status["succeeded"] = len(case.succeeded_indexes)
        status["completedIndexes"] = format_indexes(case.succeeded_indexes)
        if case.order.backoff_limit_per_index is not None:
            status["failedIndexes"] = format_indexes(case.failed_indexes)
    return _tidy(status)


def status_after(before: Body, counting: Counting) -> Body:
    """The status when they have been counted."""
    return _tidy(
        {
            **before,
            "succeeded": number(before, "succeeded") + len(counting.succeeded),
            "failed": number(before, "failed") + len(counting.failed),
            "uncountedTerminatedPods": {},
        }
    )


def _tidy(status: Body) -> Body:
    """Counts of nothing are not written, other than those of ready and terminating pods."""
    empty = ("active", "succeeded", "failed", "conditions", "startTime", "completedIndexes")
    return {k: v for k, v in status.items() if v or k not in empty}


def foretell(conditions: Conditions, ending: JobEnding | None, now: Ms) -> Conditions:
    """Say how the Job will end."""
    if ending is None or ending.is_noted:
        return conditions
    name = CRITERIA_MET if ending.is_success else FAILURE_TARGET
    return [
        *conditions,
        new_condition(name, "True", ending.reason, ending.message, now=now, dated=PROBED),
    ]


def finish(status: Body, ending: JobEnding, now: Ms) -> Body:
    """Say that the Job has ended."""
    name = "Complete" if ending.is_success else "Failed"
    last = new_condition(name, "True", ending.reason, ending.message, now=now, dated=PROBED)
    finished: Body = {**status, "conditions": [*mappings(status, "conditions"), last]}
    return finished | ({"completionTime": timestamp(now)} if ending.is_success else {})


def note_suspension(conditions: Conditions, *, suspended: bool, now: Ms) -> Conditions:
    """Suspended, or resumed: the same conditions again where nothing changed."""
    status = "True" if suspended else "False"
    known = next((one for one in conditions if one.get("type") == "Suspended"), None)
    if (known is None and not suspended) or part(known, "status") == status:
        return conditions
    reason, message = (
        ("JobSuspended", "Job suspended") if suspended else ("JobResumed", "Job resumed")
    )
    fresh = new_condition("Suspended", status, reason, message, now=now, dated=PROBED)
    if known is None:
        return [*conditions, fresh]
    return [fresh if one is known else one for one in conditions]

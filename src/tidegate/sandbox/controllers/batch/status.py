"""What a Job's status says: counts, indexes and conditions, in the steps of the real controller.

Pods that ended are first named in the status, then lose their finalizer, then are counted. So a
Job's end is two writes: one that says how it will end, one that says it has.
"""

from __future__ import annotations

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.model.reading import mappings, number, part, text
from tidegate.sandbox.controllers.batch.case import CRITERIA_MET, FAILURE_TARGET, Ending, JobCase
from tidegate.sandbox.controllers.batch.indexes import format_indexes
from tidegate.sandbox.controllers.batch.pods import JobPod
from tidegate.sandbox.controllers.conditions import Conditions, new_condition
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body

PROBED = "lastProbeTime"


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


def count_pods(case: JobCase, ending: Ending | None) -> Counting:
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


def foretell(conditions: Conditions, ending: Ending | None, now: Ms) -> Conditions:
    """Say how the Job will end."""
    if ending is None or ending.is_noted:
        return conditions
    name = CRITERIA_MET if ending.is_success else FAILURE_TARGET
    return [
        *conditions,
        new_condition(name, "True", ending.reason, ending.message, now=now, dated=PROBED),
    ]


def finish(status: Body, ending: Ending, now: Ms) -> Body:
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

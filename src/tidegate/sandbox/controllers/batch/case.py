"""A Job's case: all that is known of it, and whether it is decided."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tidegate.model.moment import SECOND, Ms
from tidegate.model.reading import mapping, mappings, number, text
from tidegate.sandbox.controllers.batch.indexes import Indexes, parse_indexes
from tidegate.sandbox.controllers.batch.order import JobSpec, read_order, restarts_of
from tidegate.sandbox.controllers.batch.pods import FAILURES, JobPod
from tidegate.sandbox.controllers.batch.rules import match_success
from tidegate.sandbox.controllers.conditions import find_condition, moment_of
from tidegate.sandbox.controllers.pods import POD
from tidegate.sandbox.controllers.reaction import Sight
from tidegate.sandbox.controllers.writes import controlled
from tidegate.sandbox.server.store import Body, Stored

CRITERIA_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"


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


class Ending(NamedTuple):
    """How a Job is to end. `is_noted`: its status says so already."""

    is_success: bool
    reason: str
    message: str
    is_noted: bool = False


def read_case(view: Sight, job: Stored) -> JobCase:
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


def find_ending(case: JobCase, now: Ms) -> Ending | None:
    """How the Job ends, if it is decided; completions are looked at later, with the pods."""
    return _noted(case) or _by_failure(case, now) or _by_success_rule(case)


def _noted(case: JobCase) -> Ending | None:
    for name in (CRITERIA_MET, FAILURE_TARGET):
        found = find_condition(mappings(case.status, "conditions"), name)
        if found is not None and found.get("status") == "True":
            reason, message = text(found, "reason"), text(found, "message")
            return Ending(name == CRITERIA_MET, reason, message, is_noted=True)
    return None


def _by_failure(case: JobCase, now: Ms) -> Ending | None:
    for pod in case.pods:
        if pod.failed and pod.verdict.action == "FailJob":
            return Ending(False, "PodFailurePolicy", pod.verdict.message)
    if case.failed > case.order.backoff_limit or _restarted_too_often(case):
        return Ending(False, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    due = deadline_of(case)
    if due is not None and now >= due:
        return Ending(False, "DeadlineExceeded", "Job was active longer than specified deadline")
    order, failed = case.order, len(case.failed_indexes)
    if not order.is_indexed or order.backoff_limit_per_index is None:
        return None
    if order.max_failed_indexes is not None and failed > order.max_failed_indexes:
        why = "Job has exceeded the specified maximal number of failed indexes"
        return Ending(False, "MaxFailedIndexesExceeded", why)
    if failed and failed + len(case.succeeded_indexes) >= order.span:
        return Ending(False, "FailedIndexes", "Job has failed indexes")
    return None


def _by_success_rule(case: JobCase) -> Ending | None:
    message = match_success(case.order, case.succeeded_indexes)
    return Ending(True, "SuccessPolicy", message) if message else None


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

"""The pods of a Job: how each of them fares, and when the next one may come."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from tidegate.model.moment import SECOND, Ms
from tidegate.model.reading import mappings, number, part, text
from tidegate.sandbox.controllers.batch.order import JobSpec, RuleMatch, match_failure
from tidegate.sandbox.controllers.conditions import find_condition, moment_of
from tidegate.sandbox.controllers.pods import is_ready
from tidegate.sandbox.server.store import Stored

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
FIRST_BACKOFF = Ms(10 * SECOND)
LONGEST_BACKOFF = Ms(600 * SECOND)


class JobPod:
    """One pod, as its Job sees it."""

    def __init__(self, stored: Stored, order: JobSpec) -> None:
        self.stored = stored
        self._order = order
        self.phase = text(stored.body, "status", "phase")
        self.is_tracked = TRACKING in stored.finalizers
        """Not counted yet: whoever counts it takes the finalizer away."""

    @property
    def uid(self) -> str:
        return self.stored.uid

    @property
    def succeeded(self) -> bool:
        return self.phase == "Succeeded"

    @property
    def is_active(self) -> bool:
        return self.phase not in ("Succeeded", "Failed") and not self.stored.is_deleting

    @property
    def is_terminating(self) -> bool:
        return self.phase not in ("Succeeded", "Failed") and self.stored.is_deleting

    @property
    def is_ready(self) -> bool:
        return is_ready(self.stored)

    @property
    def failed(self) -> bool:
        """A pod that is being deleted has failed, unless the Job waits for how it ends."""
        if self.phase == "Failed":
            return True
        return self.is_terminating and not self._order.replaces_only_failed

    @cached_property
    def verdict(self) -> RuleMatch:
        return match_failure(self._order, self.stored)

    @cached_property
    def index(self) -> int | None:
        """The completion index; None where it has none that counts."""
        told = text(self.stored.metadata, "annotations", INDEX)
        index = int(told) if told.isdigit() else None
        return index if index is not None and index < self._order.span else None

    @property
    def is_valid(self) -> bool:
        return not self._order.is_indexed or self.index is not None

    def noted(self, annotation: str) -> int:
        told = text(self.stored.metadata, "annotations", annotation)
        return int(told) if told.isdigit() else 0

    @property
    def failures(self) -> int:
        """How many pods of its index failed before it."""
        return self.noted(FAILURES) + self.noted(IGNORED_FAILURES)

    @cached_property
    def finished(self) -> Ms:
        """When it ended, as far as it can be told."""
        ends = [
            moment_of(part(one, "state", "terminated", "finishedAt"))
            for one in mappings(self.stored.body, "status", "containerStatuses")
        ]
        known = [end for end in ends if end is not None]
        if known and len(known) == len(ends):
            return max(known)
        ready = find_condition(mappings(self.stored.body, "status", "conditions"), "Ready") or {}
        changed = moment_of(ready.get("lastTransitionTime"))
        if ready.get("status") == "False" and changed is not None:
            return changed
        metadata = self.stored.metadata
        if (deleted := moment_of(metadata.get("deletionTimestamp"))) is not None:
            return Ms(deleted - number(metadata, "deletionGracePeriodSeconds") * SECOND)
        return moment_of(metadata.get("creationTimestamp")) or Ms(0)


def pause_after(failures: int) -> Ms:
    """How long after the last of so many failures the next pod may come: 10 s, 20 s, 40 s, ..."""
    if failures <= 0:
        return Ms(0)
    return Ms(min(FIRST_BACKOFF << min(failures - 1, 10), LONGEST_BACKOFF))


def next_start(pods: Iterable[JobPod], counted: int) -> Ms:
    """When a Job may make its next pod: failures since its last success hold it back.

    `counted` failures are known from the status; some of their pods may be gone.
    """
    ended = list(pods)
    last_success = max((pod.finished for pod in ended if pod.succeeded), default=None)
    failures = [
        pod.finished
        for pod in ended
        if pod.failed and (last_success is None or pod.finished > last_success)
    ]
    if not failures:
        return Ms(0)
    count = len(failures) if last_success is not None else max(len(failures), counted)
    return Ms(max(failures) + pause_after(count))


def next_start_of_index(last: JobPod | None) -> Ms:
    """When an index may have its next pod, where indexes fail on their own."""
    return Ms(last.finished + pause_after(last.failures + 1)) if last else Ms(0)

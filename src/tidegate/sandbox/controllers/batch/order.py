"""What a Job asks for, and how each of its pods fares.

Its spec, with what Kubernetes puts where nothing is said. Its indexes are written as in its status:
`0,2,3,5-9`. Its rules say what a pod's failure means, and when enough indexes have succeeded.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import msgspec

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mappings, number, part, text
from tidegate.sandbox.controllers.conditions import find_condition, moment_of
from tidegate.sandbox.controllers.pods import is_ready
from tidegate.sandbox.server.store import Body, Stored

Indexes = frozenset[int]
BACKOFF_LIMIT = 6
UNLIMITED = 2**31 - 1
OWN_CONTROLLER = "kubernetes.io/job-controller"
TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
FIRST_BACKOFF = Ms(10 * SECOND)
LONGEST_BACKOFF = Ms(600 * SECOND)


def parse_indexes(text: str, completions: int) -> Indexes:
    """The indexes below `completions`; what is no number is passed over."""
    found: set[int] = set()
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return frozenset(found)


def format_indexes(indexes: Iterable[int]) -> str:
    """Ranges of three and more are written with a dash."""
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(_span(first, last) for first, last in spans)


def _span(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def first_free(count: int, completions: int, taken: Indexes) -> list[int]:
    """The lowest `count` indexes that nobody has."""
    return list(islice((index for index in range(completions) if index not in taken), count))


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A Job's spec, read."""

    parallelism: int
    completions: int | None
    """None: done as soon as one pod succeeds and the others have ended."""
    backoff_limit: int
    backoff_limit_per_index: int | None
    max_failed_indexes: int | None
    deadline: int | None
    is_indexed: bool
    is_suspended: bool
    is_foreign: bool
    """Another controller looks after this Job."""
    restarts_in_place: bool
    replaces_only_failed: bool
    """A pod that is still terminating is not replaced yet."""
    failure_rules: tuple[dict[str, Json], ...]
    success_rules: tuple[dict[str, Json], ...]

    @property
    def span(self) -> int:
        """How many indexes there are."""
        return self.completions or 0


def read_order(job: Body) -> JobSpec:
    spec = part(job, "spec")
    parallelism, completions = whole(spec, "parallelism"), whole(spec, "completions")
    if parallelism is None and completions is None:
        completions = 1
    per_index = whole(spec, "backoffLimitPerIndex")
    limit = whole(spec, "backoffLimit")
    default_limit = BACKOFF_LIMIT if per_index is None else UNLIMITED
    rules = tuple(mappings(spec, "podFailurePolicy", "rules"))
    return JobSpec(
        parallelism=1 if parallelism is None else parallelism,
        completions=completions,
        backoff_limit=default_limit if limit is None else limit,
        backoff_limit_per_index=per_index,
        max_failed_indexes=whole(spec, "maxFailedIndexes"),
        deadline=whole(spec, "activeDeadlineSeconds"),
        is_indexed=text(spec, "completionMode") == "Indexed",
        is_suspended=part(spec, "suspend") is True,
        is_foreign=text(spec, "managedBy") not in ("", OWN_CONTROLLER),
        restarts_in_place=text(spec, "template", "spec", "restartPolicy") == "OnFailure",
        replaces_only_failed=text(spec, "podReplacementPolicy") == "Failed" or bool(rules),
        failure_rules=rules,
        success_rules=tuple(mappings(spec, "successPolicy", "rules")),
    )


def whole(body: Json, *path: str) -> int | None:
    """A number where one is given, zero included."""
    found = part(body, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def restarts_of(pod: Body) -> int:
    """How often the containers of a pod were started again."""
    statuses = (
        *mappings(pod, "status", "initContainerStatuses"),
        *mappings(pod, "status", "containerStatuses"),
    )
    return sum(number(one, "restartCount") for one in statuses)


class RuleMatch(NamedTuple):
    """What the first rule that fits says: `action` is empty where none does."""

    action: str = ""
    message: str = ""

    @property
    def counts(self) -> bool:
        return self.action != "Ignore"


def match_failure(order: JobSpec, pod: Stored) -> RuleMatch:
    """What `podFailurePolicy` makes of a failed pod."""
    for place, rule in enumerate(order.failure_rules):
        action = text(rule, "action")
        if "onExitCodes" in rule:
            why = _by_exit_code(part(rule, "onExitCodes"), pod)
        else:
            why = _by_condition(mappings(rule, "onPodConditions"), pod)
        if why:
            return RuleMatch(action, f"{why} matching {action} rule at index {place}")
    return RuleMatch()


def _by_exit_code(requirement: Json, pod: Stored) -> str:
    only, operator = text(requirement, "containerName"), text(requirement, "operator")
    values = listed(requirement, "values")
    statuses = (
        *mappings(pod.body, "status", "containerStatuses"),
        *mappings(pod.body, "status", "initContainerStatuses"),
    )
    for status in statuses:
        code = whole(status, "state", "terminated", "exitCode")
        name = text(status, "name")
        if code and only in ("", name) and (code in values) is (operator == "In"):
            where = f"{pod.ref.namespace}/{pod.ref.name}"
            return f"Container {name} for pod {where} failed with exit code {code}"
    return ""


def _by_condition(patterns: list[dict[str, Json]], pod: Stored) -> str:
    wanted = [(one.get("type"), one.get("status", "True")) for one in patterns]
    for condition in mappings(pod.body, "status", "conditions"):
        if (condition.get("type"), condition.get("status")) in wanted:
            where = f"{pod.ref.namespace}/{pod.ref.name}"
            return f"Pod {where} has condition {condition.get('type')}"
    return ""


def match_success(order: JobSpec, succeeded: Indexes) -> str:
    """Which rule of `successPolicy` is met; empty where none is."""
    if not succeeded:
        return ""
    for place, rule in enumerate(order.success_rules):
        count, named = whole(rule, "succeededCount"), text(rule, "succeededIndexes")
        wanted = parse_indexes(named, order.span) if named else succeeded
        enough = [len(wanted)] if named else []
        enough += [] if count is None else [count]
        if wanted and enough and len(wanted & succeeded) >= min(enough):
            return f"Matched rules at index {place}"
    return ""


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

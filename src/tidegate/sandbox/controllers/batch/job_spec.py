"""Spec of a Job, and the state of its pods.

Defaults are those of Kubernetes. Indexes have the format of the status: `0,2,3,5-9`. Policies
define what the failure of a pod means, and when enough indexes have succeeded.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import msgspec

from tidegate.model.k8s.json_fields import get_int, get_list, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.conditions import find_condition, read_timestamp
from tidegate.sandbox.controllers.pods import is_ready
from tidegate.sandbox.server.store import StoredObject

Indexes = frozenset[int]
BACKOFF_LIMIT = 6
UNLIMITED = 2**31 - 1
JOB_CONTROLLER = "kubernetes.io/job-controller"
TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
INITIAL_BACKOFF = Ms(10 * SECOND)
MAX_BACKOFF = Ms(600 * SECOND)


def parse_indexes(text: str, completions: int) -> Indexes:
    """Return the indexes below `completions`; parts that are not numbers are ignored.

    Like `parseIndexesFromString` in `pkg/controller/job/indexed_job_utils.go` of Kubernetes 1.36.4.
    """
    indexes: set[int] = set()
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            indexes.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return frozenset(indexes)


def format_indexes(indexes: Iterable[int]) -> str:
    """Return the indexes as text; ranges of three or more are written with a dash."""
    ranges: list[list[int]] = []
    for index in sorted(indexes):
        if ranges and ranges[-1][1] == index - 1:
            ranges[-1][1] = index
        else:
            ranges.append([index, index])
    return ",".join(_format_range(first, last) for first, last in ranges)


def _format_range(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def lowest_free_indexes(count: int, completions: int, taken: Indexes) -> list[int]:
    """Return the lowest `count` indexes that are not taken.

    Like `firstPendingIndexes` in `pkg/controller/job/indexed_job_utils.go` of Kubernetes 1.36.4.
    """
    return list(islice((index for index in range(completions) if index not in taken), count))


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed spec of a Job."""

    parallelism: int
    """Maximum number of active pods."""
    completions: int | None
    """Desired successes; None: complete once one pod succeeded and the others have ended."""
    backoff_limit: int
    """Number of failed pods that the Job tolerates."""
    backoff_limit_per_index: int | None
    """Number of failed pods that an index tolerates; None without such a limit."""
    max_failed_indexes: int | None
    """Number of failed indexes that the Job tolerates; None without such a limit."""
    active_deadline: int | None
    """`activeDeadlineSeconds`; None without a deadline."""
    is_indexed: bool
    """Whether each pod has a completion index."""
    is_suspended: bool
    """Whether the Job is suspended."""
    is_managed_elsewhere: bool
    """Whether another controller manages this Job (`managedBy`)."""
    restarts_in_place: bool
    """Whether the kubelet restarts failed containers (`OnFailure`)."""
    replaces_only_failed: bool
    """Whether a terminating pod is replaced only after it has failed."""
    failure_rules: tuple[dict[str, Json], ...]
    """The rules of `podFailurePolicy`."""
    success_rules: tuple[dict[str, Json], ...]
    """The rules of `successPolicy`."""

    @property
    def index_count(self) -> int:
        """The number of indexes."""
        return self.completions or 0


def read_job_spec(job: JsonObject) -> JobSpec:
    """Return the parsed spec of a Job."""
    spec = get_value(job, "spec")
    parallelism, completions = optional_int(spec, "parallelism"), optional_int(spec, "completions")
    if parallelism is None and completions is None:
        completions = 1
    per_index = optional_int(spec, "backoffLimitPerIndex")
    limit = optional_int(spec, "backoffLimit")
    default_limit = BACKOFF_LIMIT if per_index is None else UNLIMITED
    rules = tuple(get_mappings(spec, "podFailurePolicy", "rules"))
    return JobSpec(
        parallelism=1 if parallelism is None else parallelism,
        completions=completions,
        backoff_limit=default_limit if limit is None else limit,
        backoff_limit_per_index=per_index,
        max_failed_indexes=optional_int(spec, "maxFailedIndexes"),
        active_deadline=optional_int(spec, "activeDeadlineSeconds"),
        is_indexed=get_text(spec, "completionMode") == "Indexed",
        is_suspended=get_value(spec, "suspend") is True,
        is_managed_elsewhere=get_text(spec, "managedBy") not in ("", JOB_CONTROLLER),
        restarts_in_place=get_text(spec, "template", "spec", "restartPolicy") == "OnFailure",
        replaces_only_failed=get_text(spec, "podReplacementPolicy") == "Failed" or bool(rules),
        failure_rules=rules,
        success_rules=tuple(get_mappings(spec, "successPolicy", "rules")),
    )


def optional_int(body: Json, *path: str) -> int | None:
    """Return an integer field, or None if it is absent or no integer."""
    value = get_value(body, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def restart_count(pod: JsonObject) -> int:
    """Return how often the containers of a pod were restarted."""
    statuses = (
        *get_mappings(pod, "status", "initContainerStatuses"),
        *get_mappings(pod, "status", "containerStatuses"),
    )
    return sum(get_int(status, "restartCount") for status in statuses)


class FailureRuleMatch(NamedTuple):
    """The first matching rule of `podFailurePolicy`; `action` is empty without one."""

    action: str = ""
    """The action of the rule, such as `FailJob`."""
    message: str = ""
    """Message for the condition of the Job."""

    @property
    def counts_as_failure(self) -> bool:
        """Whether the failure counts against the backoff limit."""
        return self.action != "Ignore"


def match_failure_policy(spec: JobSpec, pod: StoredObject) -> FailureRuleMatch:
    """Match a failed pod against `podFailurePolicy`.

    Like `pkg/controller/job/pod_failure_policy.go` of Kubernetes 1.36.4.
    """
    for index, rule in enumerate(spec.failure_rules):
        action = get_text(rule, "action")
        if "onExitCodes" in rule:
            problem = _match_exit_code(get_value(rule, "onExitCodes"), pod)
        else:
            problem = _match_condition(get_mappings(rule, "onPodConditions"), pod)
        if problem:
            return FailureRuleMatch(action, f"{problem} matching {action} rule at index {index}")
    return FailureRuleMatch()


def _match_exit_code(requirement: Json, pod: StoredObject) -> str:
    container_name, operator = (
        get_text(requirement, "containerName"),
        get_text(requirement, "operator"),
    )
    values = get_list(requirement, "values")
    statuses = (
        *get_mappings(pod.body, "status", "containerStatuses"),
        *get_mappings(pod.body, "status", "initContainerStatuses"),
    )
    for status in statuses:
        code = optional_int(status, "state", "terminated", "exitCode")
        name = get_text(status, "name")
        if code and container_name in ("", name) and (code in values) is (operator == "In"):
            pod_name = f"{pod.ref.namespace}/{pod.ref.name}"
            return f"Container {name} for pod {pod_name} failed with exit code {code}"
    return ""


def _match_condition(patterns: list[dict[str, Json]], pod: StoredObject) -> str:
    type_and_status = [(pattern.get("type"), pattern.get("status", "True")) for pattern in patterns]
    for condition in get_mappings(pod.body, "status", "conditions"):
        if (condition.get("type"), condition.get("status")) in type_and_status:
            pod_name = f"{pod.ref.namespace}/{pod.ref.name}"
            return f"Pod {pod_name} has condition {condition.get('type')}"
    return ""


def match_success_policy(spec: JobSpec, succeeded: Indexes) -> str:
    """Return which rule of `successPolicy` is met; empty for none.

    Like `pkg/controller/job/success_policy.go` of Kubernetes 1.36.4.
    """
    if not succeeded:
        return ""
    for index, rule in enumerate(spec.success_rules):
        count, rule_indexes = (
            optional_int(rule, "succeededCount"),
            get_text(rule, "succeededIndexes"),
        )
        required = parse_indexes(rule_indexes, spec.index_count) if rule_indexes else succeeded
        thresholds = [len(required)] if rule_indexes else []
        thresholds += [] if count is None else [count]
        if required and thresholds and len(required & succeeded) >= min(thresholds):
            return f"Matched rules at index {index}"
    return ""


class JobPod:
    """A pod of a Job."""

    def __init__(self, stored: StoredObject, spec: JobSpec) -> None:
        self.stored = stored
        self._spec = spec
        self.phase = get_text(stored.body, "status", "phase")
        self.is_tracked = TRACKING in stored.finalizers
        """Whether the pod is not counted yet; counting removes its finalizer."""

    @property
    def uid(self) -> str:
        """The uid of the pod."""
        return self.stored.uid

    @property
    def succeeded(self) -> bool:
        """Whether the pod has succeeded."""
        return self.phase == "Succeeded"

    @property
    def is_active(self) -> bool:
        """Whether the pod is neither finished nor being deleted."""
        return self.phase not in ("Succeeded", "Failed") and not self.stored.is_deleting

    @property
    def is_terminating(self) -> bool:
        """Whether the pod is being deleted and not finished."""
        return self.phase not in ("Succeeded", "Failed") and self.stored.is_deleting

    @property
    def is_ready(self) -> bool:
        """Whether the pod is ready."""
        return is_ready(self.stored)

    @property
    def failed(self) -> bool:
        """Whether the pod failed, or is being deleted and the Job does not wait for its end."""
        if self.phase == "Failed":
            return True
        return self.is_terminating and not self._spec.replaces_only_failed

    @cached_property
    def failure_match(self) -> FailureRuleMatch:
        """The rule of `podFailurePolicy` that the failed pod matches."""
        return match_failure_policy(self._spec, self.stored)

    @cached_property
    def index(self) -> int | None:
        """The completion index; None without a valid one."""
        value = get_text(self.stored.metadata, "annotations", INDEX)
        index = int(value) if value.isdigit() else None
        return index if index is not None and index < self._spec.index_count else None

    @property
    def is_valid(self) -> bool:
        """Whether an indexed Job can count the pod."""
        return not self._spec.is_indexed or self.index is not None

    def annotated_count(self, annotation: str) -> int:
        """Return the number in an annotation; 0 without one."""
        value = get_text(self.stored.metadata, "annotations", annotation)
        return int(value) if value.isdigit() else 0

    @property
    def failures(self) -> int:
        """The number of earlier failed pods of the same index."""
        return self.annotated_count(FAILURES) + self.annotated_count(IGNORED_FAILURES)

    @cached_property
    def finished_at(self) -> Ms:
        """The best known time at which the pod ended.

        Like `getFinishedTime` in `pkg/controller/job/backoff_utils.go` of Kubernetes 1.36.4.
        """
        end_times = [
            read_timestamp(get_value(status, "state", "terminated", "finishedAt"))
            for status in get_mappings(self.stored.body, "status", "containerStatuses")
        ]
        known_times = [end for end in end_times if end is not None]
        if known_times and len(known_times) == len(end_times):
            return max(known_times)
        ready = (
            find_condition(get_mappings(self.stored.body, "status", "conditions"), "Ready") or {}
        )
        changed = read_timestamp(ready.get("lastTransitionTime"))
        if ready.get("status") == "False" and changed is not None:
            return changed
        metadata = self.stored.metadata
        if (deleted := read_timestamp(metadata.get("deletionTimestamp"))) is not None:
            return Ms(deleted - get_int(metadata, "deletionGracePeriodSeconds") * SECOND)
        return read_timestamp(metadata.get("creationTimestamp")) or Ms(0)


def backoff_after(failures: int) -> Ms:
    """Return the delay after this many failures: 10 s, 20 s, 40 s, ...

    Like `getRemainingTimeForFailuresCount` in `pkg/controller/job/backoff_utils.go` of Kubernetes
    1.36.4.
    """
    if failures <= 0:
        return Ms(0)
    return Ms(min(INITIAL_BACKOFF << min(failures - 1, 10), MAX_BACKOFF))


def next_creation_time(pods: Iterable[JobPod], counted: int) -> Ms:
    """Return when a Job may create its next pod: failures since its last success delay it.

    `counted` failures are known from the status; some of their pods may be gone.

    Like `getRemainingTime` in `pkg/controller/job/backoff_utils.go` of Kubernetes 1.36.4.
    """
    all_pods = list(pods)
    last_success = max((pod.finished_at for pod in all_pods if pod.succeeded), default=None)
    failures = [
        pod.finished_at
        for pod in all_pods
        if pod.failed and (last_success is None or pod.finished_at > last_success)
    ]
    if not failures:
        return Ms(0)
    count = len(failures) if last_success is not None else max(len(failures), counted)
    return Ms(max(failures) + backoff_after(count))


def next_creation_time_for_index(last: JobPod | None) -> Ms:
    """Return when an index may get its next pod, with a backoff limit per index.

    Like `getRemainingTimePerIndex` in `pkg/controller/job/backoff_utils.go` of Kubernetes 1.36.4.
    """
    return Ms(last.finished_at + backoff_after(last.failures + 1)) if last else Ms(0)

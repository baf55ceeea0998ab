"""What a Job asks for: its spec, with what Kubernetes puts where nothing is said.

Its indexes are written as in its status: `0,2,3,5-9`. Its rules say what a pod's failure means, and
when enough indexes have succeeded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from tidegate.model.objects import Json
from tidegate.model.reading import listed, mappings, number, part, text
from tidegate.sandbox.server.store import Body, Stored

Indexes = frozenset[int]
BACKOFF_LIMIT = 6
UNLIMITED = 2**31 - 1
OWN_CONTROLLER = "kubernetes.io/job-controller"


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
    free: list[int] = []
    for index in range(completions):
        if len(free) >= count:
            break
        if index not in taken:
            free.append(index)
    return free


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

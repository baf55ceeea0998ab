"""What a Job asks for: its spec, with what Kubernetes puts where nothing is said."""

from __future__ import annotations

import msgspec

from tidegate.model.objects import Json
from tidegate.model.reading import mappings, number, part, text
from tidegate.sandbox.server.store import Body

BACKOFF_LIMIT = 6
UNLIMITED = 2**31 - 1
OWN_CONTROLLER = "kubernetes.io/job-controller"


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

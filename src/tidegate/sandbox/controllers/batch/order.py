"""What a Job asks for: its spec, with what Kubernetes puts where nothing is said."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.objects import Json
from tidegate.sandbox.controllers.parts import count_of, dicts_of, number_of, part_of, text_of
from tidegate.sandbox.server.store import Body

BACKOFF_LIMIT = 6
UNLIMITED = 2**31 - 1
OWN_CONTROLLER = "kubernetes.io/job-controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
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


def read_order(job: Body) -> Order:
    spec = part_of(job, "spec")
    parallelism, completions = number_of(spec, "parallelism"), number_of(spec, "completions")
    if parallelism is None and completions is None:
        completions = 1
    per_index = number_of(spec, "backoffLimitPerIndex")
    limit = number_of(spec, "backoffLimit")
    default_limit = BACKOFF_LIMIT if per_index is None else UNLIMITED
    rules = tuple(dicts_of(spec, "podFailurePolicy", "rules"))
    return Order(
        parallelism=1 if parallelism is None else parallelism,
        completions=completions,
        backoff_limit=default_limit if limit is None else limit,
        backoff_limit_per_index=per_index,
        max_failed_indexes=number_of(spec, "maxFailedIndexes"),
        deadline=number_of(spec, "activeDeadlineSeconds"),
        is_indexed=text_of(spec, "completionMode") == "Indexed",
        is_suspended=part_of(spec, "suspend") is True,
        is_foreign=text_of(spec, "managedBy") not in ("", OWN_CONTROLLER),
        restarts_in_place=text_of(spec, "template", "spec", "restartPolicy") == "OnFailure",
        replaces_only_failed=text_of(spec, "podReplacementPolicy") == "Failed" or bool(rules),
        failure_rules=rules,
        success_rules=tuple(dicts_of(spec, "successPolicy", "rules")),
    )


def restarts_of(pod: Body) -> int:
    """How often the containers of a pod were started again."""
    statuses = (
        *dicts_of(pod, "status", "initContainerStatuses"),
        *dicts_of(pod, "status", "containerStatuses"),
    )
    return sum(count_of(one, "restartCount") for one in statuses)

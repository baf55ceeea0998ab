"""A Job's rules: what a pod's failure means, and when enough indexes have succeeded."""

from __future__ import annotations

from typing import NamedTuple

from tidegate.model.objects import Json
from tidegate.model.reading import listed, mappings, part, text
from tidegate.sandbox.controllers.batch.indexes import Indexes, parse_indexes
from tidegate.sandbox.controllers.batch.order import JobSpec, whole
from tidegate.sandbox.server.store import Stored


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

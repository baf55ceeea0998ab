"""RollingSync: the steps of an ApplicationSet, their Applications, and how many sync at once.

Like `buildAppDependencyList` in `applicationset/progressivesync/progressive_sync.go` of Argo CD
3.6.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.dialect.argo.appset.applications import GeneratedApplication
from tidegate.dialect.argo.finding_collector import FindingCollector
from tidegate.dialect.declared import ApplicationSet
from tidegate.errors import sanitize
from tidegate.model.display import join_quoted
from tidegate.model.finding import Finding
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import FieldPath, Json, JsonObject
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.text.suggest import suggest_one_of
from tidegate.model.units.unit import RollingSyncStep

ROLLING_SYNC, ALL_AT_ONCE = "RollingSync", "AllAtOnce"
REVERSE = "Reverse"
OPERATORS = ("In", "NotIn")
PERCENTAGE = lazy_regex(r"([-+]?\d+)%")
STEPS_PATH: FieldPath = ("spec", "strategy", "rollingSync", "steps")


def rollout_steps(
    appset: ApplicationSet, applications: Sequence[GeneratedApplication]
) -> tuple[dict[str, RollingSyncStep], tuple[Finding, ...]]:
    """Return the step of each Application by name, and the findings about the steps.

    Empty for an ApplicationSet without steps. Number 0: no step matches the Application.
    """
    collector, strategy = (
        FindingCollector(appset.location),
        get_mapping(appset.body, "spec", "strategy"),
    )
    kind = get_text(strategy, "type", default=ALL_AT_ONCE)
    _report_deletion_order(strategy, kind, collector)
    if kind != ROLLING_SYNC:
        if kind != ALL_AT_ONCE:
            message, why = f"unknown strategy `{sanitize(kind)}`", "Argo CD syncs all at once"
            fix = suggest_one_of(kind, (ALL_AT_ONCE, ROLLING_SYNC))
            collector.error("appset.strategy", ("spec", "strategy", "type"), message, why, fix)
        return {}, collector.findings
    steps = get_mappings(strategy, "rollingSync", "steps")
    if not steps:
        why, fix = "Argo CD never syncs its Applications", "add `rollingSync.steps`"
        collector.error("appset.steps", STEPS_PATH[:-1], "`rollingSync` has no steps", why, fix)
        return {}, collector.findings
    numbers = _step_numbers(steps, applications, collector)
    limits = _step_limits(steps, numbers, collector)
    _report_unmatched(numbers, collector)
    phases = {
        application.name: _phase(steps, numbers[application.name], application)
        for application in applications
    }
    is_reversed = get_text(strategy, "deletionOrder").lower() == REVERSE.lower()
    return {
        name: RollingSyncStep(
            number=number,
            limit=limits.get(number),
            label_value=phases[name],
            reverse_deletion=is_reversed,
        )
        for name, number in numbers.items()
    }, collector.findings


def _phase(steps: Sequence[Json], number: int, application: GeneratedApplication) -> str:
    """Return the value of the label by which a step matches an Application; empty if none."""
    step = steps[number - 1] if number else None
    keys = [
        get_text(expression, "key")
        for expression in get_mappings(step, "matchExpressions")
        if get_text(expression, "operator") == "In"
    ]
    return str(application.labels.get(keys[0], "")) if keys else ""


def _report_deletion_order(strategy: JsonObject, kind: str, collector: FindingCollector) -> None:
    """Report a `deletionOrder` that is unknown, or has no effect without steps."""
    path: FieldPath = ("spec", "strategy", "deletionOrder")
    order = get_text(strategy, "deletionOrder", default=ALL_AT_ONCE)
    if order.lower() not in {ALL_AT_ONCE.lower(), REVERSE.lower()}:
        message, why = f"unknown deletion order `{sanitize(order)}`", "Argo CD deletes all at once"
        collector.warn(
            "appset.strategy",
            path,
            message,
            why,
            suggest_one_of(order, (ALL_AT_ONCE, REVERSE)),
        )
    elif order.lower() == REVERSE.lower() and kind != ROLLING_SYNC:
        message = f"`deletionOrder: {sanitize(order)}` has no effect"
        why, fix = (
            "it applies to ApplicationSets with steps only",
            "add `rollingSync`, or remove it",
        )
        collector.warn("appset.strategy", path, message, why, fix)


def has_steps(appset: ApplicationSet) -> bool:
    strategy = get_mapping(appset.body, "spec", "strategy")
    return get_text(strategy, "type") == ROLLING_SYNC and bool(
        get_mappings(strategy, "rollingSync", "steps")
    )


def without_auto_sync(body: JsonObject) -> JsonObject:
    """Return an Application with automated sync disabled; the ApplicationSet syncs it."""
    spec = get_mapping(body, "spec")
    sync = get_mapping(spec, "syncPolicy")
    if not isinstance(sync.get("automated"), dict):
        return body
    disabled: JsonObject = {**get_mapping(sync, "automated"), "enabled": False}
    return {**body, "spec": {**spec, "syncPolicy": {**sync, "automated": disabled}}}


def _step_numbers(
    steps: Sequence[Json], applications: Sequence[GeneratedApplication], collector: FindingCollector
) -> dict[str, int]:
    """Return the first step that matches each Application; several matches are reported."""
    numbers: dict[str, int] = {}
    counts: dict[int, int] = {}
    for application in applications:
        matching = [
            step_number
            for step_number, step in enumerate(steps, 1)
            if matches_step(step, application)
        ]
        numbers[application.name] = matching[0] if matching else 0
        for step_number in matching:
            counts[step_number] = counts.get(step_number, 0) + 1
        if len(matching) > 1:
            message = f"`{application.name}` matches steps {' and '.join(map(str, matching))}"
            why, fix = "Argo CD uses the first one", "make the steps mutually exclusive"
            collector.warn("appset.steps", (*STEPS_PATH, matching[1] - 1), message, why, fix)
    for step_number, step in enumerate(steps, 1):
        for expression_index, expression in enumerate(get_mappings(step, "matchExpressions")):
            path = (*STEPS_PATH, step_number - 1, "matchExpressions", expression_index, "operator")
            _report_operator(get_text(expression, "operator"), path, collector)
    if applications:  # an empty ApplicationSet has its own finding
        _report_empty_steps(
            [step_number for step_number in range(1, len(steps) + 1) if step_number not in counts],
            collector,
        )
    return numbers


def _report_empty_steps(step_numbers: list[int], collector: FindingCollector) -> None:
    if step_numbers:
        is_single = len(step_numbers) == 1
        subject = "step" if is_single else "steps"
        verb = "matches" if is_single else "match"
        numbers = ", ".join(map(str, step_numbers))
        why = f"Argo CD skips {'it' if is_single else 'them'}"
        fix = f"correct {'its' if is_single else 'their'} labels"
        collector.warn(
            "appset.steps",
            (*STEPS_PATH, step_numbers[0] - 1),
            f"{subject} {numbers} {verb} no Application",
            why,
            fix,
        )


def matches_step(step: Json, application: GeneratedApplication) -> bool:
    """Return whether all expressions match the labels. A missing label fails `In` only."""
    for expression in get_mappings(step, "matchExpressions"):
        key, operator = get_text(expression, "key"), get_text(expression, "operator")
        values = get_list(expression, "values")
        if key not in application.labels:
            if operator == "In":
                return False
        elif operator not in OPERATORS or (application.labels[key] in values) is (
            operator == "NotIn"
        ):
            return False
    return True


def _report_operator(operator: str, path: FieldPath, collector: FindingCollector) -> None:
    if operator not in OPERATORS:
        message = f"unknown operator `{sanitize(operator)}` in a step"
        why = "the step matches no Application that has the label"
        collector.error("appset.steps", path, message, why, suggest_one_of(operator, OPERATORS))


def _step_limits(
    steps: Sequence[Json], numbers: dict[str, int], collector: FindingCollector
) -> dict[int, int]:
    """Return `maxUpdate` of each step. Argo CD counts Applications without a step to the first."""
    limits: dict[int, int] = {}
    for step_number, step in enumerate(steps, 1):
        max_update = get_value(step, "maxUpdate")
        count = sum(
            number == step_number or (step_number == 1 and not number)
            for number in numbers.values()
        )
        if max_update is None:
            continue
        limit = max_update_limit(max_update, count)
        if limit is None:
            message = f"`maxUpdate` of step {step_number} is neither a number nor a percentage"
            path, why = (*STEPS_PATH, step_number - 1, "maxUpdate"), "Argo CD uses 1"
            collector.error("appset.steps", path, message, why, "set a value such as `2` or `25%`")
        limits[step_number] = 1 if limit is None else limit
    return limits


def max_update_limit(max_update: Json, count: int) -> int | None:
    """Return `maxUpdate` of a step with `count` Applications; None if it is invalid.

    A percentage is rounded down, and is at least 1 unless it is `0%`.
    """
    if isinstance(max_update, int) and not isinstance(max_update, bool):
        return max(0, max_update)
    percentage = PERCENTAGE.fullmatch(max_update) if isinstance(max_update, str) else None
    if percentage is None:
        return None
    return 0 if max_update == "0%" else max(1, int(percentage[1]) * count // 100)


def _report_unmatched(numbers: dict[str, int], collector: FindingCollector) -> None:
    unmatched = [name for name, number in numbers.items() if not number]
    if unmatched:
        message = f"no step matches {join_quoted(unmatched)}"
        why = "Argo CD does not sync an Application without a step; sync it manually"
        fix = "add a step, or a label that a step matches"
        collector.warn("appset.unmatched", STEPS_PATH, message, why, fix)

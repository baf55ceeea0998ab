"""RollingSync: the steps of a set, which Applications are in which, and how many at once."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.dialect.argo.sets.applications import Application
from tidegate.dialect.argo.sets.asking import Body
from tidegate.dialect.argo.telling import Telling
from tidegate.dialect.declared import DeclaredSet
from tidegate.documents import FieldPath
from tidegate.documents.decoding import suggest
from tidegate.errors import foreign
from tidegate.model.finding import Finding
from tidegate.model.objects import Json
from tidegate.model.patterns import late
from tidegate.model.reading import listed, mapping, mappings, part, text
from tidegate.model.unit import RolloutStep

ROLLING, AT_ONCE = "RollingSync", "AllAtOnce"
REVERSE = "Reverse"
OPERATORS = ("In", "NotIn")
PERCENT = late(r"([-+]?\d+)%")
STEPS: FieldPath = ("spec", "strategy", "rollingSync", "steps")


def steps_of(
    one: DeclaredSet, applications: Sequence[Application]
) -> tuple[dict[str, RolloutStep], tuple[Finding, ...]]:
    """By name, the step of each Application of a set that has some; 0 where none takes it."""
    telling, strategy = Telling(one.where), mapping(one.body, "spec", "strategy")
    kind = text(strategy, "type", default=AT_ONCE)
    _tell_deletion(strategy, kind, telling)
    if kind != ROLLING:
        if kind != AT_ONCE:
            said, why = f"there is no strategy `{foreign(kind)}`", "Argo CD syncs all at once"
            fix = suggest(kind, (AT_ONCE, ROLLING))
            telling.error("argo.set-strategy", ("spec", "strategy", "type"), said, why, fix)
        return {}, telling.findings
    steps = mappings(strategy, "rollingSync", "steps")
    if not steps:
        why, fix = "Argo CD syncs nothing of this set", "write `rollingSync.steps`"
        telling.error("argo.set-steps", STEPS[:-1], "there are no steps", why, fix)
        return {}, telling.findings
    numbers = _numbers(steps, applications, telling)
    limits = _limits(steps, numbers, telling)
    _tell_unmatched(numbers, telling)
    phases = {one.name: _phase(steps, numbers[one.name], one) for one in applications}
    turned = text(strategy, "deletionOrder").lower() == REVERSE.lower()
    return {
        name: RolloutStep(
            number=number, limit=limits.get(number), phase=phases[name], turned=turned
        )
        for name, number in numbers.items()
    }, telling.findings


def _phase(steps: Sequence[Json], number: int, one: Application) -> str:
    """What its label says by which a step takes it; empty where no step does, or by no value."""
    step = steps[number - 1] if number else None
    keys = [
        text(expression, "key")
        for expression in mappings(step, "matchExpressions")
        if text(expression, "operator") == "In"
    ]
    return str(one.labels.get(keys[0], "")) if keys else ""


def _tell_deletion(strategy: Body, kind: str, telling: Telling) -> None:
    """An order of deletion that Argo CD does not know, or does not obey without steps."""
    path: FieldPath = ("spec", "strategy", "deletionOrder")
    order = text(strategy, "deletionOrder", default=AT_ONCE)
    if order.lower() not in {AT_ONCE.lower(), REVERSE.lower()}:
        said, why = f"there is no order `{foreign(order)}`", "Argo CD deletes all at once"
        telling.warn("argo.set-strategy", path, said, why, suggest(order, (AT_ONCE, REVERSE)))
    elif order.lower() == REVERSE.lower() and kind != ROLLING:
        said = f"`deletionOrder: {foreign(order)}` does nothing"
        why, fix = "Argo CD obeys it for sets with steps alone", "add `rollingSync`, or remove it"
        telling.warn("argo.set-strategy", path, said, why, fix)


def has_steps(one: DeclaredSet) -> bool:
    strategy = mapping(one.body, "spec", "strategy")
    return text(strategy, "type") == ROLLING and bool(mappings(strategy, "rollingSync", "steps"))


def unautomated(body: Body) -> Body:
    """An Application whose set syncs it: what it says of automated syncs is kept, and off."""
    spec = mapping(body, "spec")
    sync = mapping(spec, "syncPolicy")
    if not isinstance(sync.get("automated"), dict):
        return body
    off: Body = {**mapping(sync, "automated"), "enabled": False}
    return {**body, "spec": {**spec, "syncPolicy": {**sync, "automated": off}}}


def _numbers(
    steps: Sequence[Json], applications: Sequence[Application], telling: Telling
) -> dict[str, int]:
    """The first step that takes an Application; one that several take is told."""
    numbers: dict[str, int] = {}
    taken: dict[int, int] = {}
    for one in applications:
        fits = [at for at, step in enumerate(steps, 1) if is_taken(step, one)]
        numbers[one.name] = fits[0] if fits else 0
        for at in fits:
            taken[at] = taken.get(at, 0) + 1
        if len(fits) > 1:
            said = f"`{one.name}` is in steps {' and '.join(map(str, fits))}"
            why, fix = "it belongs to the first of them", "make the steps exclude each other"
            telling.warn("argo.set-steps", (*STEPS, fits[1] - 1), said, why, fix)
    for at, step in enumerate(steps, 1):
        for number, expression in enumerate(mappings(step, "matchExpressions")):
            path = (*STEPS, at - 1, "matchExpressions", number, "operator")
            _tell_operator(text(expression, "operator"), path, telling)
    if applications:  # where nothing is generated, that is what is told
        _tell_empty([at for at in range(1, len(steps) + 1) if at not in taken], telling)
    return numbers


def _tell_empty(empty: list[int], telling: Telling) -> None:
    if empty:
        few = len(empty) == 1
        some = "a step takes" if few else f"steps {', '.join(map(str, empty))} take"
        why = f"Argo CD passes over {'it' if few else 'them'}"
        fix = f"correct {'its' if few else 'their'} labels"
        telling.warn("argo.set-steps", (*STEPS, empty[0] - 1), f"{some} no Application", why, fix)


def is_taken(step: Json, one: Application) -> bool:
    """Whether all expressions take its labels. A label that it lacks fails `In` alone."""
    for expression in mappings(step, "matchExpressions"):
        key, operator = text(expression, "key"), text(expression, "operator")
        values = listed(expression, "values")
        if key not in one.labels:
            if operator == "In":
                return False
        elif operator not in OPERATORS or (one.labels[key] in values) is (operator == "NotIn"):
            return False
    return True


def _tell_operator(operator: str, path: FieldPath, telling: Telling) -> None:
    if operator not in OPERATORS:
        said = f"a step has no operator `{foreign(operator)}`"
        why = "it takes no Application that has the label"
        telling.error("argo.set-steps", path, said, why, suggest(operator, OPERATORS))


def _limits(steps: Sequence[Json], numbers: dict[str, int], telling: Telling) -> dict[int, int]:
    """How many of a step may be under way. Argo CD counts those of no step with the first."""
    found: dict[int, int] = {}
    for at, step in enumerate(steps, 1):
        most = part(step, "maxUpdate")
        count = sum(number == at or (at == 1 and not number) for number in numbers.values())
        if most is None:
            continue
        limit = limit_of(most, count)
        if limit is None:
            said = f"`maxUpdate` of step {at} is no number and no percentage"
            path, why = (*STEPS, at - 1, "maxUpdate"), "Argo CD takes it for 1"
            telling.error("argo.set-steps", path, said, why, "write it like `2` or `25%`")
        found[at] = 1 if limit is None else limit
    return found


def limit_of(most: Json, count: int) -> int | None:
    """`maxUpdate` of so many; a percentage is rounded down, and is 1 at least unless it is `0%`."""
    if isinstance(most, int) and not isinstance(most, bool):
        return max(0, most)
    share = PERCENT.fullmatch(most) if isinstance(most, str) else None
    if share is None:
        return None
    return 0 if most == "0%" else max(1, int(share[1]) * count // 100)


def _tell_unmatched(numbers: dict[str, int], telling: Telling) -> None:
    lost = [name for name, number in numbers.items() if not number]
    if lost:
        more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""  # noqa: PLR2004 - a few names
        named = ", ".join(f"`{name}`" for name in lost[:3])
        said = f"no step takes {named}{more}"
        why = "Argo CD never syncs them; somebody has to, by hand"
        telling.warn("argo.set-unmatched", STEPS, said, why, "add a step, or a label")

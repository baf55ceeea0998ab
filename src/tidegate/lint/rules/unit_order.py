"""Rule about units that need objects of other units without waiting for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidegate.lint.context import LintContext
from tidegate.lint.names import object_name
from tidegate.lint.pods import template_path
from tidegate.lint.rule import Diagnostic, DiagnosticTarget, FieldRef, rule
from tidegate.lint.unit_needs import Consequence, UnitNeed, find_unit_needs
from tidegate.lint.unit_positions import WAVE, UnitPair, unit_positions
from tidegate.model.display import count_noun
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.times import MINUTE, Ms, format_duration
from tidegate.model.units.semantics import UNLIMITED, Retry
from tidegate.model.units.unit import Unit, UnitId

APPLICATION, APPLICATION_SET = "Application", "ApplicationSet"
KUSTOMIZATION, HELM_RELEASE, RESOURCE_SET = "Kustomization", "HelmRelease", "ResourceSet"
ADD_HEALTH_CHECK = "add a health check for Application to argocd-cm (ORD011)"
SHORT_RETRY = Ms(2 * MINUTE)
"""A unit that retries after this time or earlier recovers before users notice."""


@rule(
    "ORD063",
    "Unit does not wait for a unit that it needs",
    Severity.ERROR,
    why="nothing orders the two units, so the dependent one may be deployed first",
    fix="order the units: `dependsOn` in Flux, sync waves or RollingSync in Argo CD",
)
def unordered_units(context: LintContext) -> Iterator[Diagnostic]:
    for pair, needs in find_unit_needs(context).items():
        if pair.dependent.kind and pair.provider.kind:
            yield _diagnostic(context, pair, needs)


def _diagnostic(context: LintContext, pair: UnitPair, needs: list[UnitNeed]) -> Diagnostic:
    needs = sorted(needs, key=lambda need: (-need.consequence, need.is_guess))
    worst = needs[0]
    failing_unit = _failing_unit(context, pair, worst)
    remedy = _remedy(context, pair)
    return Diagnostic(
        message=(
            f"`{pair.dependent}` does not wait for `{pair.provider}`, but needs"
            f" {_needs_text(needs)}"
        ),
        at=_unit_target(context, pair.dependent),
        related=tuple(
            target
            for target in (worst.at, worst.provider, _unit_target(context, pair.provider))
            if target is not None
        ),
        sequence=(
            f"nothing orders `{pair.dependent}` after `{pair.provider}`",
            *_consequences(worst, failing_unit),
        ),
        severity=_severity(context, pair, worst, failing_unit),
        fix=remedy.fix,
        snippet=remedy.snippet,
        semantics=(failing_unit.policy.semantics.name,),
        cause=f"{pair.provider} {worst.consequence.name}",
    )


def _needs_text(needs: list[UnitNeed]) -> str:
    """Return the first needed object and the number of the others as text."""
    worst = needs[0]
    others = len({need.name for need in needs}) - 1
    more = f" and {count_noun(others, 'more object')}" if others else ""
    origin = "which is probably part of it" if worst.is_guess else "which it deploys"
    return f"{worst.name}{more}, {origin}"


def _failing_unit(context: LintContext, pair: UnitPair, need: UnitNeed) -> Unit:
    """Return the unit that fails: the one with the object, or the dependent unit itself."""
    return need.dependent.unit if need.dependent is not None else context.units[pair.dependent]


def _unit_target(context: LintContext, unit_id: UnitId) -> DiagnosticTarget:
    unit_resource = context.unit_resources.get(unit_id)
    if unit_resource is None:
        return context.units[unit_id].location
    return FieldRef(unit_resource, ("metadata", "name"))


def _retry(unit: Unit) -> Retry:
    return unit.policy.retry or unit.policy.semantics.retry


def _severity(context: LintContext, pair: UnitPair, need: UnitNeed, unit: Unit) -> Severity:
    """Return the severity: what happens, and how the repository treats order elsewhere.

    A repository without any order between units relies on retries, so what recovers soon is a note.
    So is what recovers by itself, unless another unit waits for the same unit.
    """
    retry, positions = _retry(unit), unit_positions(context)
    has_order = positions.ancestors(pair.dependent)[0] in positions.roots_with_order
    if need.is_guess and not positions.has_dependents(pair.provider) and _is_flux(unit):
        return Severity.NOTE
    match need.consequence:
        case Consequence.REFUSED if not retry.limit:
            return Severity.WARNING if need.is_guess else Severity.ERROR
        case Consequence.REFUSED:
            recovers_soon = retry.limit >= UNLIMITED and retry.backoff_limit <= SHORT_RETRY
            return Severity.WARNING if has_order or not recovers_soon else Severity.NOTE
        case Consequence.FAILS:
            return Severity.WARNING if has_order else Severity.NOTE
        case Consequence.WAITS:
            is_warning = _has_pods(need) and positions.has_dependents(pair.provider)
            return Severity.WARNING if is_warning else Severity.NOTE


def _has_pods(need: UnitNeed) -> bool:
    """Return whether pods wait; the operator of a custom resource tries again by itself."""
    return need.dependent is not None and template_path(need.dependent) is not None


def _is_flux(unit: Unit) -> bool:
    return unit.policy.semantics.name == "flux"


def _consequences(need: UnitNeed, unit: Unit) -> Iterator[str]:
    """Yield what happens to the unit that is deployed too early."""
    obj = object_name(need.dependent.ref) if need.dependent is not None else f"`{unit.id}`"
    match need.consequence:
        case Consequence.REFUSED if need.dependent is None:
            yield f"Flux cannot build `{unit.id}` until {need.name} exists"
            yield _retry_text(unit)
        case Consequence.REFUSED:
            yield f"the API server rejects {obj} until {need.name} exists, so `{unit.id}` fails"
            yield _retry_text(unit)
        case Consequence.FAILS:
            yield f"{obj} needs {need.name}, and fails if it is not ready before the last attempt"
        case Consequence.WAITS:
            yield f"{obj} becomes ready only after {need.name}, then it recovers by itself"


def _retry_text(unit: Unit) -> str:
    retry, engine = _retry(unit), _ENGINES.get(unit.policy.semantics.name, "Tidegate")
    if not retry.limit:
        return f"{engine} does not retry `{unit.id}`"
    if retry.limit >= UNLIMITED and retry.factor == 1:
        return f"{engine} tries again every {format_duration(retry.backoff)}"
    if retry.limit >= UNLIMITED:
        return f"{engine} tries again, at most {format_duration(retry.backoff_limit)} later"
    total = sum(retry.delay(attempt) for attempt in range(1, retry.limit + 1))
    times = "once" if retry.limit == 1 else f"{retry.limit} times"
    return (
        f"{engine} retries {times} within {format_duration(Ms(total))}, and then only after a new"
        " commit or a manual sync"
        if engine == _ENGINES["argocd"]
        else f"{engine} retries {times}, and then gives up"
    )


_ENGINES = {"argocd": "Argo CD", "flux": "Flux"}


class _Remedy(NamedTuple):
    """An edit that orders two units, and the lines to paste."""

    fix: str
    snippet: str = ""


def _remedy(context: LintContext, pair: UnitPair) -> _Remedy:
    dependent, provider = pair
    if unit_positions(context).depends_on(provider, dependent):
        return _Remedy(
            f"`{provider}` depends on `{dependent}`: deploy what both need from a third unit"
        )
    if {dependent.kind, provider.kind} <= {APPLICATION, APPLICATION_SET}:
        return _application_remedy(context, pair)
    if dependent.kind == provider.kind and dependent.kind in {KUSTOMIZATION, HELM_RELEASE}:
        return _Remedy(
            f"add these lines to {dependent.kind} `{dependent.namespace}/{dependent.name}`",
            _depends_on(pair),
        )
    if dependent.kind == RESOURCE_SET and provider in context.unit_resources:
        api_version = get_text(context.unit_resources[provider].body, "apiVersion")
        return _Remedy(
            f"add these lines to ResourceSet `{dependent.namespace}/{dependent.name}`",
            _depends_on(
                pair, f"apiVersion: {api_version}", f"kind: {provider.kind}", "ready: true"
            ),
        )
    if dependent.kind == HELM_RELEASE:
        return _Remedy(f"deploy `{dependent}` from a Kustomization that depends on `{provider}`")
    if dependent.kind == KUSTOMIZATION:
        return _Remedy(f"deploy `{provider}` from a Kustomization, and depend on it")
    return _Remedy("")


def _depends_on(pair: UnitPair, *fields: str) -> str:
    dependent, provider = pair
    lines = [f"name: {provider.name}", *fields]
    if provider.namespace != dependent.namespace:
        lines.append(f"namespace: {provider.namespace}")
    first, *others = lines
    return "\n".join(("spec:", "  dependsOn:", f"  - {first}", *(f"    {line}" for line in others)))


def _application_remedy(context: LintContext, pair: UnitPair) -> _Remedy:
    dependent, provider = pair
    parent = context.units[dependent].parent
    if parent is None or not parent.kind:
        return _Remedy(
            f"deploy both from one parent Application, `{provider.name}` in an earlier wave, and"
            f" {ADD_HEALTH_CHECK}"
        )
    if parent.kind == APPLICATION_SET:
        return _Remedy(
            f"add RollingSync to ApplicationSet `{parent.name}`, with `{provider.name}` in an"
            " earlier step"
        )
    wave = unit_positions(context).wave(provider) + 1
    return _Remedy(
        f"add these lines to {dependent.kind} `{dependent.namespace}/{dependent.name}`, and"
        f" {ADD_HEALTH_CHECK}",
        f'metadata:\n  annotations:\n    {WAVE}: "{wave}"',
    )

"""References of Flux units: health checks, service accounts, variables and values."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from msgspec.structs import replace

from tidegate.documents import Document
from tidegate.lint.context import LintContext, LintObject
from tidegate.lint.names import object_name
from tidegate.lint.outside import outside_sources
from tidegate.lint.rule import Diagnostic, FieldRef
from tidegate.lint.unit_needs import BUILD_DATA_PATHS
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import FieldPath, Kind, Ref
from tidegate.model.text.suggest import find_misspelled
from tidegate.model.units.policy import GateScope
from tidegate.model.units.unit import UnitId

WAITS_UNTIL_TIMEOUT = "Flux waits for the object until the timeout, and the unit fails every time"


def missing_health_check_targets(context: LintContext) -> Iterator[Diagnostic]:
    """Yield health checks of objects that no unit deploys.

    The fix suggests an object with a similar name. Without one, it is a note if the object may be
    part of what is unknown.
    """
    for unit, unit_resource in context.unit_resources.items():
        if unit not in context.units or context.units[unit].policy.gates is not GateScope.LISTED:
            continue
        for at, entry in enumerate(get_mappings(unit_resource.body, "spec", "healthChecks")):
            kind = Kind.of(
                get_text(entry, "apiVersion", default="apps/v1"), get_text(entry, "kind")
            )
            target = Ref(kind, get_text(entry, "namespace"), get_text(entry, "name"))
            refs = [
                lint_object.ref for lint_object in context.objects_of_kind(kind.group, kind.name)
            ]
            if any(_is_same_object(ref, target) for ref in refs) or not target.name:
                continue
            guess = _guess(target, refs)
            cluster = context.units[unit].destination.cluster
            reason = outside_sources(context).reason(cluster, target, (context.units[unit],))
            yield Diagnostic(
                message=f"`{unit}` waits for {object_name(target)}, which is not in this"
                " repository",
                at=FieldRef(unit_resource, ("spec", "healthChecks", at)),
                severity=(
                    Severity.ERROR if guess else Severity.NOTE if reason else Severity.WARNING
                ),
                why=(
                    WAITS_UNTIL_TIMEOUT
                    if guess
                    else reason
                    or f"unless the object already exists in the cluster, {WAITS_UNTIL_TIMEOUT}"
                ),
                fix=f"did you mean {object_name(guess)}?" if guess else "",
                semantics=("flux",),
            )


def missing_service_accounts(context: LintContext) -> Iterator[Diagnostic]:
    """Yield missing service accounts of units, if there is one with a similar name."""
    refs = [lint_object.ref for lint_object in context.objects_of_kind("", "ServiceAccount")]
    for unit, unit_resource in context.unit_resources.items():
        account = get_text(unit_resource.body, "spec", "serviceAccountName")
        names = {ref.name for ref in refs if ref.namespace == unit.namespace}
        if unit.kind not in BUILD_DATA_PATHS or not account or account in names:
            continue
        if closest := find_misspelled(account, names):
            yield Diagnostic(
                message=(
                    f"`{unit}` uses ServiceAccount `{unit.namespace}/{account}`, which is not in"
                    " this repository"
                ),
                at=FieldRef(unit_resource, ("spec", "serviceAccountName")),
                why="a missing ServiceAccount has no permissions, so Flux applies nothing",
                fix=f"did you mean `{closest}`?",
                semantics=("flux",),
            )


def build_data_deadlocks(context: LintContext) -> Iterator[Diagnostic]:
    """Yield variables and values that only the unit itself deploys, or a unit that waits for it.

    Without them Flux does not build the unit, so the unit never becomes ready.
    """
    for unit, unit_resource in context.unit_resources.items():
        if unit not in context.units or unit not in context.order.units:
            continue
        path = BUILD_DATA_PATHS.get(unit.kind, ())
        for at, entry in enumerate(get_mappings(unit_resource.body, *path)):
            kind, data_name = get_text(entry, "kind"), get_text(entry, "name")
            providers = [
                lint_object
                for lint_object in context.objects_of_kind("", kind)
                if (lint_object.ref.namespace, lint_object.ref.name) == (unit.namespace, data_name)
            ]
            if entry.get("optional") or not providers:
                continue
            if all(_is_deployed_after(context, provider, unit) for provider in providers):
                diagnostic = _deadlock(unit, unit_resource, (*path, at), providers[0])
                yield _unless_applied(context, diagnostic, providers)


def unit_waits_for(context: LintContext, obj: LintObject, provider: LintObject | None) -> bool:
    """Return whether the unit of a unit resource starts after the object it refers to."""
    provider_step = context.step_for(provider) if provider else None
    unit_steps = [
        step for unit in obj.manifest.child_units for step in context.order.by_unit.get(unit, ())
    ]
    return provider_step is not None and any(
        context.order.is_after(step.id, provider_step.id) for step in unit_steps
    )


def _is_deployed_after(context: LintContext, provider: LintObject, unit: UnitId) -> bool:
    """Return whether an object is deployed only after a unit has started."""
    step = context.step_for(provider)
    if provider.unit.id == unit:
        return True
    unit_steps = context.order.by_unit.get(unit, ())
    return step is not None and any(
        context.order.is_after(step.id, unit_step.id) for unit_step in unit_steps
    )


def _deadlock(
    unit: UnitId, unit_resource: Document, path: FieldPath, provider: LintObject
) -> Diagnostic:
    is_same_unit = provider.unit.id == unit
    origin = (
        "which the unit itself deploys"
        if is_same_unit
        else f"which `{provider.unit.id}` deploys later"
    )
    return Diagnostic(
        message=f"deadlock: the build of `{unit}` needs {object_name(provider.ref)}, {origin}",
        at=FieldRef(unit_resource, path),
        related=(FieldRef(provider.document),),
        sequence=(
            f"Flux does not build `{unit}` until {object_name(provider.ref)} exists",
            (
                f"`{provider.unit.id}` deploys {object_name(provider.ref)} only after this build,"
                f" so `{unit}` waits forever"
            ),
        ),
        why=f"on an empty cluster `{unit}` and the units that depend on it never become Ready",
        fix=(
            f"move {object_name(provider.ref)} to a unit that `{unit}` depends on, or set"
            " `optional: true`"
        ),
        semantics=("flux",),
    )


def _unless_applied(
    context: LintContext, diagnostic: Diagnostic, providers: list[LintObject]
) -> Diagnostic:
    """Return a note where a script of the repository applies the file of an object."""
    for provider in providers:
        name = posixpath.basename(provider.document.location.name)
        if script := context.applying_scripts.get(name):
            why = f"`{script}` seems to apply `{name}` before"
            return replace(diagnostic, severity=Severity.NOTE, why=why)
    return diagnostic


def _is_same_object(ref: Ref, target: Ref) -> bool:
    return ref.name == target.name and ref.namespace in {"", target.namespace}


def _guess(target: Ref, refs: list[Ref]) -> Ref | None:
    """Return the probable target: a similar name in the namespace, or the name in another one."""
    refs_by_name = {ref.name: ref for ref in refs if ref.namespace in {"", target.namespace}}
    namesakes = [ref for ref in refs if ref.name == target.name]
    return refs_by_name.get(find_misspelled(target.name, refs_by_name)) or (
        namesakes[0] if len(namesakes) == 1 else None
    )

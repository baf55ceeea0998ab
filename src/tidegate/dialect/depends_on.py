"""The annotation `tidegate.dev/depends-on` on the resource of a unit.

    tidegate.dev/depends-on: Application/argocd/base, v1/Namespace/shop, apps/v1/Deployment/shop/db

A unit is its kind, namespace and name; an object its version, kind, namespace and name. Only
Tidegate semantics use the annotation.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.dialect.declared import Declarations
from tidegate.documents import Document
from tidegate.errors import Location, sanitize
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.units.depends_on import (
    DEPENDS_ON,
    AwaitedState,
    DependsOnEntry,
    parse_depends_on,
)
from tidegate.model.units.unit import Dependency, UnitId

UNIT_KINDS = frozenset({"Application", "Kustomization", "HelmRelease"})


def with_annotated_dependencies(declared: Declarations, document: Document) -> Declarations:
    """Return the declared units with the dependencies of the annotation."""
    value = get_text(document.body, "metadata", "annotations", DEPENDS_ON)
    if not value or not declared.units:
        return declared
    location = document.location.with_field(f'metadata.annotations["{DEPENDS_ON}"]')
    results = [_read_entry(entry, location) for entry in parse_depends_on(value)]
    dependencies = tuple(result for result in results if isinstance(result, Dependency))
    invalid = tuple(result for result in results if isinstance(result, Finding))
    units = tuple(
        msgspec.structs.replace(
            unit,
            dependencies=(
                *unit.dependencies,
                *(dependency for dependency in dependencies if dependency.unit != unit.id),
            ),
        )
        for unit in declared.units
    )
    self_dependencies = tuple(
        _self_dependency_finding(unit.id, location)
        for unit in units
        if unit.id in _unit_ids(dependencies)
    )
    findings = (*declared.findings, *invalid, *self_dependencies)
    return msgspec.structs.replace(declared, units=units, findings=findings)


def _unit_ids(dependencies: tuple[Dependency, ...]) -> Iterator[UnitId]:
    return (dependency.unit for dependency in dependencies if dependency.unit is not None)


def _read_entry(entry: DependsOnEntry | str, location: Location) -> Dependency | Finding | None:
    """Return the dependency of an entry: a unit, or an object with its version.

    None for an object without a version: the object graph orders it. A unit is waited for until
    its rollout has finished.
    """
    if isinstance(entry, str):
        return _invalid_entry_finding(entry, location)
    is_unit = entry.kind in UNIT_KINDS and entry.namespace and not entry.version
    if is_unit and entry.state is AwaitedState.READY:
        return Dependency(
            unit=UnitId(entry.kind, "", entry.namespace, entry.name),
            location=location,
            is_tidegate_annotation=True,
        )
    if not entry.version:
        return None
    ref = Ref(Kind(entry.group or "", entry.version, entry.kind), entry.namespace, entry.name)
    return Dependency(ref=ref, location=location, is_tidegate_annotation=True, state=entry.state)


def _invalid_entry_finding(entry: str, location: Location) -> Finding:
    return Finding(
        code="units.depends-on",
        severity=Severity.ERROR,
        message=f"`{sanitize(entry)}` is neither a unit nor an object",
        location=location,
        fix="write a unit such as `Application/argocd/base`,"
        " or an object such as `apps/v1/Deployment/shop/db`",
    )


def _self_dependency_finding(unit: UnitId, location: Location) -> Finding:
    problem = "depends on itself"
    return Finding(
        code="units.depends-on",
        severity=Severity.ERROR,
        message=f"`{unit}` {problem}",
        location=location,
        reason="the unit waits for itself and never starts",
        fix="remove the entry",
        unit=unit,
        unit_problem=problem,
    )

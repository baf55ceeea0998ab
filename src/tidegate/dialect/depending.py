"""Our own annotation on the object of a unit: what else it waits for, of whichever kind.

    tidegate.dev/depends-on: Application/argocd/base, v1/Namespace/shop, apps/v1/Deployment/shop/db

A unit is its kind, namespace and name; an object its version, kind, namespace and name. Only our
own rules know of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.dialect.declared import Declared
from tidegate.documents import Document
from tidegate.errors import Place, foreign
from tidegate.model.depends_on import DEPENDS_ON, AwaitedState, DependsOn, read_depends_on
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Kind, Ref
from tidegate.model.reading import text
from tidegate.model.unit import Dependency, UnitId

UNITS = frozenset({"Application", "Kustomization", "HelmRelease"})


def with_own_dependencies(declared: Declared, document: Document) -> Declared:
    """The units of an object, with what its annotation adds."""
    said = text(document.body, "metadata", "annotations", DEPENDS_ON)
    if not said or not declared.units:
        return declared
    where = document.place.at(f'metadata.annotations["{DEPENDS_ON}"]')
    found = [_taken(one, where) for one in read_depends_on(said)]
    more = tuple(one for one in found if isinstance(one, Dependency))
    wrong = tuple(one for one in found if isinstance(one, Finding))
    units = tuple(
        msgspec.structs.replace(
            unit,
            dependencies=(*unit.dependencies, *(one for one in more if one.unit != unit.id)),
        )
        for unit in declared.units
    )
    itself = tuple(_itself(unit.id, where) for unit in units if unit.id in _units(more))
    told = (*declared.findings, *wrong, *itself)
    return msgspec.structs.replace(declared, units=units, findings=told)


def _units(found: tuple[Dependency, ...]) -> Iterator[UnitId]:
    return (one.unit for one in found if one.unit is not None)


def _taken(one: DependsOn | str, where: Place) -> Dependency | Finding | None:
    """A unit, or an object by its version. Without one, the graph of all objects puts it in order.

    A unit is waited for until it has come to its end.
    """
    if isinstance(one, str):
        return _unread(one, where)
    is_unit = one.kind in UNITS and one.namespace and not one.version
    if is_unit and one.state is AwaitedState.READY:
        return Dependency(
            unit=UnitId(one.kind, "", one.namespace, one.name), where=where, ours=True
        )
    if not one.version:
        return None
    ref = Ref(Kind(one.group or "", one.version, one.kind), one.namespace, one.name)
    return Dependency(ref=ref, where=where, ours=True, state=one.state)


def _unread(said: str, where: Place) -> Finding:
    return Finding(
        code="units.depends-on",
        severity=Severity.ERROR,
        sentence=f"`{foreign(said)}` is neither a unit nor an object",
        where=where,
        fix="write `Application/argocd/base`, or `apps/v1/Deployment/shop/db`",
    )


def _itself(unit: UnitId, where: Place) -> Finding:
    return Finding(
        code="units.depends-on",
        severity=Severity.ERROR,
        sentence=f"`{unit}` depends on itself",
        where=where,
        why="it waits until it is ready itself, which never happens",
        fix="remove the entry",
    )

"""Our own annotation on the object of a unit: what else it waits for, of whichever kind.

    tidegate.dev/depends-on: Application/argocd/base, v1/Namespace/shop, apps/v1/Deployment/shop/db

A unit is its kind, namespace and name; an object its version, kind, namespace and name. Only our
own rules know of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from tidegate.dialect.declared import Declared
from tidegate.documents import Document
from tidegate.errors import Place, foreign
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Kind, Ref
from tidegate.model.reading import text
from tidegate.model.unit import Dependency, UnitId

DEPENDS_ON = "tidegate.dev/depends-on"
UNITS = frozenset({"Application", "Kustomization", "HelmRelease"})
_VERSION = re.compile(r"v[0-9]+([a-z]+[0-9]+)?")
_OBJECT = re.compile(
    r"(?:(?!v[0-9])[a-z0-9.-]+/)?[A-Z]\w*/(?:[a-z0-9-]+/)?[a-z0-9.:-]+(?:@[a-z]+)?"
)
_UNIT, _WIDE, _NAMESPACED = 3, 2, 3
"""How many parts a unit has, and what is left of an object behind its version."""


def with_own_dependencies(declared: Declared, document: Document) -> Declared:
    """The units of an object, with what its annotation adds."""
    said = text(document.body, "metadata", "annotations", DEPENDS_ON)
    if not said or not declared.units:
        return declared
    where = replace(document.place, field=f'metadata.annotations["{DEPENDS_ON}"]')
    entries = [one.strip() for one in said.split(",") if one.strip()]
    found = [_read(one, where) for one in entries if not _is_of_objects(one)]
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


def _is_of_objects(said: str) -> bool:
    """Whether it names an object without its version: the graph of all objects puts that in order.

    A unit is no such object: it is waited for until it has come to its end.
    """
    parts = said.split("/")
    return _OBJECT.fullmatch(said) is not None and not (parts[0] in UNITS and len(parts) == _UNIT)


def _read(said: str, where: Place) -> Dependency | Finding:
    parts = said.split("/")
    if parts[0] in UNITS and len(parts) == _UNIT and all(parts):
        return Dependency(unit=UnitId(parts[0], "", parts[1], parts[2]), where=where, ours=True)
    at = next((place for place in (0, 1) if _is_version(parts, place)), None)
    rest = parts[at + 1 :] if at is not None else []
    if at is None or len(rest) not in {_WIDE, _NAMESPACED} or not all(parts):
        return _unread(said, where)
    kind = Kind.of("/".join(parts[: at + 1]), rest[0])
    namespace = rest[1] if len(rest) == _NAMESPACED else ""
    return Dependency(ref=Ref(kind, namespace, rest[-1]), where=where, ours=True)


def _is_version(parts: list[str], place: int) -> bool:
    return len(parts) > place and _VERSION.fullmatch(parts[place]) is not None


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

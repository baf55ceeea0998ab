"""What annotations say comes before what: ours, those of cli-utils, and those of kapp.

tidegate.dev/depends-on: Secret/shop/db, Deployment/shop/web@ready, Job/shop/old@absent
config.kubernetes.io/depends-on: apps/namespaces/shop/Deployment/web, /Namespace/shop
kapp.k14s.io/change-group: example.com/db
kapp.k14s.io/change-rule: upsert after upserting example.com/db
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidegate.knowledge.naming import Body
from tidegate.model.operators import Until
from tidegate.model.reading import mapping

OURS = "tidegate.dev/depends-on"
CLI_UTILS = "config.kubernetes.io/depends-on"
CHANGE_GROUP = "kapp.k14s.io/change-group"
CHANGE_RULE = "kapp.k14s.io/change-rule"
_OURS = re.compile(
    r"(?:(?P<group>[a-z0-9.-]+\.[a-z0-9.-]+|apps|batch|autoscaling|policy)/)?(?P<kind>[A-Z]\w*)/"
    r"(?:(?P<namespace>[a-z0-9-]+)/)?(?P<name>[a-z0-9.:-]+)(?:@(?P<until>present|ready|absent))?"
)
_RULE = re.compile(
    r"(?P<deed>upsert|delete)\s+(?P<side>after|before)\s+(?P<other>upserting|deleting)\s+(?P<group>\S+)"
)
PARTS_OF_A_NAMESPACED = 5
PARTS_OF_A_WIDE = 3


class Pointer(NamedTuple):
    """An object that an annotation names; without a group, any group that has the kind."""

    annotation: str
    group: str | None
    kind: str
    namespace: str
    name: str
    until: Until = Until.READY
    absent: bool = False


class Misread(NamedTuple):
    """A part of an annotation that says nothing."""

    annotation: str
    said: str


def pointers_of(body: Body, namespace: str) -> Iterator[Pointer | Misread]:
    """What an object says it comes after."""
    notes = mapping(body, "metadata", "annotations")
    for said in _listed(notes.get(OURS)):
        found = _OURS.fullmatch(said)
        yield Misread(OURS, said) if found is None else _ours(found, namespace)
    for said in _listed(notes.get(CLI_UTILS)):
        yield _theirs(said)


def _ours(found: re.Match[str], namespace: str) -> Pointer:
    asked = found["until"] or "ready"
    return Pointer(
        OURS,
        found["group"],
        found["kind"],
        found["namespace"] or namespace,
        found["name"],
        Until.EXISTS if asked == "present" else Until.READY,
        asked == "absent",
    )


def _theirs(said: str) -> Pointer | Misread:
    parts = said.split("/")
    if len(parts) == PARTS_OF_A_NAMESPACED and parts[1] == "namespaces":
        return Pointer(CLI_UTILS, parts[0], parts[3], parts[2], parts[4])
    if len(parts) == PARTS_OF_A_WIDE:
        return Pointer(CLI_UTILS, parts[0], parts[1], "", parts[2])
    return Misread(CLI_UTILS, said)


class ChangeRule(NamedTuple):
    """Whoever is in the group comes before, or after, the object that has the rule."""

    annotation: str
    group: str
    is_after: bool


def groups_of(body: Body) -> list[str]:
    """The change groups that an object is in."""
    return [str(said) for key, said in _kapp(body, CHANGE_GROUP)]


def rules_of(body: Body) -> Iterator[ChangeRule | Misread]:
    """The rules about creating and updating; those about deleting order nothing of a rollout."""
    for key, said in _kapp(body, CHANGE_RULE):
        found = _RULE.fullmatch(" ".join(str(said).split()))
        if found is None:
            yield Misread(key, str(said))
        elif found["deed"] == "upsert" and found["other"] == "upserting":
            yield ChangeRule(key, found["group"], found["side"] == "after")


def _kapp(body: Body, name: str) -> list[tuple[str, object]]:
    """An annotation may be there several times: a suffix tells them apart."""
    notes = mapping(body, "metadata", "annotations").items()
    return [(key, said) for key, said in notes if key == name or key.startswith(f"{name}.")]


def _listed(said: object) -> Iterable[str]:
    words = said.split(",") if isinstance(said, str) else []
    return [word.strip() for word in words if word.strip()]

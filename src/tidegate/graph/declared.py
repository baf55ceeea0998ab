"""What annotations say comes before what: ours, those of cli-utils, and those of kapp.

tidegate.dev/depends-on: Secret/shop/db, Deployment/shop/web@ready, Job/shop/old@absent
config.kubernetes.io/depends-on: apps/namespaces/shop/Deployment/web, /Namespace/shop
kapp.k14s.io/change-group: example.com/db
kapp.k14s.io/change-rule: upsert after upserting example.com/db
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from tidegate.knowledge.naming import Body
from tidegate.model.depends_on import DEPENDS_ON, AwaitedState, DependsOn, read_depends_on
from tidegate.model.manifest import Manifest, Manifests
from tidegate.model.objects import Kind, Ref, Served, Spot, identity
from tidegate.model.operators import Until
from tidegate.model.patterns import late
from tidegate.model.plan import Foreign, Precedence
from tidegate.model.reading import mapping
from tidegate.model.semantics import TIDEGATE
from tidegate.model.unit import Unit

CLI_UTILS = "config.kubernetes.io/depends-on"
CHANGE_GROUP = "kapp.k14s.io/change-group"
CHANGE_RULE = "kapp.k14s.io/change-rule"
_RULE = late(
    r"(?P<deed>upsert|delete)\s+(?P<side>after|before)\s+(?P<other>upserting|deleting)\s+(?P<group>\S+)"
)
MARKS = (b"/depends-on", b"kapp.k14s.io/change-")
"""One of these stands in every object that says something here."""
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
    for one in read_depends_on(notes.get(DEPENDS_ON)):
        yield Misread(DEPENDS_ON, one) if isinstance(one, str) else _ours(one, namespace)
    for said in _listed(notes.get(CLI_UTILS)):
        yield _theirs(said)


def _ours(one: DependsOn, namespace: str) -> Pointer:
    return Pointer(
        DEPENDS_ON,
        one.group,
        one.kind,
        one.namespace or namespace,
        one.name,
        Until.EXISTS if one.state is AwaitedState.PRESENT else Until.READY,
        one.state is AwaitedState.ABSENT,
    )


def _theirs(said: str) -> Pointer | Misread:
    parts = said.split("/")
    if len(parts) == PARTS_OF_A_NAMESPACED and parts[1] == "namespaces":
        return Pointer(CLI_UTILS, parts[0], parts[3], parts[2], parts[4])
    if len(parts) == PARTS_OF_A_WIDE:
        return Pointer(CLI_UTILS, parts[0], parts[1], "", parts[2])
    return Misread(CLI_UTILS, said)


def misread_in(body: Body, namespace: str) -> list[Misread]:
    """What of an object's annotations cannot be read."""
    said = (*pointers_of(body, namespace), *rules_of(body))
    return [one for one in said if isinstance(one, Misread)]


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


def precedences_of(wanted: Iterable[Manifests]) -> list[Precedence]:
    """What annotations declare between objects of a plan, where the rules of their unit obey them.

    What nobody in the plan brings cannot be put in order, and is missing. What is asked not to be
    there is no matter of order either.
    """
    known: dict[tuple[str, str, str, str], dict[str, Spot]] = {}
    groups: dict[str, list[Spot]] = {}
    said: list[tuple[Spot, Manifest, Body]] = []
    for one in wanted:
        cluster, obeys = one.unit.destination.cluster, obeys_annotations(one.unit)
        for manifest in one.manifests:
            ref, spot = manifest.ref, Spot(cluster, manifest.ref)
            names = (cluster, ref.kind.name, ref.namespace, ref.name)
            known.setdefault(names, {})[ref.kind.group] = spot
            if obeys and any(mark in manifest.body for mark in MARKS):
                body: Body = msgspec.json.decode(manifest.body)
                said.append((spot, manifest, body))
                for group in groups_of(body):
                    groups.setdefault(group, []).append(spot)
    pairs = [pair for one in said for pair in _pairs(*one, known, groups)]
    return [
        Precedence(before=before, after=after, where=where)
        for before, after, where in dict.fromkeys(pairs)
        if before != after
    ]


def foreign_of(wanted: Iterable[Manifests], builtin: Iterable[Served]) -> list[Foreign]:
    """What our own annotation awaits and nobody in the plan brings, or what it wants to be gone.

    A kind that every server has needs no version; of any other only its text can tell it.
    """
    wanted = list(wanted)
    brought = {
        (one.unit.destination.cluster, *identity(manifest.ref))
        for one in wanted
        for manifest in one.manifests
    }
    known: dict[tuple[str | None, str], Served] = {}
    for served in builtin:
        known.setdefault((served.kind.group, served.kind.name), served)
        known.setdefault((None, served.kind.name), served)
    found: list[Foreign] = []
    for one in wanted:
        if not obeys_annotations(one.unit):
            continue
        cluster = one.unit.destination.cluster
        for manifest in one.manifests:
            if DEPENDS_ON.encode() not in manifest.body:
                continue
            after = Spot(cluster, manifest.ref)
            for said, ref in _awaited_by(manifest, known):
                if said.state is AwaitedState.ABSENT or (cluster, *identity(ref)) not in brought:
                    found.append(Foreign(ref=ref, state=said.state, after=after))
    return found


def _awaited_by(
    manifest: Manifest, builtin: Mapping[tuple[str | None, str], Served]
) -> Iterator[tuple[DependsOn, Ref]]:
    body: Body = msgspec.json.decode(manifest.body)
    for one in read_depends_on(mapping(body, "metadata", "annotations").get(DEPENDS_ON)):
        if isinstance(one, str):
            continue
        served = builtin.get((one.group, one.kind))
        version = one.version or (served.kind.version if served else "")
        group = one.group or (served.kind.group if served else "")
        own = manifest.ref.namespace if served and served.namespaced else ""
        if version:
            yield one, Ref(Kind(group, version, one.kind), one.namespace or own, one.name)


def _pairs(
    own: Spot,
    manifest: Manifest,
    body: Body,
    known: Mapping[tuple[str, str, str, str], Mapping[str, Spot]],
    groups: Mapping[str, list[Spot]],
) -> Iterator[tuple[Spot, Spot, str]]:
    for one in pointers_of(body, own.ref.namespace):
        if isinstance(one, Misread) or one.absent:
            continue
        for home in dict.fromkeys((one.namespace, "")):
            found = known.get((own.cluster, one.kind, home, one.name), {})
            for group, spot in found.items():
                if one.group in (None, group):
                    yield spot, own, manifest.origin
    for rule in rules_of(body):
        for other in groups.get(rule.group, ()) if isinstance(rule, ChangeRule) else ():
            ends = (other, own) if isinstance(rule, ChangeRule) and rule.is_after else (own, other)
            yield *ends, manifest.origin


def obeys_annotations(unit: Unit) -> bool:
    """Annotations of others than Argo CD and Helm order objects by our own rules alone."""
    return unit.policy.semantics.name == TIDEGATE.name


def _kapp(body: Body, name: str) -> list[tuple[str, object]]:
    """An annotation may be there several times: a suffix tells them apart."""
    notes = mapping(body, "metadata", "annotations").items()
    return [(key, said) for key, said in notes if key == name or key.startswith(f"{name}.")]


def _listed(said: object) -> Iterable[str]:
    words = said.split(",") if isinstance(said, str) else []
    return [word.strip() for word in words if word.strip()]

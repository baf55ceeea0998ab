"""Order that annotations of Tidegate, cli-utils and kapp declare.

tidegate.dev/depends-on: Secret/shop/db, Deployment/shop/web@ready, Job/shop/old@absent
config.kubernetes.io/depends-on: apps/namespaces/shop/Deployment/web, /Namespace/shop
kapp.k14s.io/change-group: example.com/db
kapp.k14s.io/change-rule: upsert after upserting example.com/db
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import (
    ClusterRef,
    JsonObject,
    Kind,
    Ref,
    ServedKind,
    versionless_key,
)
from tidegate.model.operators.rows import RequiredState
from tidegate.model.plans.manifest import Manifest, Manifests
from tidegate.model.plans.plan import ExternalDependency, Precedence
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.depends_on import (
    DEPENDS_ON,
    AwaitedState,
    DependsOnEntry,
    parse_depends_on,
)
from tidegate.model.units.semantics import TIDEGATE
from tidegate.model.units.unit import Unit

CLI_UTILS = "config.kubernetes.io/depends-on"
CHANGE_GROUP = "kapp.k14s.io/change-group"
CHANGE_RULE = "kapp.k14s.io/change-rule"
_RULE = lazy_regex(
    r"(?P<action>upsert|delete)\s+(?P<side>after|before)\s+(?P<other>upserting|deleting)\s+(?P<group>\S+)"
)
ANNOTATION_MARKERS = (b"/depends-on", b"kapp.k14s.io/change-")
"""Texts of which every object with one of these annotations contains at least one."""
NAMESPACED_PARTS = 5
CLUSTER_SCOPED_PARTS = 3


class AnnotatedDependency(NamedTuple):
    """An object that an annotation refers to. Without a group, any group with the kind matches."""

    annotation: str
    group: str | None
    kind: str
    namespace: str
    name: str
    required_state: RequiredState = RequiredState.READY
    must_be_absent: bool = False


class ParseProblem(NamedTuple):
    """A part of an annotation that cannot be parsed."""

    annotation: str
    text: str


def parse_dependencies(
    body: JsonObject, namespace: str
) -> Iterator[AnnotatedDependency | ParseProblem]:
    """Yield the objects that an object depends on by its annotations."""
    annotations = get_mapping(body, "metadata", "annotations")
    if not annotations:
        return
    for entry in parse_depends_on(annotations.get(DEPENDS_ON)):
        yield (
            ParseProblem(DEPENDS_ON, entry)
            if isinstance(entry, str)
            else _tidegate_dependency(entry, namespace)
        )
    for entry_text in _split_list(annotations.get(CLI_UTILS)):
        yield _cli_utils_dependency(entry_text)


def _tidegate_dependency(entry: DependsOnEntry, namespace: str) -> AnnotatedDependency:
    return AnnotatedDependency(
        DEPENDS_ON,
        entry.group,
        entry.kind,
        entry.namespace or namespace,
        entry.name,
        RequiredState.EXISTS if entry.state is AwaitedState.PRESENT else RequiredState.READY,
        entry.state is AwaitedState.ABSENT,
    )


def _cli_utils_dependency(entry: str) -> AnnotatedDependency | ParseProblem:
    parts = entry.split("/")
    if len(parts) == NAMESPACED_PARTS and parts[1] == "namespaces":
        return AnnotatedDependency(CLI_UTILS, parts[0], parts[3], parts[2], parts[4])
    if len(parts) == CLUSTER_SCOPED_PARTS:
        return AnnotatedDependency(CLI_UTILS, parts[0], parts[1], "", parts[2])
    return ParseProblem(CLI_UTILS, entry)


def may_declare_order(manifest: Manifest) -> bool:
    """Return whether an object may have one of these annotations, without a look at its fields."""
    return any(marker in manifest.body for marker in ANNOTATION_MARKERS)


def find_parse_problems(body: JsonObject, namespace: str) -> list[ParseProblem]:
    """Return the parts of the annotations of an object that cannot be parsed."""
    parsed = (*parse_dependencies(body, namespace), *parse_change_rules(body))
    return [entry for entry in parsed if isinstance(entry, ParseProblem)]


class ChangeRule(NamedTuple):
    """A kapp rule: the object is applied after, or before, the members of a group."""

    annotation: str
    group: str
    is_after: bool


def change_groups(body: JsonObject) -> list[str]:
    """Return the change groups of an object."""
    return [str(group) for key, group in _kapp_annotations(body, CHANGE_GROUP)]


def parse_change_rules(body: JsonObject) -> Iterator[ChangeRule | ParseProblem]:
    """Yield the rules about upserts. Rules about deletions do not order a rollout."""
    for key, value in _kapp_annotations(body, CHANGE_RULE):
        match = _RULE.fullmatch(" ".join(str(value).split()))
        if match is None:
            yield ParseProblem(key, str(value))
        elif match["action"] == "upsert" and match["other"] == "upserting":
            yield ChangeRule(key, match["group"], match["side"] == "after")


def find_precedences(desired: Iterable[Manifests]) -> list[Precedence]:
    """Return the precedences that annotations declare, for units whose semantics honor them.

    Objects outside the plan cannot be ordered, and are unmet dependencies. Objects that must be
    absent are not ordered either.
    """
    known: dict[tuple[str, str, str, str], dict[str, ClusterRef]] = {}
    groups: dict[str, list[ClusterRef]] = {}
    annotated: list[tuple[ClusterRef, Manifest, JsonObject]] = []
    for unit_manifests in desired:
        cluster, is_ordered = (
            unit_manifests.unit.destination.cluster,
            honors_annotations(unit_manifests.unit),
        )
        for manifest in unit_manifests.manifests:
            ref, object_ref = manifest.ref, ClusterRef(cluster, manifest.ref)
            names = (cluster, ref.kind.name, ref.namespace, ref.name)
            known.setdefault(names, {})[ref.kind.group] = object_ref
            if is_ordered and may_declare_order(manifest):
                body: JsonObject = msgspec.json.decode(manifest.body)
                annotated.append((object_ref, manifest, body))
                for group in change_groups(body):
                    groups.setdefault(group, []).append(object_ref)
    pairs = [pair for entry in annotated for pair in _ordered_pairs(*entry, known, groups)]
    return [
        Precedence(before=before, after=after, location=location)
        for before, after, location in dict.fromkeys(pairs)
        if before != after
    ]


def find_external_dependencies(
    desired: Iterable[Manifests], builtin: Iterable[ServedKind]
) -> list[ExternalDependency]:
    """Return awaited objects of our annotation that are not in the plan, or that must be absent.

    A built-in kind needs no version; for any other kind the annotation must give it.
    """
    desired = list(desired)
    provided = {
        (unit_manifests.unit.destination.cluster, *versionless_key(manifest.ref))
        for unit_manifests in desired
        for manifest in unit_manifests.manifests
    }
    known: dict[tuple[str | None, str], ServedKind] = {}
    for served in builtin:
        known.setdefault((served.kind.group, served.kind.name), served)
        known.setdefault((None, served.kind.name), served)
    dependencies: list[ExternalDependency] = []
    for unit_manifests in desired:
        if not honors_annotations(unit_manifests.unit):
            continue
        cluster = unit_manifests.unit.destination.cluster
        for manifest in unit_manifests.manifests:
            if DEPENDS_ON.encode() not in manifest.body:
                continue
            dependent = ClusterRef(cluster, manifest.ref)
            for entry, ref in _awaited_refs(manifest, known):
                if (
                    entry.state is AwaitedState.ABSENT
                    or (cluster, *versionless_key(ref)) not in provided
                ):
                    dependencies.append(
                        ExternalDependency(ref=ref, state=entry.state, dependent=dependent)
                    )
    return dependencies


def _awaited_refs(
    manifest: Manifest, builtin: Mapping[tuple[str | None, str], ServedKind]
) -> Iterator[tuple[DependsOnEntry, Ref]]:
    body: JsonObject = msgspec.json.decode(manifest.body)
    for entry in parse_depends_on(get_mapping(body, "metadata", "annotations").get(DEPENDS_ON)):
        if isinstance(entry, str):
            continue
        served = builtin.get((entry.group, entry.kind))
        version = entry.version or (served.kind.version if served else "")
        group = entry.group or (served.kind.group if served else "")
        default_namespace = manifest.ref.namespace if served and served.namespaced else ""
        if version:
            yield (
                entry,
                Ref(
                    Kind(group, version, entry.kind),
                    entry.namespace or default_namespace,
                    entry.name,
                ),
            )


def _ordered_pairs(
    object_ref: ClusterRef,
    manifest: Manifest,
    body: JsonObject,
    known: Mapping[tuple[str, str, str, str], Mapping[str, ClusterRef]],
    groups: Mapping[str, list[ClusterRef]],
) -> Iterator[tuple[ClusterRef, ClusterRef, str]]:
    for dependency in parse_dependencies(body, object_ref.ref.namespace):
        if isinstance(dependency, ParseProblem) or dependency.must_be_absent:
            continue
        for namespace in dict.fromkeys((dependency.namespace, "")):
            refs_by_group = known.get(
                (object_ref.cluster, dependency.kind, namespace, dependency.name), {}
            )
            for group, dependency_ref in refs_by_group.items():
                if dependency.group in (None, group):
                    yield dependency_ref, object_ref, manifest.origin
    for rule in parse_change_rules(body):
        for member in groups.get(rule.group, ()) if isinstance(rule, ChangeRule) else ():
            ends = (
                (member, object_ref)
                if isinstance(rule, ChangeRule) and rule.is_after
                else (object_ref, member)
            )
            yield *ends, manifest.origin


def honors_annotations(unit: Unit) -> bool:
    """Return whether a unit is ordered by annotations; only Tidegate semantics do that."""
    return unit.policy.semantics.name == TIDEGATE.name


def _kapp_annotations(body: JsonObject, name: str) -> list[tuple[str, object]]:
    """Return all annotations of this name; kapp allows several, with different suffixes."""
    annotations = get_mapping(body, "metadata", "annotations").items()
    return [(key, value) for key, value in annotations if key == name or key.startswith(f"{name}.")]


def _split_list(value: object) -> Iterable[str]:
    entries = value.split(",") if isinstance(value, str) else []
    return [entry.strip() for entry in entries if entry.strip()]

"""ApplicationSets as they stand in files, and the units of what they generate."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

import msgspec

from tidegate.dialect.argo.application import read_application
from tidegate.dialect.argo.sets.applications import Application, Generated
from tidegate.dialect.argo.sets.patterns import literal_start
from tidegate.dialect.argo.sets.policies import (
    SetPolicy,
    left_alone,
    tell_left_alone,
    tell_policy,
)
from tidegate.dialect.argo.sets.rolling import has_steps, steps_of, unautomated
from tidegate.dialect.argo.telling import Telling
from tidegate.dialect.declared import Declared, DeclaredSet
from tidegate.documents import Document
from tidegate.errors import foreign
from tidegate.model.finding import Finding
from tidegate.model.objects import Json
from tidegate.model.policy import Order, Policy
from tidegate.model.reading import listed, mapping, mappings, text
from tidegate.model.semantics import ARGOCD
from tidegate.model.unit import RolloutStep, Unit, UnitId

KIND = "ApplicationSet"
MANAGER = "argocd-applicationset-controller"


def read_set(document: Document, namespace: str) -> Declared:
    """A set, without what it generates."""
    telling, body = Telling(document.place), document.body
    home = text(body, "metadata", "namespace", default=namespace)
    name = text(body, "metadata", "name")
    if not listed(body, "spec", "generators"):
        said = f"ApplicationSet `{home}/{foreign(name)}` has no generators"
        why, fix = "it generates nothing", "write `spec.generators`"
        telling.error("argo.set-generator", ("spec",), said, why, fix)
    made = DeclaredSet(namespace=home, name=name, where=document.place, body=body)
    return Declared(sets=(made,), findings=telling.findings)


def unit_of(one: DeclaredSet, policy: SetPolicy, *, is_whole: bool) -> Unit:
    """The set itself: what it deploys are Applications, in no order among themselves.

    What is missing of one that is not whole may still be wanted: nothing is pruned.
    """
    own = Policy(
        semantics=ARGOCD,
        manager=MANAGER,
        order=Order.NONE,
        prunes=policy.deletes and is_whole,
        cascades=policy.deletes,
        ignores=left_alone(one, policy),
        keeps_ignored=True,
        asks_late=uses_clusters(one),
    )
    return Unit(id=UnitId(KIND, "", one.namespace, one.name), policy=own, where=one.where)


def objects_of(one: DeclaredSet, generated: Generated, *, rolls: bool) -> tuple[Document, ...]:
    """The Applications as the set writes them; who comes step by step is not synced by itself."""
    steps = rolls and has_steps(one)
    return tuple(
        Document(unautomated(each.body) if steps else each.body, one.where.at(each.spot))
        for each in generated.applications
    )


def units_of(one: DeclaredSet, generated: Generated, settings: Mapping[str, str]) -> Declared:
    """The units of what a set generates. What is said of many of them is said once.

    Where they come step by step, those of a step have their turns by their names.
    """
    telling = Telling(one.where)
    tell_policy(one, settings, telling)
    tell_left_alone(one, telling)
    steps, wrong = steps_of(one, generated.applications)
    made = generated.applications
    in_turn = sorted(made, key=lambda each: each.name) if steps else made
    read = [_read(each, one, steps.get(each.name)) for each in in_turn]
    told: dict[Finding, list[str]] = {}
    for each in read:
        for finding in each.findings:
            told.setdefault(finding, []).extend(unit.id.called for unit in each.units)
    said = (msgspec.structs.replace(each, about=tuple(names)) for each, names in told.items())
    return Declared(
        units=tuple(unit for each in read for unit in each.units),
        findings=(*telling.findings, *generated.findings, *wrong, *said),
    )


def _read(application: Application, one: DeclaredSet, step: RolloutStep | None) -> Declared:
    where = one.where.at(application.spot)
    found = read_application(Document(application.body, where), one.namespace)
    group = f"{one.mark} step {step.number}" if step else ""
    units = tuple(
        msgspec.structs.replace(unit, made_by=one.mark, group=group, rollout=step)
        for unit in found.units
    )
    return Declared(units=units, findings=tuple(map(in_template, found.findings)))


def in_template(finding: Finding) -> Finding:
    """What is said of a generated Application, said of the template that it comes from."""
    where = finding.where
    if where is None or not where.field.startswith(("metadata", "spec")):
        return finding
    return msgspec.structs.replace(finding, where=where.at(f"spec.template.{where.field}"))


def uses_clusters(one: DeclaredSet) -> bool:
    """Whether a generator of it, at any depth, asks which clusters Argo CD knows."""
    pending = [*listed(one.body, "spec", "generators")]
    for entry in pending:  # it grows meanwhile
        if "clusters" in mapping(entry) or "clusterDecisionResource" in mapping(entry):
            return True
        pending += [*listed(entry, "matrix", "generators"), *listed(entry, "merge", "generators")]
    return False


def asked_paths(one: DeclaredSet) -> list[tuple[str, str]]:
    """The repositories that a set and its template speak of, each with a directory of it."""
    found = [pair for entry in listed(one.body, "spec", "generators") for pair in _asked(entry)]
    spec = mapping(one.body, "spec", "template", "spec")
    for source in (mapping(spec, "source"), *mappings(spec, "sources")):
        url, path = text(source, "repoURL"), text(source, "path").partition("{{")[0]
        start = posixpath.dirname(path) if path != text(source, "path") else path
        if start and "{{" not in url:
            found.append((url, start))
    return found


def _asked(entry: Json) -> list[tuple[str, str]]:
    git, url = mapping(entry, "git"), text(entry, "git", "repoURL")
    items = [*mappings(git, "directories"), *mappings(git, "files")] if "{{" not in url else []
    found = [(url, literal_start(text(item, "path"))) for item in items if "{{" not in str(item)]
    for kind in ("matrix", "merge"):
        for inner in listed(entry, kind, "generators"):
            found += _asked(inner)
    return found

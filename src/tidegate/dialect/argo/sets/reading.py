"""ApplicationSets as they stand in files, and the units of what they generate."""

from __future__ import annotations

import posixpath
from dataclasses import replace

import msgspec

from tidegate.dialect.argo.application import read_application
from tidegate.dialect.argo.sets.applications import Application, Generated
from tidegate.dialect.argo.sets.asking import Body
from tidegate.dialect.argo.sets.patterns import literal_start
from tidegate.dialect.argo.sets.rolling import steps_of
from tidegate.dialect.argo.telling import Telling
from tidegate.dialect.declared import Declared, DeclaredSet
from tidegate.documents import Document
from tidegate.documents.decoding import suggest
from tidegate.errors import foreign
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, mappings, text
from tidegate.model.unit import RolloutStep

POLICIES = ("create-only", "create-update", "create-delete", "sync")
UPDATES, DELETES = ("create-update", "sync"), ("create-delete", "sync")


def read_set(document: Document, namespace: str) -> Declared:
    """A set, without what it generates."""
    telling, body = Telling(document.place), document.body
    home = text(body, "metadata", "namespace", default=namespace)
    name = text(body, "metadata", "name")
    if not listed(body, "spec", "generators"):
        said = f"ApplicationSet `{home}/{foreign(name)}` has no generators"
        why, fix = "it generates nothing", "write `spec.generators`"
        telling.error("argo.set-generator", ("spec",), said, why, fix)
    _tell_policy(body, telling)
    made = DeclaredSet(namespace=home, name=name, where=document.place, body=body)
    return Declared(sets=(made,), findings=telling.findings)


def _tell_policy(body: Body, telling: Telling) -> None:
    """What is not played, and what keeps Applications from following their set."""
    path = ("spec", "syncPolicy", "applicationsSync")
    policy = text(body, *path)
    if policy and policy not in POLICIES:
        said = f"there is no policy `{foreign(policy)}`"
        why = "the API server refuses the set"
        telling.error("argo.set-policy", path, said, why, suggest(policy, POLICIES))
    elif policy and policy not in UPDATES:
        said = "Applications that are there already do not follow this set"
        why = "its policy creates and does not update; they are planned as Git has them"
        telling.note("argo.set-policy", path, said, why)
    if policy and policy in POLICIES and policy not in DELETES:
        said = "Applications that are no longer generated stay"
        telling.note("argo.set-policy", path, said, "its policy does not delete")
    for field in ("preservedFields", "ignoreApplicationDifferences"):
        if mapping(body, "spec").get(field):
            said = f"`{field}` is not played: Applications are planned as they are generated"
            why = "it keeps what others have written into them"
            telling.note("argo.set-ignored", ("spec", field), said, why)


def units_of(one: DeclaredSet, generated: Generated) -> Declared:
    """The units of what a set generates. What is said of many of them is said once.

    Where they come step by step, those of a step have their turns by their names.
    """
    steps, wrong = steps_of(one, generated.applications)
    made = generated.applications
    in_turn = sorted(made, key=lambda each: each.name) if steps else made
    read = [_read(each, one, steps.get(each.name)) for each in in_turn]
    told = dict.fromkeys(finding for each in read for finding in each.findings)
    return Declared(
        units=tuple(unit for each in read for unit in each.units),
        findings=(*generated.findings, *wrong, *told),
    )


def _read(application: Application, one: DeclaredSet, step: RolloutStep | None) -> Declared:
    where = replace(one.where, field=application.spot)
    found = read_application(Document(application.body, where), one.namespace)
    group = f"{one.mark} step {step.number}" if step else ""
    units = tuple(
        msgspec.structs.replace(unit, made_by=one.mark, group=group, rollout=step)
        for unit in found.units
    )
    return Declared(units=units, findings=found.findings)


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

"""Generators that look at something: a list, the files of a repository, clusters."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from tidegate.dialect.argo.sets.asking import (
    AskContents,
    AskFiles,
    Body,
    Errand,
    Fault,
    KnownCluster,
    Params,
    SetRun,
    inside,
)
from tidegate.dialect.argo.sets.parameters import flattened, normalized, refuse_wrong
from tidegate.dialect.argo.sets.patterns import directories_of, directory_pattern, file_pattern
from tidegate.dialect.argo.sets.templates import with_values
from tidegate.documents import read_value
from tidegate.errors import DocumentError, foreign
from tidegate.model.labels import matches
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, mappings, text

IN_CLUSTER, IN_CLUSTER_SERVER = "in-cluster", "https://kubernetes.default.svc"


def from_list(body: Body, run: SetRun) -> Errand[list[Params]]:
    """Its elements, and those that stand in a text."""
    yield from ()
    elements, is_go = listed(body, "elements"), run.language.is_go
    found = [_element(one, at, is_go=is_go) for at, one in enumerate(elements)]
    written = text(body, "elementsYaml")
    if not written:
        return found
    with inside("elementsYaml"):
        return [*found, *_read_elements(written, "elementsYaml", listed_only=True)]


def _element(element: Json, at: int, *, is_go: bool) -> Params:
    if not isinstance(element, dict):
        said = "an element of a list must be a mapping"
        raise Fault("argo.set-element", said, path=("elements", at))
    if is_go:
        return element
    made: Params = {}
    if not isinstance(element.get("values", {}), dict):
        said, fix = "`values` of an element must be a mapping", "write `values: {NAME: TEXT}`"
        raise Fault("argo.set-element", said, fix, ("elements", at, "values"))
    for key, value in element.items():
        inner = value.items() if key == "values" and isinstance(value, dict) else ((None, value),)
        for name, one in inner:
            full = key if name is None else f"values.{name}"
            if not isinstance(one, str):
                said = f"`{foreign(full)}` of an element must be text"
                fix = "put it in quotes, or write `goTemplate: true`"
                spot = (key,) if name is None else (key, name)
                raise Fault("argo.set-element", said, fix, ("elements", at, *spot))
            made[full] = one
    return made


def _read_elements(content: str | bytes, name: str, *, listed_only: bool = False) -> list[Params]:
    """A mapping, unless they must be listed, or a list of mappings."""
    try:
        value = read_value(content, name)
    except DocumentError as error:
        said = f"`{foreign(name)}` cannot be read: {error.problem}"
        raise Fault("argo.set-file", said, error.hint) from None
    found = value if isinstance(value, list) else [{} if value is None else value]
    if listed_only and not isinstance(value, list | None):
        raise Fault("argo.set-file", f"`{foreign(name)}` holds no list", "write a list of mappings")
    if not all(isinstance(one, dict | None) for one in found):
        said = f"`{foreign(name)}` holds neither a mapping nor a list of mappings"
        raise Fault("argo.set-file", said, "write one of the two")
    return [one for one in found if isinstance(one, dict)]


def from_git(body: Body, run: SetRun) -> Errand[list[Params]]:
    """The directories that are meant, else the files, and what stands in these."""
    url, revision = text(body, "repoURL"), text(body, "revision")
    directories, files = mappings(body, "directories"), mappings(body, "files")
    if not directories and not files:
        said, fix = "a git generator needs `directories` or `files`", "write one of the two"
        raise Fault("argo.set-git", said, fix)
    answer = yield AskFiles(url, revision)
    prefix, is_go = text(body, "pathParamPrefix"), run.language.is_go
    if directories:
        paths = _meant_directories(directories, answer.files)
        found = [_at(one, prefix, is_go=is_go) for one in paths]
    else:
        meant = _meant_files(files, answer.files, doublestar=run.known.doublestar)
        content = yield AskContents(url, revision, meant)
        with inside("files"):
            found = [
                _put_together(one, path, prefix, is_go=is_go)
                for path in meant
                for one in _read_elements(content.contents.get(path, b""), path)
            ]
    return (yield from with_values(found, mapping(body, "values"), run.language))


def _meant_directories(wanted: list[Body], files: Iterable[str]) -> list[str]:
    """Those that some item takes and none excludes."""
    items = [(directory_pattern(text(one, "path")), bool(one.get("exclude"))) for one in wanted]
    return [
        path
        for path in directories_of(files)
        if any(fits(path) for fits, excludes in items if not excludes)
        and not any(fits(path) for fits, excludes in items if excludes)
    ]


def _meant_files(wanted: list[Body], files: Iterable[str], *, doublestar: bool) -> tuple[str, ...]:
    items = []
    for at, one in enumerate(wanted):
        with inside("files", at, "path"):
            fits = file_pattern(text(one, "path"), doublestar=doublestar)
        items.append((fits, bool(one.get("exclude"))))
    taken = {one for one in files for fits, excludes in items if not excludes and fits(one)}
    return tuple(
        sorted(one for one in taken if not any(fits(one) for fits, excludes in items if excludes))
    )


def _put_together(element: Params, path: str, prefix: str, *, is_go: bool) -> Params:
    folder, name = posixpath.split(path)
    place = _at(folder or ".", prefix, is_go=is_go, file=name)
    return {**(element if is_go else dict[str, Json](flattened(element))), **place}


def _at(path: str, prefix: str, *, is_go: bool, file: str = "") -> Params:
    """The parameters that tell where something lies."""
    base, segments = posixpath.basename(path), path.split("/")
    names: dict[str, Json] = {"basename": base, "basenameNormalized": normalized(base)}
    if file:
        names |= {"filename": file, "filenameNormalized": normalized(file)}
    if is_go:
        inner: Params = {"path": {"path": path, **names, "segments": [*segments]}}
        return {prefix: inner} if prefix else inner
    start = f"{prefix}.path" if prefix else "path"
    return {
        start: path,
        **{f"{start}.{key}": one for key, one in names.items()},
        **{f"{start}[{at}]": one for at, one in enumerate(segments) if one},
    }


def from_clusters(body: Body, run: SetRun) -> Errand[list[Params]]:
    """The clusters that a selector takes; with none, Argo CD's own too, which has no labels."""
    selector = mapping(body, "selector")
    with inside("selector"):
        refuse_wrong(selector, of_labels=True)
    chooses = bool(mapping(selector, "matchLabels") or listed(selector, "matchExpressions"))
    named = {one.name: one for one in run.known.clusters}
    taken = [named[name] for name in sorted(named) if matches(selector, dict(named[name].labels))]
    if not chooses and not any(one.server == IN_CLUSTER_SERVER for one in taken):
        taken.append(KnownCluster(name=IN_CLUSTER, server=IN_CLUSTER_SERVER))
    found = [_cluster(one, is_go=run.language.is_go) for one in taken]
    found = yield from with_values(found, mapping(body, "values"), run.language)
    return [{"clusters": [*found]}] if body.get("flatList") else found


def _cluster(one: KnownCluster, *, is_go: bool) -> Params:
    made: Params = {
        "name": one.name,
        "nameNormalized": normalized(one.name),
        "server": one.server,
        "project": one.project,
    }
    notes = {"annotations": one.annotations, "labels": one.labels}
    if not is_go:
        return made | {
            f"metadata.{kind}.{key}": value
            for kind, mine in notes.items()
            for key, value in mine.items()
        }
    if one.name == IN_CLUSTER and not one.labels and not one.annotations:
        return made
    return {**made, "metadata": {kind: dict(mine) for kind, mine in notes.items() if mine}}

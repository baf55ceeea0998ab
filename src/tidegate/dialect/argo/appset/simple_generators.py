"""List, Git and cluster generators.

Like `list.go`, `git.go` and `cluster.go` in `applicationset/generators` of Argo CD 3.6.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from tidegate.dialect.argo.appset.parameters import flatten, normalize_name, validate_selector
from tidegate.dialect.argo.appset.path_patterns import (
    compile_directory_pattern,
    compile_file_pattern,
    list_directories,
)
from tidegate.dialect.argo.appset.queries import (
    FileContentQuery,
    FileListQuery,
    GeneratorContext,
    GeneratorError,
    Params,
    Procedure,
    RegisteredCluster,
    prefix_error_path,
)
from tidegate.dialect.argo.appset.templates import with_values
from tidegate.documents import read_first_value
from tidegate.errors import DocumentError, sanitize
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.labels import selector_matches
from tidegate.model.k8s.objects import Json, JsonObject

IN_CLUSTER, IN_CLUSTER_SERVER = "in-cluster", "https://kubernetes.default.svc"


def from_list(body: JsonObject, context: GeneratorContext) -> Procedure[list[Params]]:
    """Return the elements, and those of `elementsYaml`."""
    yield from ()
    elements, is_go = get_list(body, "elements"), context.language.is_go
    params = [
        _element_params(element, index, is_go=is_go) for index, element in enumerate(elements)
    ]
    elements_yaml = get_text(body, "elementsYaml")
    if not elements_yaml:
        return params
    with prefix_error_path("elementsYaml"):
        return [*params, *_read_elements(elements_yaml, "elementsYaml", must_be_list=True)]


def _element_params(element: Json, index: int, *, is_go: bool) -> Params:
    if not isinstance(element, dict):
        message = "an element of a list must be a mapping"
        raise GeneratorError("appset.element", message, path=("elements", index))
    if is_go:
        return element
    params: Params = {}
    if not isinstance(element.get("values", {}), dict):
        message, fix = "`values` of an element must be a mapping", "write `values: {NAME: VALUE}`"
        raise GeneratorError("appset.element", message, fix, ("elements", index, "values"))
    for key, value in element.items():
        inner = value.items() if key == "values" and isinstance(value, dict) else ((None, value),)
        for name, leaf in inner:
            full_name = key if name is None else f"values.{name}"
            if not isinstance(leaf, str):
                message = f"`{sanitize(full_name)}` of an element must be a string"
                fix = "put it in quotes, or set `goTemplate: true`"
                subpath = (key,) if name is None else (key, name)
                raise GeneratorError("appset.element", message, fix, ("elements", index, *subpath))
            params[full_name] = leaf
    return params


def _read_elements(content: str | bytes, name: str, *, must_be_list: bool = False) -> list[Params]:
    """Read a mapping, unless a list is required, or a list of mappings."""
    try:
        value = read_first_value(content, name)
    except DocumentError as error:
        message = f"cannot read `{sanitize(name)}`: {error.problem}"
        raise GeneratorError("appset.file", message, error.hint) from None
    elements = value if isinstance(value, list) else [{} if value is None else value]
    if must_be_list and not isinstance(value, list | None):
        raise GeneratorError(
            "appset.file", f"`{sanitize(name)}` does not contain a list", "write a list of mappings"
        )
    if not all(isinstance(element, dict | None) for element in elements):
        message = f"`{sanitize(name)}` contains neither a mapping nor a list of mappings"
        raise GeneratorError("appset.file", message, "write one of the two")
    return [element for element in elements if isinstance(element, dict)]


def from_git(body: JsonObject, context: GeneratorContext) -> Procedure[list[Params]]:
    """Return the matching directories, else the matching files with their contents."""
    url, revision = get_text(body, "repoURL"), get_text(body, "revision")
    directories, files = get_mappings(body, "directories"), get_mappings(body, "files")
    if not directories and not files:
        message, fix = "a git generator needs `directories` or `files`", "add one of the two"
        raise GeneratorError("appset.git", message, fix)
    file_list = yield FileListQuery(url, revision)
    prefix, is_go = get_text(body, "pathParamPrefix"), context.language.is_go
    if directories:
        paths = _matching_directories(directories, file_list.files)
        params = [_path_params(directory, prefix, is_go=is_go) for directory in paths]
    else:
        matching = _matching_files(files, file_list.files, doublestar=context.inputs.doublestar)
        file_contents = yield FileContentQuery(url, revision, matching)
        with prefix_error_path("files"):
            params = [
                _file_params(element, path, prefix, is_go=is_go)
                for path in matching
                for element in _read_elements(file_contents.contents.get(path, b""), path)
            ]
    return (yield from with_values(params, get_mapping(body, "values"), context.language))


def _matching_directories(entries: list[JsonObject], files: Iterable[str]) -> list[str]:
    """Return the directories that an entry includes and none excludes."""
    patterns = [
        (compile_directory_pattern(get_text(entry, "path")), bool(entry.get("exclude")))
        for entry in entries
    ]
    return [
        path
        for path in list_directories(files)
        if any(is_match(path) for is_match, is_exclude in patterns if not is_exclude)
        and not any(is_match(path) for is_match, is_exclude in patterns if is_exclude)
    ]


def _matching_files(
    entries: list[JsonObject], files: Iterable[str], *, doublestar: bool
) -> tuple[str, ...]:
    patterns = []
    for index, entry in enumerate(entries):
        with prefix_error_path("files", index, "path"):
            is_match = compile_file_pattern(get_text(entry, "path"), doublestar=doublestar)
        patterns.append((is_match, bool(entry.get("exclude"))))
    included = {
        path
        for path in files
        for is_match, is_exclude in patterns
        if not is_exclude and is_match(path)
    }
    return tuple(
        sorted(
            path
            for path in included
            if not any(is_match(path) for is_match, is_exclude in patterns if is_exclude)
        )
    )


def _file_params(element: Params, path: str, prefix: str, *, is_go: bool) -> Params:
    directory, name = posixpath.split(path)
    path_params = _path_params(directory or ".", prefix, is_go=is_go, file=name)
    return {**(element if is_go else dict[str, Json](flatten(element))), **path_params}


def _path_params(path: str, prefix: str, *, is_go: bool, file: str = "") -> Params:
    """Return the parameters about a path."""
    base, segments = posixpath.basename(path), path.split("/")
    names: dict[str, Json] = {"basename": base, "basenameNormalized": normalize_name(base)}
    if file:
        names |= {"filename": file, "filenameNormalized": normalize_name(file)}
    if is_go:
        inner: Params = {"path": {"path": path, **names, "segments": [*segments]}}
        return {prefix: inner} if prefix else inner
    key_prefix = f"{prefix}.path" if prefix else "path"
    return {
        key_prefix: path,
        **{f"{key_prefix}.{key}": value for key, value in names.items()},
        **{f"{key_prefix}[{index}]": segment for index, segment in enumerate(segments) if segment},
    }


def from_clusters(body: JsonObject, context: GeneratorContext) -> Procedure[list[Params]]:
    """Return the clusters that match the selector; without one, also the local cluster.

    The local cluster has no labels.
    """
    selector = get_mapping(body, "selector")
    with prefix_error_path("selector"):
        validate_selector(selector, check_values=True)
    has_selector = bool(
        get_mapping(selector, "matchLabels") or get_list(selector, "matchExpressions")
    )
    by_name = {cluster.name: cluster for cluster in context.inputs.clusters}
    selected = [
        by_name[name]
        for name in sorted(by_name)
        if selector_matches(selector, dict(by_name[name].labels))
    ]
    if not has_selector and not any(cluster.server == IN_CLUSTER_SERVER for cluster in selected):
        selected.append(RegisteredCluster(name=IN_CLUSTER, server=IN_CLUSTER_SERVER))
    params = [_cluster_params(cluster, is_go=context.language.is_go) for cluster in selected]
    params = yield from with_values(params, get_mapping(body, "values"), context.language)
    return [{"clusters": [*params]}] if body.get("flatList") else params


def _cluster_params(cluster: RegisteredCluster, *, is_go: bool) -> Params:
    params: Params = {
        "name": cluster.name,
        "nameNormalized": normalize_name(cluster.name),
        "server": cluster.server,
        "project": cluster.project,
    }
    metadata = {"annotations": cluster.annotations, "labels": cluster.labels}
    if not is_go:
        return params | {
            f"metadata.{kind}.{key}": value
            for kind, entries in metadata.items()
            for key, value in entries.items()
        }
    if cluster.name == IN_CLUSTER and not cluster.labels and not cluster.annotations:
        return params
    return {
        **params,
        "metadata": {kind: dict(entries) for kind, entries in metadata.items() if entries},
    }

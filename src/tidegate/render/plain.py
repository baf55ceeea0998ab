"""Plain directories of manifests, read as Argo CD reads them.

Decides which files are manifests, which other files are skipped, and which are errors because they
look like manifests and cannot be read.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from tidegate.documents import Document, DocumentReader, read_documents
from tidegate.documents.dump import to_json
from tidegate.errors import DocumentError, Location, RenderError, sanitize
from tidegate.files import PathEscapeError, PathViolation, RootedFiles, resolve_within
from tidegate.globs import compile_glob
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json
from tidegate.model.units.rendering import Directory

JSONNET = ".jsonnet"
MANIFEST_SUFFIXES = (".yaml", ".yml", ".json", JSONNET)
SKIP_COMMENT = b"+argocd:skip-file-rendering"
MANIFEST_FIELDS = (b"apiVersion:", b"kind:", b"metadata:")
NO_RESULTS: Mapping[str, str] = MappingProxyType({})


def read_directory(
    directory: Directory,
    *,
    jsonnet_results: Mapping[str, str] = NO_RESULTS,
    files: Iterable[str] | None = None,
    rooted_files: RootedFiles | None = None,
    read: DocumentReader = read_documents,
) -> tuple[Document, ...]:
    """Return the objects of all manifests in a directory, sorted by file name.

    `jsonnet_results` has the JSON of each Jsonnet file. `files` are those of `list_manifest_files`.
    `rooted_files` is the root of the directory, if it is open already.

    Like `findManifests` in `reposerver/repository/repository.go` of Argo CD 3.5.6.
    """
    rooted_files = rooted_files or RootedFiles(directory.root)
    remaining = directory.size_limit
    documents: list[Document] = []
    for name in list_manifest_files(directory, rooted_files) if files is None else files:
        if is_jsonnet(name):
            documents += _read_jsonnet(directory, name, jsonnet_results.get(name))
            continue
        content = _read(rooted_files, name, remaining)
        remaining -= len(content)
        documents += _read_manifest(content, name, read, is_required=directory.must_be_manifests)
    return tuple(documents)


def list_manifest_files(directory: Directory, rooted_files: RootedFiles) -> tuple[str, ...]:
    """Return the manifests of a directory, sorted; paths are relative to the root.

    Like `getPotentiallyValidManifests` and `getPotentiallyValidManifestFile` in
    `reposerver/repository/repository.go` of Argo CD 3.5.6.
    """
    return tuple(
        _matching_files(
            directory, _start_directory(directory, rooted_files), rooted_files.resolve_directory("")
        )
    )


def is_jsonnet(name: str) -> bool:
    """Return whether a file is Jsonnet, by its name."""
    return posixpath.splitext(name)[1] == JSONNET


def _start_directory(directory: Directory, rooted_files: RootedFiles) -> str:
    location = Location(sanitize(directory.path) or ".")
    try:
        start = rooted_files.resolve_directory(directory.path)
    except PathEscapeError as error:
        if error.violation is PathViolation.OUTSIDE:
            problem = f"`{sanitize(directory.path)}` points outside the source"
            raise RenderError("render.directory.outside", problem, location=location) from None
        start = ""
    if not os.path.isdir(start):  # noqa: PTH112  (it is hot)
        problem = f"directory `{sanitize(directory.path)}` not found"
        raise RenderError("render.directory.missing", problem, location=location)
    return start


def _matching_files(directory: Directory, start: str, root: str) -> Iterator[str]:
    include = _compile_glob(directory, "include", directory.include)
    exclude = _compile_glob(directory, "exclude", directory.exclude)
    only, to_root, to_start = frozenset(directory.files), len(root) + 1, len(start) + 1
    for entry in _walk(start, recurse=directory.recurse):
        if not directory.any_extension and not entry.name.endswith(MANIFEST_SUFFIXES):
            continue
        name, relative_path = entry.path[to_root:], entry.path[to_start:]
        if not _is_manifest_file(entry, name, root):
            continue
        if only and name not in only:
            continue
        if exclude and exclude.fullmatch(relative_path):
            continue
        if include is None or include.fullmatch(relative_path):
            yield name


def _walk(start: str, *, recurse: bool) -> Iterator[os.DirEntry[str]]:
    """Yield everything but directories, sorted by name; links to directories are not followed."""
    pending = _list_reversed(start)
    while pending:
        entry = pending.pop()
        if not entry.is_dir(follow_symlinks=False):
            yield entry
        elif recurse:
            pending += _list_reversed(entry.path)


def _list_reversed(directory: str) -> list[os.DirEntry[str]]:
    """Return the entries of a directory, in reverse order."""
    with os.scandir(directory) as entries:
        return sorted(entries, key=lambda entry: entry.name, reverse=True)


def _is_manifest_file(entry: os.DirEntry[str], name: str, root: str) -> bool:
    """Return whether an entry is a file, or a link to one in the tree.

    Raises RenderError for a link that points outside the tree.
    """
    if not entry.is_symlink():
        return entry.is_file()
    try:
        return resolve_within(Path(entry.path), Path(root)).is_file()
    except PathEscapeError as error:
        if error.violation is PathViolation.OUTSIDE:
            code, problem = "render.directory.outside", "is a link that points outside the source"
            hint = "keep manifests and the targets of links inside one source"
        else:
            code, problem = "render.directory.file", "is a link that points to itself"
            hint = "remove the link, or point it to a file"
        problem = f"`{sanitize(name)}` {problem}"
        raise RenderError(code, problem, location=Location(name), hint=hint) from None


def _compile_glob(directory: Directory, field: str, pattern: str) -> re.Pattern[str] | None:
    try:
        return compile_glob(pattern) if pattern else None
    except ValueError as error:
        problem = f"`{sanitize(pattern)}` is not a valid pattern: {error}"
        location = Location(directory.path, field=field)
        raise RenderError("render.directory.pattern", problem, location=location) from None


def _read(rooted_files: RootedFiles, name: str, remaining: int) -> bytes:
    try:
        content = rooted_files.read(name, remaining + 1)
    except (OSError, PathEscapeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        problem = f"`{sanitize(name)}` cannot be read: {sanitize(reason or 'it changed')}"
        raise RenderError("render.directory.file", problem, location=Location(name)) from None
    if len(content) > remaining:
        problem = "the manifests of the directory exceed the size limit"
        hint = "exclude files that are not manifests, or raise the limit"
        raise RenderError("render.directory.size", problem, location=Location(name), hint=hint)
    return content


def _read_jsonnet(directory: Directory, name: str, evaluated: str | None) -> tuple[Document, ...]:
    if not directory.jsonnet:
        return ()
    if evaluated is None:
        problem = f"`{sanitize(name)}` is Jsonnet, which is not supported here"
        hint = "exclude it, or commit the rendered manifests"
        raise RenderError("render.directory.jsonnet", problem, location=Location(name), hint=hint)
    result: Json = msgspec.json.decode(evaluated)
    documents: list[Document] = []
    for number, body in enumerate(result if isinstance(result, list) else [result]):
        if not isinstance(body, dict) or not _has_kind(Document(body, Location(name))):
            problem = "the file does not evaluate to a Kubernetes object"
            hint = "it must be an object, or a list of objects, each with a `kind`"
            raise RenderError(
                "render.directory.manifest", problem, location=Location(name), hint=hint
            )
        documents += (
            msgspec.structs.replace(document, location=Location(name), document_index=number)
            for document in read_documents(to_json(body), name)
        )
    return tuple(documents)


def _read_manifest(
    content: bytes, name: str, read: DocumentReader, *, is_required: bool
) -> tuple[Document, ...]:
    """Return the objects of a file; none if it is no manifest, unless `must` is set.

    Like `getObjsFromYAMLOrJSON` and `splitYAMLOrJSON` in `reposerver/repository/repository.go` of
    Argo CD 3.5.6.
    """
    if SKIP_COMMENT in content:
        return ()
    if name.endswith(".json"):
        return _read_json(content, name)
    try:
        documents = read(content, name)
    except DocumentError as error:
        if is_required or _has_object_before(content, error) or _looks_like_a_manifest(content):
            raise
        return ()
    without_kind = next((document for document in documents if not _has_kind(document)), None)
    if without_kind is None:
        return documents
    if is_required:
        problem = "a document has no `kind` and is not a Kubernetes object"
        hint = "add the kind, or use another file"
        raise RenderError(
            "render.directory.manifest", problem, location=without_kind.location, hint=hint
        )
    if without_kind is not documents[0] or _looks_like_a_manifest(content):
        problem = "a document has no `kind`, but other documents of the file are manifests"
        hint = "add the kind, or move the document to another file"
        raise RenderError(
            "render.directory.manifest", problem, location=without_kind.location, hint=hint
        )
    return ()


def _read_json(content: bytes, name: str) -> tuple[Document, ...]:
    """Return the one object of a JSON file, as Argo CD reads it.

    Like `getObjsFromYAMLOrJSON` in `reposerver/repository/repository.go` of Argo CD 3.5.6.
    """
    documents = read_documents(content, name)
    parts = {document.document_index for document in documents}
    if len(parts) > 1:
        problem = "the JSON file contains more than one object"
        hint = "use a List, or one file per object"
        raise RenderError("render.directory.manifest", problem, location=Location(name), hint=hint)
    if not documents or not all(_has_kind(document) for document in documents):
        problem = "the JSON file contains no Kubernetes object"
        hint = "exclude it"
        raise RenderError("render.directory.manifest", problem, location=Location(name), hint=hint)
    return documents


def _has_kind(document: Document) -> bool:
    return bool(get_text(document.body, "kind"))


def _looks_like_a_manifest(content: bytes) -> bool:
    return all(field in content for field in MANIFEST_FIELDS)


def _has_object_before(content: bytes, error: DocumentError) -> bool:
    """Return whether an object precedes the document that cannot be read."""
    line = error.location.line if error.location else 0
    lines = content.splitlines(keepends=True)[: max(line - 1, 0)]
    while lines and not lines[-1].startswith(b"---"):
        lines.pop()
    try:
        return any(_has_kind(document) for document in read_documents(b"".join(lines[:-1]), ""))
    except DocumentError:
        return False

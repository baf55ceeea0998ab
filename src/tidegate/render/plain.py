"""Plain directories of manifests, read as Argo CD reads them.

Which files count, which of them are passed over because they are something else, and which are
refused because they look like manifests and cannot be read.
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
ENDINGS = (".yaml", ".yml", ".json", JSONNET)
SKIP_MARK = b"+argocd:skip-file-rendering"
LOOKS_LIKE_A_MANIFEST = (b"apiVersion:", b"kind:", b"metadata:")
NOTHING: Mapping[str, str] = MappingProxyType({})


def read_directory(
    directory: Directory,
    *,
    evaluated: Mapping[str, str] = NOTHING,
    files: Iterable[str] | None = None,
    within: RootedFiles | None = None,
    read: DocumentReader = read_documents,
) -> tuple[Document, ...]:
    """The objects of all manifests in a directory, file after file in the order of their names.

    `evaluated` has, for each file of Jsonnet, the JSON that it comes to. `files`: those that
    `manifest_files` has found. `within`: the tree of its root, as far as that is known already.
    """
    within = within or RootedFiles(directory.root)
    room = directory.size_limit
    documents: list[Document] = []
    for name in list_manifest_files(directory, within) if files is None else files:
        if is_jsonnet(name):
            documents += _read_jsonnet(directory, name, evaluated.get(name))
            continue
        content = _read(within, name, room)
        room -= len(content)
        documents += _read_manifest(content, name, read, must=directory.must_be_manifests)
    return tuple(documents)


def list_manifest_files(directory: Directory, within: RootedFiles) -> tuple[str, ...]:
    """The files that count, by name; they start at the root."""
    return tuple(_files(directory, _start(directory, within), within.resolve_directory("")))


def is_jsonnet(name: str) -> bool:
    return posixpath.splitext(name)[1] == JSONNET


def _start(directory: Directory, within: RootedFiles) -> str:
    place = Location(sanitize(directory.path) or ".")
    try:
        start = within.resolve_directory(directory.path)
    except PathEscapeError as stray:
        if stray.violation is PathViolation.OUTSIDE:
            problem = f"`{sanitize(directory.path)}` leads out of the source"
            raise RenderError("render.directory.outside", problem, location=place) from None
        start = ""
    if not os.path.isdir(start):  # noqa: PTH112  (it is hot)
        problem = f"there is no directory `{sanitize(directory.path)}`"
        raise RenderError("render.directory.missing", problem, location=place)
    return start


def _files(directory: Directory, start: str, root: str) -> Iterator[str]:
    include = _glob(directory, "include", directory.include)
    exclude = _glob(directory, "exclude", directory.exclude)
    only, to_root, to_start = frozenset(directory.files), len(root) + 1, len(start) + 1
    for entry in _walk(start, recurse=directory.recurse):
        if not directory.any_extension and not entry.name.endswith(ENDINGS):
            continue
        name, below = entry.path[to_root:], entry.path[to_start:]
        if not _is_manifest_file(entry, name, root):
            continue
        if only and name not in only:
            continue
        if exclude and exclude.fullmatch(below):
            continue
        if include is None or include.fullmatch(below):
            yield name


def _walk(start: str, *, recurse: bool) -> Iterator[os.DirEntry[str]]:
    """Everything that is no directory, name by name; links to directories are not followed."""
    waiting = _entries(start)
    while waiting:
        entry = waiting.pop()
        if not entry.is_dir(follow_symlinks=False):
            yield entry
        elif recurse:
            waiting += _entries(entry.path)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """The last first."""
    with os.scandir(folder) as listed:
        return sorted(listed, key=lambda one: one.name, reverse=True)


def _is_manifest_file(entry: os.DirEntry[str], name: str, root: str) -> bool:
    """False for links into nothing and for what is no file; links out of the tree are refused."""
    if not entry.is_symlink():
        return entry.is_file()
    try:
        return resolve_within(Path(entry.path), Path(root)).is_file()
    except PathEscapeError as stray:
        if stray.violation is PathViolation.OUTSIDE:
            code, problem = "render.directory.outside", "is a link that leads out of the source"
            hint = "keep manifests, and what they link to, inside one source"
        else:
            code, problem = "render.directory.file", "is a link that leads in a circle"
            hint = "remove the link, or let it lead to a file"
        problem = f"`{sanitize(name)}` {problem}"
        raise RenderError(code, problem, location=Location(name), hint=hint) from None


def _glob(directory: Directory, field: str, pattern: str) -> re.Pattern[str] | None:
    try:
        return compile_glob(pattern) if pattern else None
    except ValueError as error:
        problem = f"`{sanitize(pattern)}` is no pattern: {error}"
        where = Location(directory.path, field=field)
        raise RenderError("render.directory.pattern", problem, location=where) from None


def _read(within: RootedFiles, name: str, room: int) -> bytes:
    try:
        with within.open(name) as file:
            content = file.read(room + 1)
    except (OSError, PathEscapeError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        problem = f"`{sanitize(name)}` cannot be read: {sanitize(why or 'it changed')}"
        raise RenderError("render.directory.file", problem, location=Location(name)) from None
    if len(content) > room:
        problem = "the manifests of the directory are larger than they may be together"
        hint = "exclude what is no manifest, or raise the limit"
        raise RenderError("render.directory.size", problem, location=Location(name), hint=hint)
    return content


def _read_jsonnet(directory: Directory, name: str, evaluated: str | None) -> tuple[Document, ...]:
    if not directory.jsonnet:
        return ()
    if evaluated is None:
        problem = f"`{sanitize(name)}` is Jsonnet, which cannot be rendered here"
        hint = "exclude it, or commit what it renders to"
        raise RenderError("render.directory.jsonnet", problem, location=Location(name), hint=hint)
    result: Json = msgspec.json.decode(evaluated)
    documents: list[Document] = []
    for number, body in enumerate(result if isinstance(result, list) else [result]):
        if not isinstance(body, dict) or not _has_kind(Document(body, Location(name))):
            problem = "the file comes to something that is no Kubernetes object"
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
    content: bytes, name: str, read: DocumentReader, *, must: bool
) -> tuple[Document, ...]:
    """The objects of a file; of one that is no manifest none, unless it `must` be one."""
    if SKIP_MARK in content:
        return ()
    if name.endswith(".json"):
        return _read_json(content, name)
    try:
        documents = read(content, name)
    except DocumentError as error:
        if must or _some_before(content, error) or _looks_like_a_manifest(content):
            raise
        return ()
    unknown = next((document for document in documents if not _has_kind(document)), None)
    if unknown is None:
        return documents
    if must:
        problem = "a document has no `kind`: it is no Kubernetes object"
        hint = "add the kind, or name another file"
        raise RenderError(
            "render.directory.manifest", problem, location=unknown.location, hint=hint
        )
    if unknown is not documents[0] or _looks_like_a_manifest(content):
        problem = "a document has no `kind`, and others in the file look like manifests"
        hint = "add the kind, or move what is no manifest to another file"
        raise RenderError(
            "render.directory.manifest", problem, location=unknown.location, hint=hint
        )
    return ()


def _read_json(content: bytes, name: str) -> tuple[Document, ...]:
    """Argo CD takes a JSON file for one object, whatever it is."""
    documents = read_documents(content, name)
    parts = {document.document_index for document in documents}
    if len(parts) > 1:
        problem = "the JSON file holds more than one object"
        hint = "make it a List, or a file for each"
        raise RenderError("render.directory.manifest", problem, location=Location(name), hint=hint)
    if not documents or not all(_has_kind(document) for document in documents):
        problem = "the JSON file holds no Kubernetes object"
        hint = "exclude it"
        raise RenderError("render.directory.manifest", problem, location=Location(name), hint=hint)
    return documents


def _has_kind(document: Document) -> bool:
    return bool(get_text(document.body, "kind"))


def _looks_like_a_manifest(content: bytes) -> bool:
    return all(mark in content for mark in LOOKS_LIKE_A_MANIFEST)


def _some_before(content: bytes, error: DocumentError) -> bool:
    """True if an object stands before the document that cannot be read."""
    line = error.location.line if error.location else 0
    lines = content.splitlines(keepends=True)[: max(line - 1, 0)]
    while lines and not lines[-1].startswith(b"---"):
        lines.pop()
    try:
        return any(_has_kind(document) for document in read_documents(b"".join(lines[:-1]), ""))
    except DocumentError:
        return False

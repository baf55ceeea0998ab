"""Objects that kustomize printed, with the files that they come from."""

from __future__ import annotations

import posixpath

import msgspec

from tidegate.documents import Document, DocumentReader, read_documents
from tidegate.errors import DocumentError, Location, RenderError, sanitize
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.kustomize.collect import OverlayInputs

ORIGIN = "config.kubernetes.io/origin"
_SEES_ANNOTATIONS = lazy_regex(
    rb"""metadata[/.]annotations|/metadata\b(?!/)|fieldPath['"]?\s*:\s*['"]?metadata\b(?!\.)"""
)


def may_see_annotations(inputs: OverlayInputs) -> bool:
    """Return whether a patch or a replacement could see the annotations for origins."""
    return any(_SEES_ANNOTATIONS.search(text) for text in inputs.copy.files.values())


def has_origin_annotations(body: JsonObject) -> bool:
    """Return whether the kustomization itself requests origin annotations."""
    return "originAnnotations" in get_list(body, "buildMetadata")


def with_origins(body: JsonObject) -> JsonObject:
    """Return the kustomization with origin annotations."""
    return {**body, "buildMetadata": [*get_list(body, "buildMetadata"), "originAnnotations"]}


def read_objects(output: bytes, inputs: OverlayInputs) -> list[Document]:
    """Return the objects of a build, each with the overlay as its location."""
    location = Location(inputs.overlay.path or ".")
    try:
        return [
            msgspec.structs.replace(document, location=location, document_index=0, list_path=())
            for document in read_documents(output, "kustomize")
        ]
    except DocumentError as error:
        problem = f"cannot parse the output of kustomize: {error.problem}"
        raise RenderError("render.kustomize.output", problem, location=location) from error


def locate_objects(
    objects: list[Document],
    annotated: list[Document],
    inputs: OverlayInputs,
    read: DocumentReader,
) -> list[Document]:
    """Return the objects, each with the location that its annotated twin names."""
    if [_identity(document) for document in objects] != [
        _identity(document) for document in annotated
    ]:
        return objects
    finder = _LocationFinder(inputs, read)
    return [
        finder.locate(document, _origin_path(twin))
        for document, twin in zip(objects, annotated, strict=True)
    ]


def without_origin(document: Document) -> Document:
    """Return the object without its origin annotation."""
    metadata = get_mapping(document.body, "metadata")
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict):
        return document
    other_annotations = {key: value for key, value in annotations.items() if key != ORIGIN}
    other_metadata = {key: value for key, value in metadata.items() if key != "annotations"}
    body: JsonObject = {
        **document.body,
        "metadata": {**other_metadata, "annotations": other_annotations}
        if other_annotations
        else other_metadata,
    }
    return msgspec.structs.replace(document, body=body)


def _identity(document: Document) -> tuple[Json, Json, Json]:
    metadata = get_mapping(document.body, "metadata")
    return (document.body.get("kind"), metadata.get("namespace"), metadata.get("name"))


def _origin_path(document: Document) -> str:
    """Return the path in the annotation, relative to the overlay; empty without one."""
    origin = get_text(document.body, "metadata", "annotations", ORIGIN)
    fields = dict(line.split(": ", 1) for line in origin.splitlines() if ": " in line)
    return fields.get("path") or fields.get("configuredIn") or ""


class _LocationFinder:
    """A finder of objects in the files of a build."""

    def __init__(self, inputs: OverlayInputs, read: DocumentReader) -> None:
        self._copy = inputs.copy
        self._start = posixpath.dirname(inputs.top_file)
        self._labels = list(inputs.overlay.fetched)
        self._read = read
        self._documents_by_path: dict[str, tuple[Document, ...]] = {}

    def locate(self, document: Document, origin: str) -> Document:
        """Return a document with the location of its original."""
        if not origin:
            return document
        copy_path = posixpath.normpath(posixpath.join(self._start, origin))
        original = self._find_original(document, copy_path)
        if original is None:
            return msgspec.structs.replace(document, location=Location(self._name(copy_path)))
        return msgspec.structs.replace(
            document,
            location=original.location,
            document_index=original.document_index,
            list_path=original.list_path,
        )

    def _find_original(self, document: Document, copy_path: str) -> Document | None:
        """Return the object of the file that this one was built from: same kind, similar name."""
        kind, _, name = _identity(document)
        candidates = [
            (str(original_name), candidate)
            for candidate in self._documents(copy_path)
            if (original_name := _identity(candidate)[2])
            and _identity(candidate)[0] == kind
            and str(original_name) in str(name)
        ]
        return max(candidates, key=lambda pair: len(pair[0]))[1] if candidates else None

    def _documents(self, copy_path: str) -> tuple[Document, ...]:
        if copy_path not in self._documents_by_path:
            content = self._copy.files.get(copy_path, b"")
            try:
                self._documents_by_path[copy_path] = self._read(content, self._name(copy_path))
            except DocumentError:
                self._documents_by_path[copy_path] = ()
        return self._documents_by_path[copy_path]

    def _name(self, copy_path: str) -> str:
        mount, _, path = copy_path.partition("/")
        if mount != "fetched":
            return path
        number, _, path = path.partition("/")
        return f"{sanitize(self._labels[int(number)])}: {path}"

"""Read the objects that kustomize wrote, and find where each of them comes from."""

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


def may_see_annotations(gathering: OverlayInputs) -> bool:
    """True if a patch or a replacement could see annotations that we add to find origins."""
    return any(_SEES_ANNOTATIONS.search(text) for text in gathering.copy.files.values())


def has_origin_annotations(body: JsonObject) -> bool:
    return "originAnnotations" in get_list(body, "buildMetadata")


def with_origins(body: JsonObject) -> JsonObject:
    return {**body, "buildMetadata": [*get_list(body, "buildMetadata"), "originAnnotations"]}


def read_objects(output: bytes, gathering: OverlayInputs) -> list[Document]:
    """The objects of a build, each with the overlay as its place."""
    place = Location(gathering.overlay.path or ".")
    try:
        return [
            msgspec.structs.replace(document, location=place, document_index=0, list_path=())
            for document in read_documents(output, "kustomize")
        ]
    except DocumentError as error:
        problem = f"what kustomize wrote cannot be read: {error.problem}"
        raise RenderError("render.kustomize.output", problem, location=place) from error


def locate_objects(
    objects: list[Document],
    annotated: list[Document],
    gathering: OverlayInputs,
    read: DocumentReader,
) -> list[Document]:
    """The same objects, each at the place that its annotated twin names."""
    if [_identity(one) for one in objects] != [_identity(one) for one in annotated]:
        return objects
    files = _Files(gathering, read)
    return [
        files.place(document, _origin_of(twin))
        for document, twin in zip(objects, annotated, strict=True)
    ]


def without_origin(document: Document) -> Document:
    """The object as it would be if nobody had asked for its origin."""
    metadata = get_mapping(document.body, "metadata")
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict):
        return document
    kept = {key: value for key, value in annotations.items() if key != ORIGIN}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    body: JsonObject = {
        **document.body,
        "metadata": {**rest, "annotations": kept} if kept else rest,
    }
    return msgspec.structs.replace(document, body=body)


def _identity(document: Document) -> tuple[Json, Json, Json]:
    names = get_mapping(document.body, "metadata")
    return (document.body.get("kind"), names.get("namespace"), names.get("name"))


def _origin_of(document: Document) -> str:
    """The path in the annotation, seen from the overlay; empty if there is none."""
    origin = get_text(document.body, "metadata", "annotations", ORIGIN)
    fields = dict(line.split(": ", 1) for line in origin.splitlines() if ": " in line)
    return fields.get("path") or fields.get("configuredIn") or ""


class _Files:
    """The files of a build, read once more to find objects in them."""

    def __init__(self, gathering: OverlayInputs, read: DocumentReader) -> None:
        self._copy = gathering.copy
        self._start = posixpath.dirname(gathering.top)
        self._labels = list(gathering.overlay.fetched)
        self._read = read
        self._known: dict[str, tuple[Document, ...]] = {}

    def place(self, document: Document, origin: str) -> Document:
        if not origin:
            return document
        copied = posixpath.normpath(posixpath.join(self._start, origin))
        twin = self._twin(document, copied)
        if twin is None:
            return msgspec.structs.replace(document, location=Location(self._name(copied)))
        return msgspec.structs.replace(
            document,
            location=twin.location,
            document_index=twin.document_index,
            list_path=twin.list_path,
        )

    def _twin(self, document: Document, copied: str) -> Document | None:
        """The object of the file that this one was made of: of its kind, and called alike."""
        kind, _, name = _identity(document)
        alike = [
            (str(own), one)
            for one in self._documents(copied)
            if (own := _identity(one)[2]) and _identity(one)[0] == kind and str(own) in str(name)
        ]
        return max(alike, key=lambda pair: len(pair[0]))[1] if alike else None

    def _documents(self, copied: str) -> tuple[Document, ...]:
        if copied not in self._known:
            content = self._copy.files.get(copied, b"")
            try:
                self._known[copied] = self._read(content, self._name(copied))
            except DocumentError:
                self._known[copied] = ()
        return self._known[copied]

    def _name(self, copied: str) -> str:
        mount, _, path = copied.partition("/")
        if mount != "fetched":
            return path
        number, _, path = path.partition("/")
        return f"{sanitize(self._labels[int(number)])}: {path}"

"""Reader that splits a file into objects, and locates fields in it.

A List is not an object: each of its items is, with its own location.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from tidegate.documents.build import parse_document
from tidegate.documents.document import Document, DuplicateKey, format_path
from tidegate.documents.locations import Outline, build_outline
from tidegate.documents.split import DocumentText, split_documents
from tidegate.errors import DocumentError, Location
from tidegate.model.k8s.objects import FieldPath, Json

DocumentReader: TypeAlias = Callable[[bytes, str], tuple[Document, ...]]
"""A function that reads the objects of a text; its second argument names the text in errors."""
MAX_OUTLINES = 64
"""Number of documents of a file whose outlines are kept; most fields are found in file order."""


def read_documents(source: str | bytes, name: str) -> tuple[Document, ...]:
    """Read all objects of a file as Kubernetes reads them. `name` names the file in errors.

    Like `NewYAMLOrJSONDecoder` in `pkg/util/yaml/decoder.go` and `decodeToList` in
    `pkg/apis/meta/v1/unstructured/helpers.go` of k8s.io/apimachinery 0.36.4.
    """
    return tuple(
        document for part in split_documents(source, name) for document in _read_part(part)
    )


def read_first_value(source: str | bytes, name: str) -> Json:
    """Return the first value of a file, of any type. Returns None for an empty file."""
    for part in split_documents(source, name):
        parsed = parse_document(part)
        if parsed is not None:
            return parsed.value
    return None


def reject_duplicates(documents: Iterable[Document]) -> None:
    """Raise a DocumentError for the first duplicate key."""
    for document in documents:
        for error in duplicate_errors(document):
            raise error


def duplicate_errors(document: Document) -> Iterator[DocumentError]:
    """Yield an error for each duplicate key of a document."""
    for duplicate in document.duplicates:
        field, first, last = format_path(duplicate.path), duplicate.first.line, duplicate.last.line
        lines = f": in line {first} and in line {last}" if first != last else f" in line {last}"
        yield DocumentError(
            "documents.duplicate",
            f"the key `{field}` is duplicated{lines}; Kubernetes drops the first",
            location=Location(
                duplicate.last.name, duplicate.last.line, duplicate.last.column, field
            ),
            hint="remove one of the two",
        )


class FileLocations:
    """Locations of fields in one file, which is split once for all of them."""

    def __init__(self, source: str | bytes, name: str) -> None:
        try:
            self._parts = split_documents(source, name)
        except DocumentError:
            self._parts = ()
        self._outlines: dict[int, Outline | None] = {}

    def find(self, document: Document, path: FieldPath) -> Location:
        """Return the location of a key or an item, or of its closest existing parent.

        A document that is not found because the file has changed keeps its old location.
        """
        outline = self._outline(document.document_index)
        location = (
            outline.find_location((*document.list_path, *path)) if outline else document.location
        )
        return Location(location.name, location.line, location.column, format_path(path))

    def _outline(self, number: int) -> Outline | None:
        if number not in self._outlines:
            if len(self._outlines) >= MAX_OUTLINES:
                del self._outlines[next(iter(self._outlines))]
            self._outlines[number] = _outline_of_part(self._parts, number)
        return self._outlines[number]


def find_location(source: str | bytes, document: Document, path: FieldPath) -> Location:
    """Return the location of a key or an item, or of its closest existing parent."""
    return FileLocations(source, document.location.name).find(document, path)


def find_locations(
    source: str | bytes, fields: Sequence[tuple[Document, FieldPath]]
) -> tuple[Location, ...]:
    """Return the locations of many fields of documents in one file."""
    if not fields:
        return ()
    file_locations = FileLocations(source, fields[0][0].location.name)
    return tuple(file_locations.find(document, path) for document, path in fields)


def _outline_of_part(parts: tuple[DocumentText, ...], number: int) -> Outline | None:
    try:
        return build_outline(parts[number]) if parse_document(parts[number]) else None
    except (DocumentError, IndexError):
        return None


def _read_part(part: DocumentText) -> tuple[Document, ...]:
    parsed = parse_document(part)
    if parsed is None or parsed.value is None:
        return ()
    value = parsed.value
    if isinstance(value, dict) and not parsed.may_have_duplicates and not _is_list(value):
        return (Document(value, parsed.location, part.number),)
    document_outline = build_outline(part)
    documents = tuple(_flatten(value, (), document_outline))
    return _assign_duplicates(documents, document_outline.duplicates)


def _is_list(value: dict[str, Json]) -> bool:
    kind = value.get("kind")
    return isinstance(kind, str) and kind.endswith("List") and "items" in value


def _flatten(value: Json, list_path: FieldPath, document_outline: Outline) -> Iterator[Document]:
    location = document_outline.find_value_location(list_path)
    if not isinstance(value, dict):
        problem = "a document must be a mapping of keys to values"
        hint = "every object starts with `apiVersion` and `kind`"
        raise DocumentError("documents.object", problem, location=location, hint=hint)
    if not _is_list(value):
        yield Document(value, location, document_outline.part.number, list_path)
        return
    items = value["items"]
    if not isinstance(items, list | None):
        problem = "`items` of a List must be a list"
        raise DocumentError(
            "documents.list",
            problem,
            location=document_outline.find_location((*list_path, "items")),
        )
    for index, item in enumerate(items or ()):
        yield from _flatten(_with_kind(item, value), (*list_path, "items", index), document_outline)


def _with_kind(item: Json, parent: dict[str, Json]) -> Json:
    """Return a list item with the kind of its typed list (`ConfigMapList`) if the item has none.

    Like `decodeToList` in `pkg/apis/meta/v1/unstructured/helpers.go` of k8s.io/apimachinery 0.36.4.
    """
    kind = str(parent["kind"]).removesuffix("List")
    if not kind or not isinstance(item, dict) or item.get("kind") or item.get("apiVersion"):
        return item
    return {**item, "apiVersion": parent.get("apiVersion"), "kind": kind}


def _assign_duplicates(
    documents: tuple[Document, ...], duplicates: tuple[DuplicateKey, ...]
) -> tuple[Document, ...]:
    """Assign duplicate keys to their documents.

    Those of an enclosing List go to the first document.
    """
    if not duplicates or not documents:
        return documents
    owners: dict[FieldPath, list[DuplicateKey]] = {document.list_path: [] for document in documents}
    for duplicate in duplicates:
        ends = range(len(duplicate.path), -1, -1)
        owner = next((p for end in ends if (p := duplicate.path[:end]) in owners), None)
        if owner is None:
            owners[documents[0].list_path].append(duplicate)
        else:
            relative = msgspec.structs.replace(duplicate, path=duplicate.path[len(owner) :])
            owners[owner].append(relative)
    return tuple(
        msgspec.structs.replace(document, duplicates=tuple(owners[document.list_path]))
        for document in documents
    )

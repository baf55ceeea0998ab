"""Read a file into documents, and find places in it again.

A List is not an object of its own: its items are, each with its own line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from tidegate.documents.build import build
from tidegate.documents.document import Document, Duplicate, FieldPath, path_text
from tidegate.documents.outline import Outline, outline
from tidegate.documents.stream import FilePart, split
from tidegate.errors import DocumentError, Place
from tidegate.model.objects import Json

Read: TypeAlias = Callable[[bytes, str], tuple[Document, ...]]
"""The objects of a text, by how errors call it."""


def read(source: str | bytes, name: str) -> tuple[Document, ...]:
    """Read every object in a file, as Kubernetes reads it. `name` is how errors call the file."""
    return tuple(document for part in split(source, name) for document in _read_part(part))


def read_value(source: str | bytes, name: str) -> Json:
    """The first value in a file, whatever it is; None where there is nothing."""
    for part in split(source, name):
        built = build(part)
        if built is not None:
            return built.value
    return None


def refuse_duplicates(documents: Iterable[Document]) -> None:
    """Raise for the first key that is written twice, for callers that take no such file."""
    for document in documents:
        for error in duplicate_errors(document):
            raise error


def duplicate_errors(document: Document) -> Iterator[DocumentError]:
    """Each key of a document that is written twice."""
    for twice in document.duplicates:
        field, first, last = path_text(twice.path), twice.first.line, twice.last.line
        lines = f": in line {first} and in line {last}" if first != last else f" in line {last}"
        yield DocumentError(
            "documents.duplicate",
            f"the key `{field}` is written twice{lines}, and Kubernetes drops the first",
            where=Place(twice.last.name, twice.last.line, twice.last.column, field),
            hint="remove one of the two",
        )


def find_place(source: str | bytes, document: Document, path: FieldPath) -> Place:
    """The line and column of a key or an item, or of the nearest thing above it."""
    return find_places(source, [(document, path)])[0]


def find_places(
    source: str | bytes, wanted: Sequence[tuple[Document, FieldPath]]
) -> tuple[Place, ...]:
    """The places of many paths in documents of one file, which is read once more.

    If the file has changed so much that a document is not found again, its old place is given.
    """
    try:
        parts = split(source, wanted[0][0].place.name) if wanted else ()
    except DocumentError:
        parts = ()
    shapes: dict[int, Outline | None] = {}
    places = []
    for document, path in wanted:
        if document.part not in shapes:
            shapes[document.part] = _shape(parts, document.part)
        shape = shapes[document.part]
        place = shape.find((*document.inside, *path)) if shape else document.place
        places.append(Place(place.name, place.line, place.column, path_text(path)))
    return tuple(places)


def _shape(parts: tuple[FilePart, ...], number: int) -> Outline | None:
    try:
        return outline(parts[number]) if build(parts[number]) else None
    except (DocumentError, IndexError):
        return None


def _read_part(part: FilePart) -> tuple[Document, ...]:
    built = build(part)
    if built is None or built.value is None:
        return ()
    value = built.value
    if isinstance(value, dict) and not built.suspicious and not _is_list(value):
        return (Document(value, built.place, part.number),)
    shape = outline(part)
    documents = tuple(_flatten(value, (), shape))
    return _share(documents, shape.duplicates)


def _is_list(value: dict[str, Json]) -> bool:
    kind = value.get("kind")
    return isinstance(kind, str) and kind.endswith("List") and "items" in value


def _flatten(value: Json, inside: FieldPath, shape: Outline) -> Iterator[Document]:
    place = shape.find_value(inside)
    if not isinstance(value, dict):
        problem = "a document must be a mapping of keys to values"
        hint = "every object starts with `apiVersion` and `kind`"
        raise DocumentError("documents.object", problem, where=place, hint=hint)
    if not _is_list(value):
        yield Document(value, place, shape.part.number, inside)
        return
    items = value["items"]
    if not isinstance(items, list | None):
        problem = "`items` of a List must be a list"
        raise DocumentError("documents.list", problem, where=shape.find((*inside, "items")))
    for index, item in enumerate(items or ()):
        yield from _flatten(_with_kind(item, value), (*inside, "items", index), shape)


def _with_kind(item: Json, parent: dict[str, Json]) -> Json:
    """Items of a list with a kind of its own (`ConfigMapList`) need not say what they are."""
    kind = str(parent["kind"]).removesuffix("List")
    if not kind or not isinstance(item, dict) or item.get("kind") or item.get("apiVersion"):
        return item
    return {**item, "apiVersion": parent.get("apiVersion"), "kind": kind}


def _share(
    documents: tuple[Document, ...], duplicates: tuple[Duplicate, ...]
) -> tuple[Document, ...]:
    """Give each document its own duplicates; those of a List around them go to the first."""
    if not duplicates or not documents:
        return documents
    owners: dict[FieldPath, list[Duplicate]] = {document.inside: [] for document in documents}
    for twice in duplicates:
        ends = range(len(twice.path), -1, -1)
        inside = next((p for end in ends if (p := twice.path[:end]) in owners), None)
        if inside is None:
            owners[documents[0].inside].append(twice)
        else:
            own = msgspec.structs.replace(twice, path=twice.path[len(inside) :])
            owners[inside].append(own)
    return tuple(
        msgspec.structs.replace(document, duplicates=tuple(owners[document.inside]))
        for document in documents
    )

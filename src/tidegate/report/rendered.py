"""Rendered objects as text, masked, and what is to be said about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.documents import Document, FieldPath
from tidegate.documents.dump import to_json, to_yaml
from tidegate.errors import TidegateError
from tidegate.model.objects import Json
from tidegate.report.masking import masked


def show(
    documents: Iterable[Document],
    hidden: Iterable[tuple[FieldPath, ...]],
    *,
    form: str,
    origins: bool = False,
) -> Iterator[str]:
    """One piece of text for each object: YAML, a line of JSON, or its name."""
    for document, paths in zip(documents, hidden, strict=True):
        body = masked(document.body, paths)
        match form:
            case "names":
                yield f"{_name(body)}\n"
            case "json":
                yield f"{to_json(body).decode()}\n"
            case _:
                origin = f"# {document.place}\n" if origins else ""
                yield f"---\n{origin}{to_yaml(body)}"


def talk(*, notes: Iterable[TidegateError], unknown: Mapping[str, TidegateError]) -> Iterator[str]:
    """What else there is to say: notes on the objects, and which objects are not known and why."""
    yield from map(str, notes)
    for what, why in unknown.items():
        yield f"not known: {what}"
        yield str(why)


def _name(body: dict[str, Json]) -> str:
    metadata = body.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    namespace, name = known.get("namespace"), known.get("name", known.get("generateName", ""))
    spot = f"{namespace}/{name}" if namespace else str(name)
    return f"{body.get('apiVersion')} {body.get('kind')} {spot}"

"""Rendered objects as text, masked, and what is to be said about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.documents import Document, FieldPath
from tidegate.documents.dump import to_json, to_yaml
from tidegate.errors import TidegateError, escaped
from tidegate.model.finding import Finding
from tidegate.model.objects import Json
from tidegate.model.unit import UnitId
from tidegate.report.findings import finding_document
from tidegate.report.masking import masked
from tidegate.report.places import seen_error, seen_text


def show(
    objects: Iterable[tuple[Document, tuple[FieldPath, ...]]],
    *,
    form: str,
    origins: bool = False,
) -> Iterator[str]:
    """One piece of text for each object with its hidden fields: YAML, JSON, or its name."""
    for document, paths in objects:
        body = masked(document.body, paths)
        match form:
            case "names":
                yield _name(body)
            case "json":
                yield f"{to_json(body).decode()}\n"
            case _:
                origin = f"# {escaped(seen_text(document.place))}\n" if origins else ""
                yield f"---\n{origin}{to_yaml(body)}"


def unit_line(
    names: tuple[UnitId | None, UnitId | None],
    objects: Iterable[tuple[Document, tuple[FieldPath, ...]]],
    said: Mapping[str, Iterable[TidegateError]],
    findings: Iterable[Finding],
) -> str:
    """A unit and its entry in one line of JSON, with its objects and what is wrong."""
    unit, entry = (str(one) if one else None for one in names)
    line: dict[str, Json] = {
        "unit": unit,
        "entry": entry,
        "objects": [masked(document.body, paths) for document, paths in objects],
        **{name: [str(seen_error(one)) for one in errors] for name, errors in said.items()},
        "findings": [finding_document(one) for one in findings],
    }
    return to_json(line).decode()


def _name(body: dict[str, Json]) -> str:
    metadata = body.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    namespace, name = known.get("namespace"), known.get("name", known.get("generateName", ""))
    spot = f"{namespace}/{name}" if namespace else str(name)
    return f"{body.get('apiVersion')} {body.get('kind')} {spot}"

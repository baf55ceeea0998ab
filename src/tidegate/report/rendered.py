"""Rendered objects as text, with secret values masked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.documents import Document
from tidegate.documents.dump import to_json, to_yaml
from tidegate.errors import TidegateError, escape_line
from tidegate.model.display_paths import display_error, location_text
from tidegate.model.finding import Finding
from tidegate.model.k8s.objects import FieldPath, Json
from tidegate.model.k8s.secret import secret_field_paths
from tidegate.model.plans.change import MASK
from tidegate.model.units.unit import UnitId
from tidegate.report.findings import finding_document


def mask_secrets(body: dict[str, Json], hidden: Iterable[FieldPath] = ()) -> dict[str, Json]:
    """Return the object without the values of a Secret and without values encrypted in Git."""
    shown: Json = body
    for path in (*secret_field_paths(body), *hidden):
        shown = _mask_field(shown, path)
    if not isinstance(shown, dict):
        raise TypeError(shown)
    return shown


def _mask_field(value: Json, path: FieldPath) -> Json:
    """Return the value with a mask at a path; unchanged where the path does not exist."""
    if not path:
        return MASK
    head, subpath = path[0], path[1:]
    if isinstance(value, dict) and isinstance(head, str) and head in value:
        return {**value, head: _mask_field(value[head], subpath)}
    if isinstance(value, list) and isinstance(head, int) and head < len(value):
        return [*value[:head], _mask_field(value[head], subpath), *value[head + 1 :]]
    return value


def manifest_texts(
    objects: Iterable[tuple[Document, tuple[FieldPath, ...]]],
    *,
    output_format: str,
    with_origins: bool = False,
) -> Iterator[str]:
    """Yield the text of each object with its hidden fields masked: YAML, JSON or its name."""
    for document, paths in objects:
        body = mask_secrets(document.body, paths)
        match output_format:
            case "names":
                yield _object_name(body)
            case "json":
                yield f"{to_json(body).decode()}\n"
            case _:
                origin = (
                    f"# {escape_line(location_text(document.location))}\n" if with_origins else ""
                )
                yield f"---\n{origin}{to_yaml(body)}"


def unit_json_line(
    unit_and_root: tuple[UnitId | None, UnitId | None],
    objects: Iterable[tuple[Document, tuple[FieldPath, ...]]],
    errors_by_key: Mapping[str, Iterable[TidegateError]],
    findings: Iterable[Finding],
) -> str:
    """Return a unit and its root unit as one line of JSON, with its objects and problems."""
    unit, root = (str(unit_id) if unit_id else None for unit_id in unit_and_root)
    line: dict[str, Json] = {
        "unit": unit,
        "root": root,
        "objects": [mask_secrets(document.body, paths) for document, paths in objects],
        **{
            name: [str(display_error(error)) for error in errors]
            for name, errors in errors_by_key.items()
        },
        "findings": [finding_document(finding) for finding in findings],
    }
    return to_json(line).decode()


def _object_name(body: dict[str, Json]) -> str:
    metadata = body.get("metadata")
    fields = metadata if isinstance(metadata, dict) else {}
    namespace, name = fields.get("namespace"), fields.get("name", fields.get("generateName", ""))
    qualified_name = f"{namespace}/{name}" if namespace else str(name)
    return f"{body.get('apiVersion')} {body.get('kind')} {qualified_name}"

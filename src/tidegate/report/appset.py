"""Generated Applications of ApplicationSets as YAML, JSON or names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.documents.dump import to_json, to_yaml
from tidegate.model.k8s.objects import Json
from tidegate.model.views.appset import GeneratedApplication
from tidegate.report.rendered import mask_secrets


def appset_texts(
    rows: Iterable[GeneratedApplication], *, output_format: str, with_params: bool
) -> Iterator[str]:
    """Yield a text for each Application: YAML, a line of JSON, or its name."""
    for row in rows:
        match output_format:
            case "names":
                params_text = f"  {to_json(row.params).decode()}" if with_params else ""
                yield f"{row.name}{params_text}\n"
            case "json":
                document = _application_document(row) if with_params else mask_secrets(row.body)
                yield f"{to_json(document).decode()}\n"
            case _:
                shown = row.params if with_params else mask_secrets(row.body)
                name = f"{row.name}: " if with_params else ""
                yield f"---\n# {name}{row.origin}\n{to_yaml(shown)}"


def _application_document(row: GeneratedApplication) -> dict[str, Json]:
    return {
        "set": row.appset,
        "generator": row.generator,
        "number": row.number,
        "step": row.step,
        "params": row.params,
        "application": mask_secrets(row.body),
    }

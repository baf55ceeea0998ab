"""Duration profile as YAML: keys in the documented order, one line per duration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.objects import Json


def profile_lines(document: Mapping[str, Json]) -> Iterator[str]:
    """Yield a document of mappings, lists of mappings and texts."""
    for key, part in document.items():
        if isinstance(part, list):
            yield f"{key}:"
            for item in part:
                yield from _list_item_lines(item)
        elif isinstance(part, dict):
            yield f"{key}:"
            yield from (f"  {name}: {_inline_yaml(value)}" for name, value in part.items())
        else:
            yield f"{key}: {_inline_yaml(part)}"


def _list_item_lines(item: Json) -> Iterator[str]:
    """Yield the lines of a list item."""
    prefix = "- "
    for name, value in item.items() if isinstance(item, dict) else ():
        yield f"{prefix}{name}: {_inline_yaml(value)}"
        prefix = "  "


def _inline_yaml(value: Json) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_inline_yaml(item)}' for key, item in value.items())}}}"
    return to_yaml(value).rstrip("\n")

"""A profile as a file: the keys in the order of its page, each duration on one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidegate.documents.dump import to_yaml
from tidegate.model.objects import Json


def profile_lines(document: Mapping[str, Json]) -> Iterator[str]:
    """A document of mappings, lists of mappings and texts."""
    for key, part in document.items():
        if isinstance(part, list):
            yield f"{key}:"
            for item in part:
                yield from _item(item)
        elif isinstance(part, dict):
            yield f"{key}:"
            yield from (f"  {name}: {_flow(one)}" for name, one in part.items())
        else:
            yield f"{key}: {_flow(part)}"


def _item(item: Json) -> Iterator[str]:
    """An entry of a list."""
    lead = "- "
    for name, one in item.items() if isinstance(item, dict) else ():
        yield f"{lead}{name}: {_flow(one)}"
        lead = "  "


def _flow(value: Json) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_flow(one)}' for key, one in value.items())}}}"
    return to_yaml(value).rstrip("\n")

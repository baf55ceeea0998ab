"""Locations of fields that a `templatePatch` of an ApplicationSet sets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tidegate.documents import Document, find_location
from tidegate.errors import Location
from tidegate.model.paths import resolve_server_path
from tidegate.model.patterns import lazy_regex
from tidegate.model.reading import get_text, get_value

TEMPLATE_FIELD_PREFIX, TEMPLATE_PATCH_PATH = "spec.template.", ("spec", "templatePatch")
_KEYS = lazy_regex(r"\[[^\]]*\]|[^.\[\]]+")
_DIRECTIVE = lazy_regex(r"\s*(?:\{\{.*\}\}\s*)?(?:#.*)?$")
"""Lines that set no field: blank lines, comments and template actions alone."""


class _KeyMatch(NamedTuple):
    """How many keys of a path were found, and the line of the last."""

    depth: int
    line: int


def locate_in_template_patch(
    document: Document, location: Location, content: bytes
) -> Location | None:
    """Return the line of a template field in the patch of an ApplicationSet.

    None where the patch does not set the field.
    """
    patch = get_value(document.body, *TEMPLATE_PATCH_PATH)
    if get_text(document.body, "kind") != "ApplicationSet" or not isinstance(patch, str):
        return None
    if not location.field.startswith(TEMPLATE_FIELD_PREFIX):
        return None
    field = location.field.removeprefix(TEMPLATE_FIELD_PREFIX)
    keys = [key for key in _KEYS.findall(field) if not key.startswith("[")]
    lines = patch.splitlines()
    key_match = _follow_keys(lines, keys)
    template_path = resolve_server_path(get_value(document.body, "spec", "template"), field)
    template_depth = len([step for step in template_path if isinstance(step, str)])
    if key_match.depth < len(keys) and key_match.depth <= template_depth:
        return None
    start = find_location(content, document, TEMPLATE_PATCH_PATH)
    patch_location = start.with_field(f"{'.'.join(TEMPLATE_PATCH_PATH)}: {field}")
    line_index, patch_line = start.line + key_match.line, lines[key_match.line]
    file_lines = content.decode(errors="replace").splitlines()
    if line_index >= len(file_lines) or file_lines[line_index].strip() != patch_line.strip():
        return patch_location  # it is not written line by line
    column = len(file_lines[line_index]) - len(file_lines[line_index].lstrip()) + 1
    return Location(patch_location.name, line_index + 1, column, patch_location.field)


def _follow_keys(lines: Sequence[str], keys: Sequence[str]) -> _KeyMatch:
    """Follow keys from line to line, each deeper than the one before."""
    depth, line, indent, start = 0, 0, -1, 0
    for key in keys:
        number = _find_key(lines, key, start, indent)
        if number is None:
            break
        depth, line = depth + 1, number
        indent, start = _indent(lines[number]), number + 1
    return _KeyMatch(depth, line)


def _find_key(lines: Sequence[str], key: str, start: int, indent: int) -> int | None:
    """Return the line of a key directly below an indent, or in an item there; else None."""
    pattern = re.compile(rf"\s*(?:-\s+)?[\"']?{re.escape(key)}[\"']?\s*:")
    indents: set[int] = set()
    for number in range(start, len(lines)):
        line = lines[number]
        if _DIRECTIVE.fullmatch(line):
            continue
        if _indent(line) + line.lstrip().startswith("- ") <= indent:
            return None  # items may stand as far left as the key of their list
        indents = indents or {_indent(line), _indent(line.replace("-", " ", 1))}
        if pattern.match(line) and _indent(line) in indents:
            return number
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())

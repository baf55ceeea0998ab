"""Where in the text of a `templatePatch` a field stands that it brings into an Application."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tidegate.documents import Document, find_place
from tidegate.errors import Place
from tidegate.model.paths import path_in
from tidegate.model.patterns import late
from tidegate.model.reading import part, text

TEMPLATE, PATCH = "spec.template.", ("spec", "templatePatch")
_KEYS = late(r"\[[^\]]*\]|[^.\[\]]+")
_DIRECTIVE = late(r"\s*(?:\{\{.*\}\}\s*)?(?:#.*)?$")
"""Lines that bring nothing themselves: blanks, comments, and what stands in braces alone."""


class _Reached(NamedTuple):
    """How many of the keys that lead to a field were found, and the line of the last."""

    depth: int
    line: int


def place_in_patch(document: Document, place: Place, content: bytes) -> Place | None:
    """The line of a field of a set's template, where its patch brings the field; else None."""
    patch = part(document.body, *PATCH)
    if text(document.body, "kind") != "ApplicationSet" or not isinstance(patch, str):
        return None
    if not place.field.startswith(TEMPLATE):
        return None
    told = place.field.removeprefix(TEMPLATE)
    keys = [one for one in _KEYS.findall(told) if not one.startswith("[")]
    lines = patch.splitlines()
    reached = _reach(lines, keys)
    known = path_in(part(document.body, "spec", "template"), told)
    in_template = len([one for one in known if isinstance(one, str)])
    if reached.depth < len(keys) and reached.depth <= in_template:
        return None
    start = find_place(content, document, PATCH)
    found = start.at(f"{'.'.join(PATCH)}: {told}")
    at, wanted = start.line + reached.line, lines[reached.line]
    written = content.decode(errors="replace").splitlines()
    if at >= len(written) or written[at].strip() != wanted.strip():
        return found  # it is not written line by line
    column = len(written[at]) - len(written[at].lstrip()) + 1
    return Place(found.name, at + 1, column, found.field)


def _reach(lines: Sequence[str], keys: Sequence[str]) -> _Reached:
    """Follow keys from line to line, each deeper than the one before."""
    depth, at, indent, begin = 0, 0, -1, 0
    for key in keys:
        found = _line_of(lines, key, begin, indent)
        if found is None:
            break
        depth, at = depth + 1, found
        indent, begin = _indent(lines[found]), found + 1
    return _Reached(depth, at)


def _line_of(lines: Sequence[str], key: str, begin: int, indent: int) -> int | None:
    """The line of a key right below what stands at an indent, or in an item there."""
    pattern = re.compile(rf"\s*(?:-\s+)?[\"']?{re.escape(key)}[\"']?\s*:")
    below: set[int] = set()
    for number in range(begin, len(lines)):
        line = lines[number]
        if _DIRECTIVE.fullmatch(line):
            continue
        if _indent(line) + line.lstrip().startswith("- ") <= indent:
            return None  # items may stand as far left as the key of their list
        below = below or {_indent(line), _indent(line.replace("-", " ", 1))}
        if pattern.match(line) and _indent(line) in below:
            return number
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())

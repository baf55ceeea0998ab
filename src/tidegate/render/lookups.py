"""Templates of a chart that use `lookup`, found by their text."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tidegate.errors import Location, RenderError
from tidegate.files import read_regular_file
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.chart_request import ChartRequest
from tidegate.render.helm.worker.files import relative_to_source, resolve_inside
from tidegate.render.prescan import SearchPattern, chart_may_contain

LOOKUP: SearchPattern = lazy_regex(rb"\blookup\b")
_ACTION = lazy_regex(
    r"(?s)\{\{-?\s*(?:/\*.*?\*/|(?P<words>(?:\"(?:\\.|[^\"\\])*\"|`[^`]*`|.)*?))\s*-?\}\}"
)
_QUOTED = lazy_regex(r"(?s)\"(?:\\.|[^\"\\])*\"|`[^`]*`")
_CALL = lazy_regex(r"(?:^|[\s(|=])lookup(?=[\s)])")


def may_look_up(release: ChartRequest) -> bool:
    """Return whether a chart may use `lookup`; yes if that is uncertain."""
    try:
        return chart_may_contain(LOOKUP, release)
    except (RenderError, OSError):
        return True  # it cannot be rendered; the worker has the better error


def find_lookups(release: ChartRequest) -> Iterator[Location]:
    """Yield the location of the first `lookup` in each template; archives are not searched."""
    root = Path(release.root).resolve()
    try:
        chart = resolve_inside(root / release.chart.lstrip("/"), root, display_path=release.chart)
    except RenderError:
        return
    for directory, _, files in sorted(os.walk(chart)):
        if "templates" not in Path(directory).relative_to(chart).parts:
            continue
        for name in sorted(files):
            path = Path(directory, name)
            line = _first_call(_text(path))
            if line:
                location = Location(path.relative_to(chart).as_posix(), line=line)
                yield relative_to_source(location, release.chart)


def _text(path: Path) -> str:
    """Return the text of a file; empty if it is gone or no file."""
    try:
        return read_regular_file(path).decode(errors="replace")
    except OSError:
        return ""


def _first_call(template: str) -> int:
    """Return the line of the first call; 0 without one."""
    if "lookup" not in template:
        return 0
    for action in _ACTION.finditer(template):
        code = action["words"] or ""
        without_strings = _QUOTED.sub(lambda quoted: "·" * len(quoted[0]), code)
        call = _CALL.search(without_strings)
        if call:
            position = action.start("words") + without_strings.index("lookup", call.start())
            return template.count("\n", 0, position) + 1
    return 0

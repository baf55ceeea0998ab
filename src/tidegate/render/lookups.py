"""Which templates of a chart look something up in a cluster, told by their texts."""

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
    """Yes wherever that is not sure."""
    try:
        return chart_may_contain(LOOKUP, release)
    except (RenderError, OSError):
        return True  # it cannot be rendered either, and the worker says it better


def find_lookups(release: ChartRequest) -> Iterator[Location]:
    """The first place in each template that looks something up; what is packed is not opened."""
    top = Path(release.root).resolve()
    try:
        chart = resolve_inside(top / release.chart.lstrip("/"), top, shown=release.chart)
    except RenderError:
        return
    for folder, _, files in sorted(os.walk(chart)):
        if "templates" not in Path(folder).relative_to(chart).parts:
            continue
        for name in sorted(files):
            path = Path(folder, name)
            line = _first_call(_text(path))
            if line:
                where = Location(path.relative_to(chart).as_posix(), line=line)
                yield relative_to_source(where, release.chart)


def _text(path: Path) -> str:
    """What is gone by now, or no file, is no template."""
    try:
        return read_regular_file(path).decode(errors="replace")
    except OSError:
        return ""


def _first_call(template: str) -> int:
    """The line of the first call; 0 where there is none."""
    if "lookup" not in template:
        return 0
    for action in _ACTION.finditer(template):
        words = action["words"] or ""
        bare = _QUOTED.sub(lambda one: "·" * len(one[0]), words)
        call = _CALL.search(bare)
        if call:
            at = action.start("words") + bare.index("lookup", call.start())
            return template.count("\n", 0, at) + 1
    return 0

"""What the SDK complains about, as an error with the place in the template.

Runs in the worker. Helm's own words are kept where they say why; they are cut to a line.
"""

from __future__ import annotations

import re

from helm_python.errors import HelmChartLoadError, HelmError, HelmRenderError, HelmValuesError

from tidegate.errors import Location, RenderError, sanitize
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.helm.worker.files import relative_to_source

# `execution error at (web/templates/a.yaml:3:5): why`, from `fail`, `required` and the parser.
_AT = lazy_regex(r"error (?:at|in) \((?P<file>[^\s()]+?)(?::(?P<line>\d+))?(?::(?P<column>\d+))?\)")
# `web/templates/a.yaml:3:5`, one line for each template on the way in, then `executing ...`.
_STOP = lazy_regex(
    r"^\s*(?:template: )?(?P<file>[^\s:()]+/[^\s:()]+):(?P<line>\d+)(?::(?P<column>\d+))?",
    re.MULTILINE,
)
_EXECUTING = lazy_regex(r'^\s*executing ".*" at <.*>:?\s*$')
_SCHEMA = "values don't meet the specifications of the schema(s)"
# Where Helm's words hold a value, which may be a password: before what it should match, or behind
# what Go could not print.
_VALUE = lazy_regex(r"^'.*' (?=does not match|is not valid)|: %!\w\(.*\)")
_SCHEMA_LINE = lazy_regex(r"^- at '(?P<path>[^']*)': (?P<why>.+)$", re.MULTILINE)


def helm_error(error: HelmError, *, chart: str) -> RenderError:
    """One error of ours for one of the SDK's."""
    text = str(error)
    match error:
        case HelmRenderError():
            return _template(text, chart)
        case HelmValuesError() if _SCHEMA in text:
            return _schema(text, chart)
        case HelmValuesError():
            problem = f"Helm does not take the values: {sanitize(_VALUE.sub('', text))}"
            return RenderError("render.helm.values", problem, location=Location(chart))
        case HelmChartLoadError():
            problem = f"the chart cannot be read: {sanitize(_tail(text))}"
            return RenderError("render.helm.chart", problem, location=Location(chart))
        case _:
            problem = f"Helm does not take the chart: {sanitize(text)}"
            return RenderError("render.helm.chart", problem, location=Location(chart))


def strip_chart_name(path: str) -> str:
    """A template's path without the chart's name, which Helm puts first."""
    return path.partition("/")[2] or path


def _template(text: str, chart: str) -> RenderError:
    stops = [*_AT.finditer(text)] or [*_STOP.finditer(text)]
    if not stops:
        problem = f"the chart cannot be rendered: {sanitize(_tail(text))}"
        return RenderError("render.helm.template", problem, location=Location(chart))
    place = _place(stops[-1], chart)
    why = _reason(text[stops[-1].end() :])
    hint = f"reached from {_place(stops[0], chart)}" if len(stops) > 1 else ""
    problem = f"the template cannot be rendered: {sanitize(why)}"
    return RenderError("render.helm.template", problem, location=place, hint=hint)


def _place(stop: re.Match[str], chart: str) -> Location:
    # Go counts lines from one and columns from zero.
    column = int(stop["column"]) + 1 if stop["column"] else 0
    return relative_to_source(
        Location(strip_chart_name(stop["file"]), int(stop["line"] or 0), column), chart
    )


def _reason(rest: str) -> str:
    lines = [line for line in rest.splitlines() if not _EXECUTING.match(line)]
    return " ".join(lines).strip().removeprefix(": ").strip() or sanitize(rest)


def _schema(text: str, chart: str) -> RenderError:
    # Helm tells them in another order each time.
    found = sorted(
        (_field(one["path"]), _VALUE.sub("", one["why"])) for one in _SCHEMA_LINE.finditer(text)
    )
    why = "; ".join(f"`{field}`: {said}" for field, said in found)
    why = why or text.rpartition("chart(s):")[2]
    problem = f"the values do not fit the chart's schema: {sanitize(why)}"
    field = found[0][0] if found else ""
    where = Location(f"{chart}/values.schema.json", field=field)
    return RenderError("render.helm.schema", problem, location=where)


def _field(pointer: str) -> str:
    parts = pointer.strip("/").split("/")
    return ".".join(part.replace("~1", "/").replace("~0", "~") for part in parts) or "values"


def _tail(text: str) -> str:
    """The end of Helm's words, without the directories of this machine."""
    return re.sub(r"/\S*/(?=[^\s/])", "", text)

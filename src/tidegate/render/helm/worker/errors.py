"""Errors of the Helm SDK, as errors with the location in the template.

Runs in the worker. Helm's reason is kept, in one line.
"""

from __future__ import annotations

import re

from helm_python.errors import HelmChartLoadError, HelmError, HelmRenderError, HelmValuesError

from tidegate.errors import Location, RenderError, sanitize
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.helm.worker.files import relative_to_source

# `execution error at (web/templates/a.yaml:3:5): why`, from `fail`, `required` and the parser.
_ERROR_POSITION = lazy_regex(
    r"error (?:at|in) \((?P<file>[^\s()]+?)(?::(?P<line>\d+))?(?::(?P<column>\d+))?\)"
)
# `web/templates/a.yaml:3:5`, one line for each including template, then `executing ...`.
_TRACE_LINE = lazy_regex(
    r"^\s*(?:template: )?(?P<file>[^\s:()]+/[^\s:()]+):(?P<line>\d+)(?::(?P<column>\d+))?",
    re.MULTILINE,
)
_EXECUTING = lazy_regex(r'^\s*executing ".*" at <.*>:?\s*$')
_SCHEMA_MESSAGE = "values don't meet the specifications of the schema(s)"
# Parts of Helm's messages with a value, which may be a password: before the expected pattern, or
# after the text that Go prints for it.
_QUOTED_VALUE = lazy_regex(r"^'.*' (?=does not match|is not valid)|: %!\w\(.*\)")
_SCHEMA_LINE = lazy_regex(r"^- at '(?P<path>[^']*)': (?P<why>.+)$", re.MULTILINE)


def helm_error(error: HelmError, *, chart: str) -> RenderError:
    """Return the error for an error of the SDK."""
    text = str(error)
    match error:
        case HelmRenderError():
            return _template_error(text, chart)
        case HelmValuesError() if _SCHEMA_MESSAGE in text:
            return _schema_error(text, chart)
        case HelmValuesError():
            problem = f"Helm rejects the values: {sanitize(_QUOTED_VALUE.sub('', text))}"
            return RenderError("render.helm.values", problem, location=Location(chart))
        case HelmChartLoadError():
            problem = f"cannot read the chart: {sanitize(_without_directories(text))}"
            return RenderError("render.helm.chart", problem, location=Location(chart))
        case _:
            problem = f"Helm rejects the chart: {sanitize(text)}"
            return RenderError("render.helm.chart", problem, location=Location(chart))


def strip_chart_name(path: str) -> str:
    """Return the path of a template without the chart's name, which Helm puts first."""
    return path.partition("/")[2] or path


def _template_error(text: str, chart: str) -> RenderError:
    positions = [*_ERROR_POSITION.finditer(text)] or [*_TRACE_LINE.finditer(text)]
    if not positions:
        problem = f"cannot render the chart: {sanitize(_without_directories(text))}"
        return RenderError("render.helm.template", problem, location=Location(chart))
    location = _position(positions[-1], chart)
    reason = _reason(text[positions[-1].end() :])
    hint = f"included from {_position(positions[0], chart)}" if len(positions) > 1 else ""
    problem = f"cannot render the template: {sanitize(reason)}"
    return RenderError("render.helm.template", problem, location=location, hint=hint)


def _position(match: re.Match[str], chart: str) -> Location:
    # Go counts lines from one and columns from zero.
    column = int(match["column"]) + 1 if match["column"] else 0
    return relative_to_source(
        Location(strip_chart_name(match["file"]), int(match["line"] or 0), column), chart
    )


def _reason(rest: str) -> str:
    lines = [line for line in rest.splitlines() if not _EXECUTING.match(line)]
    return " ".join(lines).strip().removeprefix(": ").strip() or sanitize(rest)


def _schema_error(text: str, chart: str) -> RenderError:
    # Helm reports them in random order.
    problems = sorted(
        (_field_path(line["path"]), _QUOTED_VALUE.sub("", line["why"]))
        for line in _SCHEMA_LINE.finditer(text)
    )
    reason = "; ".join(f"`{field}`: {message}" for field, message in problems)
    reason = reason or text.rpartition("chart(s):")[2]
    problem = f"the values do not match the schema of the chart: {sanitize(reason)}"
    field = problems[0][0] if problems else ""
    location = Location(f"{chart}/values.schema.json", field=field)
    return RenderError("render.helm.schema", problem, location=location)


def _field_path(pointer: str) -> str:
    parts = pointer.strip("/").split("/")
    return ".".join(part.replace("~1", "/").replace("~0", "~") for part in parts) or "values"


def _without_directories(text: str) -> str:
    """Return Helm's message without the directories of this machine."""
    return re.sub(r"/\S*/(?=[^\s/])", "", text)

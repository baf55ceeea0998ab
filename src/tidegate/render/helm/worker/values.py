"""Puts a release's layers together to the values that are merged over the chart's own.

Merging follows Helm to the letter, down to which mappings are shared: Flux merges the same inline
values more than once, and what a `targetPath` wrote into them in between stays. Runs in the worker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

from tidegate.errors import Location, RenderError, sanitize
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.chart_request import (
    ChartRequest,
    FileParameter,
    InlineValues,
    Parameter,
    ParameterType,
    ValuesFile,
    ValuesLayer,
    ValuesText,
    ValuesUrl,
)
from tidegate.render.helm.parameters import Values, set_content, set_literal, set_strings, set_typed
from tidegate.render.helm.worker.files import find_file, read_text

# As Helm splits a values file; every part must be a mapping, and they are merged.
_SEPARATOR = lazy_regex(r"^---[ \t]*(?:#.*)?\r?$", re.MULTILINE)
SETTERS = {
    ParameterType.TYPED: set_typed,
    ParameterType.STRING: set_strings,
    ParameterType.LITERAL: set_literal,
}
ReadYaml = Callable[[str, str], Values]
"""Text and its name for errors, to values: the SDK's own reading."""


def compose(release: ChartRequest, *, start: Path, read: ReadYaml) -> Values:
    """The values of all layers. Relative paths start at `start`, the chart's directory."""
    values: Values = {}
    for layer in release.layers:
        values = _add(layer, values, release=release, start=start, read=read)
    return values


def merge_files(
    files: Iterable[ValuesFile], *, release: ChartRequest, start: Path, read: ReadYaml
) -> Values:
    """Values files alone, merged in order."""
    values: Values = {}
    for file in files:
        values = merge(values, _read_file(file, release=release, start=start, read=read))
    return values


def merge(lower: Values, upper: Values) -> Values:
    """Mappings are merged; anything else of `upper` takes the place of what `lower` has."""
    merged = dict(lower)
    for key, value in upper.items():
        there = merged.get(key)
        if isinstance(value, dict) and isinstance(there, dict):
            value = merge(there, value)  # noqa: PLW2901
        merged[key] = value
    return merged


def _add(
    layer: ValuesLayer, values: Values, *, release: ChartRequest, start: Path, read: ReadYaml
) -> Values:
    match layer:
        case InlineValues():
            # It is JSON off the line, and must stay one and the same mapping.
            return merge(values, cast("Values", release.values))
        case ValuesText(text, name, is_file):
            return merge(values, _read_parts(text, name, read) if is_file else read(text, name))
        case ValuesFile():
            return merge(values, _read_file(layer, release=release, start=start, read=read))
        case Parameter():
            SETTERS[layer.how](f"{layer.name}={layer.value}", values)
        case FileParameter(name, path, root):
            content = read_text(_find(path, root, release=release, start=start), shown=path)
            if content is None:
                raise _missing(path)
            set_content(name, content, values)
        case ValuesUrl(url):
            problem = f"values at `{sanitize(url)}` were not fetched"
            raise RenderError("render.helm.values", problem)
    return values


def _read_file(file: ValuesFile, *, release: ChartRequest, start: Path, read: ReadYaml) -> Values:
    path = _find(file.path, file.root, release=release, start=start)
    text = read_text(path, shown=file.path)
    if text is None:
        if file.optional:
            return {}
        raise _missing(file.path)
    return _read_parts(text, file.path, read)


def _read_parts(text: str, name: str, read: ReadYaml) -> Values:
    values: Values = {}
    for part in _SEPARATOR.split(text):
        values = merge(values, read(part, name))
    return values


def _find(path: str, root: str, *, release: ChartRequest, start: Path) -> Path:
    if root:
        return find_file(path, root=root, start=Path(root).resolve())
    return find_file(path, root=release.root, start=start)


def _missing(path: str) -> RenderError:
    problem = f"the values file `{path}` is not there"
    hint = "paths start at the chart, and with a `/` at the root of the source"
    return RenderError("render.helm.file", problem, location=Location(path), hint=hint)

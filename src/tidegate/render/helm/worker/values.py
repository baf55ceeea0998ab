"""Values of a release: all layers, merged over the values of the chart.

Merging follows Helm exactly, also in which mappings are shared: Flux merges the same inline values
several times, and what a `targetPath` wrote into them in between stays. Runs in the worker.
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

# Helm splits a values file; every part must be a mapping, and the parts are merged.
_SEPARATOR = lazy_regex(r"^---[ \t]*(?:#.*)?\r?$", re.MULTILINE)
SETTERS = {
    ParameterType.TYPED: set_typed,
    ParameterType.STRING: set_strings,
    ParameterType.LITERAL: set_literal,
}
ReadYaml = Callable[[str, str], Values]
"""Reads a text, with its name for errors, as values."""


def compose(release: ChartRequest, *, start: Path, read: ReadYaml) -> Values:
    """Return the values of all layers. Relative paths start at `start`, the chart's directory."""
    values: Values = {}
    for layer in release.layers:
        values = _add_layer(layer, values, release=release, start=start, read=read)
    return values


def merge_files(
    files: Iterable[ValuesFile], *, release: ChartRequest, start: Path, read: ReadYaml
) -> Values:
    """Return merged values files.

    Like `MergeValues` in `pkg/cli/values/options.go` of Helm 4.2.4.
    """
    values: Values = {}
    for file in files:
        values = merge(values, _read_file(file, release=release, start=start, read=read))
    return values


def merge(lower: Values, upper: Values) -> Values:
    """Return merged mappings; other values of `upper` replace those of `lower`.

    Like `MergeMaps` in `pkg/chart/v2/loader/load.go` of Helm 4.2.4 and `MergeMaps` in `merge.go` of
    fluxcd/pkg/chartutil 1.27.2.
    """
    merged = dict(lower)
    for key, value in upper.items():
        existing = merged.get(key)
        if isinstance(value, dict) and isinstance(existing, dict):
            value = merge(existing, value)  # noqa: PLW2901
        merged[key] = value
    return merged


def _add_layer(
    layer: ValuesLayer, values: Values, *, release: ChartRequest, start: Path, read: ReadYaml
) -> Values:
    match layer:
        case InlineValues():
            # Decoded JSON; must stay the same mapping, as Flux merges it again.
            return merge(values, cast("Values", release.values))
        case ValuesText(text, name, is_file):
            return merge(values, _read_parts(text, name, read) if is_file else read(text, name))
        case ValuesFile():
            return merge(values, _read_file(layer, release=release, start=start, read=read))
        case Parameter():
            SETTERS[layer.how](f"{layer.name}={layer.value}", values)
        case FileParameter(name, path, root):
            content = read_text(
                _find_file(path, root, release=release, start=start), display_path=path
            )
            if content is None:
                raise _missing_file_error(path)
            set_content(name, content, values)
        case ValuesUrl(url):
            problem = f"the values at `{sanitize(url)}` were not fetched"
            raise RenderError("render.helm.values", problem)
    return values


def _read_file(file: ValuesFile, *, release: ChartRequest, start: Path, read: ReadYaml) -> Values:
    path = _find_file(file.path, file.root, release=release, start=start)
    text = read_text(path, display_path=file.path)
    if text is None:
        if file.optional:
            return {}
        raise _missing_file_error(file.path)
    return _read_parts(text, file.path, read)


def _read_parts(text: str, name: str, read: ReadYaml) -> Values:
    values: Values = {}
    for part in _SEPARATOR.split(text):
        values = merge(values, read(part, name))
    return values


def _find_file(path: str, root: str, *, release: ChartRequest, start: Path) -> Path:
    if root:
        return find_file(path, root=root, start=Path(root).resolve())
    return find_file(path, root=release.root, start=start)


def _missing_file_error(path: str) -> RenderError:
    problem = f"values file `{path}` not found"
    hint = "paths are relative to the chart, or with a leading `/` to the root of the source"
    return RenderError("render.helm.file", problem, location=Location(path), hint=hint)

"""Puts a release's layers together to the values that are merged over the chart's own.

Merging follows Helm to the letter, down to which mappings are shared: Flux merges the same inline
values more than once, and what a `targetPath` wrote into them in between stays. Runs in the worker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

from tidegate.errors import Place, RenderError, foreign
from tidegate.model.patterns import late
from tidegate.model.release import (
    FileParameter,
    How,
    Inline,
    Layer,
    Parameter,
    Release,
    ValuesAddress,
    ValuesFile,
    ValuesText,
)
from tidegate.render.helm.files import find, read_text
from tidegate.render.helm.parameters import Values, set_content, set_literal, set_strings, set_typed

# As Helm splits a values file; every part must be a mapping, and they are merged.
_SEPARATOR = late(r"^---[ \t]*(?:#.*)?\r?$", re.MULTILINE)

SETTERS = {How.TYPED: set_typed, How.STRING: set_strings, How.LITERAL: set_literal}
ReadYaml = Callable[[str, str], Values]
"""Text and its name for errors, to values: the SDK's own reading."""


def compose(release: Release, *, start: Path, read: ReadYaml) -> Values:
    """The values of all layers. Relative paths start at `start`, the chart's directory."""
    values: Values = {}
    for layer in release.layers:
        values = _add(layer, values, release=release, start=start, read=read)
    return values


def merge_files(
    files: Iterable[ValuesFile], *, release: Release, start: Path, read: ReadYaml
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


def _add(layer: Layer, values: Values, *, release: Release, start: Path, read: ReadYaml) -> Values:
    match layer:
        case Inline():
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
        case ValuesAddress(url):
            problem = f"values at `{foreign(url)}` were not fetched"
            raise RenderError("render.helm.values", problem)
    return values


def _read_file(file: ValuesFile, *, release: Release, start: Path, read: ReadYaml) -> Values:
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


def _find(path: str, root: str, *, release: Release, start: Path) -> Path:
    if root:
        return find(path, root=root, start=Path(root).resolve())
    return find(path, root=release.root, start=start)


def _missing(path: str) -> RenderError:
    problem = f"the values file `{path}` is not there"
    hint = "paths start at the chart, and with a `/` at the root of the source"
    return RenderError("render.helm.file", problem, where=Place(path), hint=hint)

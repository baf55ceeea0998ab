"""Search for a text in all inputs of a render, to skip renders that cannot contain it.

If that is uncertain, the answer is yes: for remote inputs, archives and links.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.model.units.chart_request import ChartRequest, FileParameter, ValuesFile
from tidegate.render.helm.worker.files import find_file, resolve_inside
from tidegate.render.kustomize.collect import OverlayInputs

SearchPattern: TypeAlias = re.Pattern[bytes]
DEPENDENCY_FILES = ("Chart.yaml", "requirements.yaml")
ARCHIVE_SUFFIXES = (".tgz", ".gz", ".zip", ".tar")
MAX_FILE_SIZE = 16 * 1024 * 1024


class _UncertainError(Exception):
    """An input of the render that is not searched."""


def overlay_may_contain(pattern: SearchPattern, inputs: OverlayInputs) -> bool:
    """Return whether the objects of an overlay may contain the pattern."""
    is_certain = not inputs.missing_remotes and not inputs.uses_charts
    return not is_certain or any(pattern.search(text) for text in inputs.copy.files.values())


def chart_may_contain(pattern: SearchPattern, release: ChartRequest) -> bool:
    """Return whether the objects of a chart may contain the pattern.

    Raises RenderError for a chart that cannot be rendered.
    """
    request = msgspec.structs.replace(release, api_versions=())
    if pattern.search(msgspec.json.encode(request, enc_hook=str)):
        return True
    try:
        return any(pattern.search(text) for text in _input_texts(release))
    except (_UncertainError, OSError):
        return True


def _input_texts(release: ChartRequest) -> Iterator[bytes]:
    root = Path(release.root).resolve()
    chart = resolve_inside(root / release.chart.lstrip("/"), root, display_path=release.chart)
    if release.fetched or not chart.is_dir():
        raise _UncertainError
    yield from _file_texts(str(chart))
    for layer in (*release.layers, *release.defaults):
        if isinstance(layer, ValuesFile | FileParameter):
            start = Path(layer.root) if layer.root else chart
            path = find_file(layer.path, root=layer.root or release.root, start=start)
            if not path.is_file():
                raise _UncertainError
            yield _read(str(path))


def _file_texts(directory: str) -> Iterator[bytes]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_symlink() or entry.name.endswith(ARCHIVE_SUFFIXES):
                raise _UncertainError
            if entry.is_dir():
                yield from _file_texts(entry.path)
            elif not entry.is_file():
                raise _UncertainError  # reading a pipe would not end; the worker rejects it
            else:
                text = _read(entry.path)
                if entry.name in DEPENDENCY_FILES and b"dependencies" in text:
                    raise _UncertainError
                yield text


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123  (it is hot)
        text = file.read(MAX_FILE_SIZE + 1)
    if len(text) > MAX_FILE_SIZE:
        raise _UncertainError
    return text

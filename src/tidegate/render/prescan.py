"""Whether a render could come to some text, told by all that it reads, without rendering it.

Yes wherever that is not sure: what lies elsewhere, what is packed, what is behind a link.
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
CHART_FILES = ("Chart.yaml", "requirements.yaml")
PACKED = (".tgz", ".gz", ".zip", ".tar")
LARGEST = 16 * 1024 * 1024


class _UnsureError(Exception):
    """It reads something that is not looked at here."""


def overlay_may_contain(marks: SearchPattern, gathered: OverlayInputs) -> bool:
    """Of an overlay with all that it names."""
    is_sure = not gathered.remote and not gathered.uses_charts
    return not is_sure or any(marks.search(text) for text in gathered.copy.files.values())


def chart_may_contain(marks: SearchPattern, release: ChartRequest) -> bool:
    """Of a chart with its values. Raises for what could not be rendered either."""
    asked = msgspec.structs.replace(release, api_versions=())
    if marks.search(msgspec.json.encode(asked, enc_hook=str)):
        return True
    try:
        return any(marks.search(text) for text in _texts(release))
    except (_UnsureError, OSError):
        return True


def _texts(release: ChartRequest) -> Iterator[bytes]:
    top = Path(release.root).resolve()
    chart = resolve_inside(top / release.chart.lstrip("/"), top, shown=release.chart)
    if release.fetched or not chart.is_dir():
        raise _UnsureError
    yield from _files(str(chart))
    for layer in (*release.layers, *release.defaults):
        if isinstance(layer, ValuesFile | FileParameter):
            start = Path(layer.root) if layer.root else chart
            path = find_file(layer.path, root=layer.root or release.root, start=start)
            if not path.is_file():
                raise _UnsureError
            yield _read(str(path))


def _files(folder: str) -> Iterator[bytes]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink() or entry.name.endswith(PACKED):
                raise _UnsureError
            if entry.is_dir():
                yield from _files(entry.path)
            elif not entry.is_file():
                raise _UnsureError  # a pipe has no end; the worker refuses it by its name
            else:
                text = _read(entry.path)
                if entry.name in CHART_FILES and b"dependencies" in text:
                    raise _UnsureError
                yield text


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123  (it is hot)
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise _UnsureError
    return text

"""A copy of a chart that may be changed: to build its dependencies, or to add and drop files.

The copy lies where the chart lies, seen from the root. Runs in the worker.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate.render.helm.worker import sdk

SCHEMA = "values.schema.json"
PACKED_DEPTH = 20


@contextmanager
def stage_chart(chart: Path, root: str) -> Iterator[Path]:
    """A copy of a chart's directory or archive, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="chart-") as scratch:
        top = Path(scratch).resolve()
        if chart.is_file():
            sdk.unpack(chart, top)
            yield next(path for path in top.iterdir() if path.is_dir())
        else:
            copy = top / chart.relative_to(Path(root).resolve())
            copy_chart(chart, copy)
            yield copy


def copy_chart(chart: Path, copy: Path) -> None:
    """A chart may lie where nobody may write, and its copy must be changed and removed.

    It has been checked before: links lead to files and directories of the source.
    """
    copy.mkdir(parents=True, exist_ok=True)
    _copy(str(chart), str(copy))


def _copy(source: str, target: str) -> None:
    """Paths are plain text here: a chart has many files, and this is done for many renders."""
    with os.scandir(source) as entries:
        for entry in entries:
            place = f"{target}/{entry.name}"
            if entry.is_dir():
                os.mkdir(place, 0o700)  # noqa: PTH102
                _copy(entry.path, place)
            else:
                shutil.copyfile(entry.path, place)


def drop_schemas(copy: Path) -> None:
    for schema in copy.rglob(SCHEMA):
        schema.unlink()


def template_depth(copy: Path) -> int:
    """More directories than any template of the chart or of a subchart lies below."""
    depth = 0
    for folder, _, files in os.walk(copy):
        packed = PACKED_DEPTH if any(name.endswith(".tgz") for name in files) else 0
        depth = max(depth, len(Path(folder).relative_to(copy).parts) + packed)
    return depth


def write_file(copy: Path, path: str, text: str) -> None:
    """Write one file into the copy, over what was there."""
    target = copy / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")

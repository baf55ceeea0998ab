"""Copies of charts that may be changed: to build dependencies, or to add and remove files.

The copy has the same path relative to its root as the chart. Runs in the worker.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate.render.helm.worker import sdk
from tidegate.render.helm.worker.schemas import SCHEMA

ARCHIVE_DEPTH = 20


@contextmanager
def stage_chart(chart: Path, root: str) -> Iterator[Path]:
    """Copy a chart's directory or archive; the copy is removed at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="chart-") as scratch:
        target = Path(scratch).resolve()
        if chart.is_file():
            sdk.unpack(chart, target)
            yield next(path for path in target.iterdir() if path.is_dir())
        else:
            copy = target / chart.relative_to(Path(root).resolve())
            copy_chart(chart, copy)
            yield copy


def copy_chart(chart: Path, copy: Path) -> None:
    """Copy a chart to where it can be changed and removed.

    The chart was checked before: links lead to files and directories of the source.
    """
    copy.mkdir(parents=True, exist_ok=True)
    _copy(str(chart), str(copy))


def _copy(source: str, target: str) -> None:
    """Copy a directory. Paths are strings here for speed: a chart has many files."""
    with os.scandir(source) as entries:
        for entry in entries:
            target_path = f"{target}/{entry.name}"
            if entry.is_dir():
                os.mkdir(target_path, 0o700)  # noqa: PTH102
                _copy(entry.path, target_path)
            else:
                shutil.copyfile(entry.path, target_path)


def drop_schemas(copy: Path) -> None:
    """Remove the schemas of the chart and its subcharts."""
    for schema in copy.rglob(SCHEMA):
        schema.unlink()


def template_depth(copy: Path) -> int:
    """Return a depth that no template of the chart or of a subchart reaches."""
    depth = 0
    for directory, _, files in os.walk(copy):
        archive_depth = ARCHIVE_DEPTH if any(name.endswith(".tgz") for name in files) else 0
        depth = max(depth, len(Path(directory).relative_to(copy).parts) + archive_depth)
    return depth


def write_file(copy: Path, path: str, text: str) -> None:
    """Write a file into the copy, over an existing one."""
    target = copy / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")

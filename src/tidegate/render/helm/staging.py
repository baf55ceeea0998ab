"""A copy of a chart that may be changed: to build its dependencies, or to add and drop files.

The copy lies where the chart lies, seen from the root, and so do the local charts it depends on:
`file://../db` means the same in the copy. Runs in the worker.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helm_python.errors import HelmError

from tidegate.errors import Place, RenderError, foreign
from tidegate.render.helm import sdk
from tidegate.render.helm.files import check_chart, find
from tidegate.render.helm.release import Release

LOCAL = "file://"
SCHEMA = "values.schema.json"
PACKED_DEPTH = 20


@contextmanager
def staged(chart: Path, root: str) -> Iterator[Path]:
    """A copy of a chart's directory or archive, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="chart-") as scratch:
        top = Path(scratch).resolve()
        if chart.is_file():
            sdk.unpack(chart, top)
            yield next(path for path in top.iterdir() if path.is_dir())
        else:
            copy = top / chart.relative_to(Path(root).resolve())
            shutil.copytree(chart, copy, dirs_exist_ok=True)
            yield copy


def drop_schemas(copy: Path) -> None:
    for schema in copy.rglob(SCHEMA):
        schema.unlink()


def depth_of(copy: Path) -> int:
    """More directories than any template of the chart or of a subchart lies below."""
    depth = 0
    for folder, _, files in os.walk(copy):
        packed = PACKED_DEPTH if any(name.endswith(".tgz") for name in files) else 0
        depth = max(depth, len(Path(folder).relative_to(copy).parts) + packed)
    return depth


def put(copy: Path, path: str, text: str) -> None:
    """Write one file into the copy, over what was there."""
    target = copy / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def build(absent: tuple[sdk.Dependency, ...], *, chart: Path, copy: Path, release: Release) -> None:
    """Get the dependencies that are declared and absent into the copy's `charts` directory."""
    for one in absent:
        if one.repository.startswith(LOCAL):
            _stage_beside(one, chart=chart, copy=copy, release=release)
        elif not one.repository:
            problem = f"the chart needs `{foreign(one.name)}`, which is not in `charts`"
            hint = "put it there, or name a repository in Chart.yaml"
            raise RenderError("render.helm.dependency", problem, where=_place(release), hint=hint)
        elif not one.repository.startswith(release.repositories):
            problem = f"the chart needs `{foreign(one.name)}` from `{foreign(one.repository)}`"
            hint = "only these are allowed: " + ", ".join(f"`{a}`" for a in release.repositories)
            raise RenderError("render.helm.repository", problem, where=_place(release), hint=hint)
    try:
        sdk.build_dependencies(copy)
    except HelmError as error:
        names = ", ".join(f"`{foreign(one.name)}`" for one in absent)
        problem = f"the chart needs {names}, which cannot be had: {foreign(str(error))}"
        raise RenderError("render.helm.dependency", problem, where=_place(release)) from None


def _stage_beside(one: sdk.Dependency, *, chart: Path, copy: Path, release: Release) -> None:
    path = one.repository.removeprefix(LOCAL)
    if path.startswith("/"):
        problem = f"the dependency `{foreign(one.name)}` has an absolute path"
        hint = "write it from the chart on: `file://../name`"
        raise RenderError("render.helm.outside", problem, where=_place(release), hint=hint)
    there = find(path, root=release.root, start=chart)
    # Through a link the copy could lead elsewhere than the chart does.
    if not there.is_dir() or there != Path(os.path.normpath(chart / path)):
        problem = f"the chart needs `{foreign(one.name)}`, and `{foreign(path)}` is not there"
        raise RenderError("render.helm.dependency", problem, where=_place(release))
    check_chart(there, release.root)
    target = Path(os.path.normpath(copy / path))
    if not target.exists():
        shutil.copytree(there, target)


def _place(release: Release) -> Place:
    return Place(f"{release.chart}/Chart.yaml", field="dependencies")

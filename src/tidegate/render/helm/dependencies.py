"""Gets what Chart.yaml declares, and `charts` does not have, into the copy of a chart.

Local charts lie beside the copy as they lie beside the chart, so that `file://../db` means the same
there. Charts from elsewhere are those that were handed in; only where none were, and repositories
are allowed, does the SDK fetch them itself. Runs in the worker.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec
from helm_python.errors import HelmError

from tidegate.errors import Place, RenderError, foreign
from tidegate.model.reading import mappings, text
from tidegate.render.helm import sdk
from tidegate.render.helm.absence import needs_fetching
from tidegate.render.helm.files import check_chart, find, read_text
from tidegate.render.helm.release import Dependency, Release

LOCAL = "file://"
LOCKS = ("Chart.lock", "requirements.lock")


def refuse(absent: tuple[Dependency, ...], release: Release) -> None:
    """Where nothing may be built, a chart must bring all it declares."""
    names = ", ".join(f"`{foreign(one.name)}`" for one in absent)
    problem = f"the chart needs {names}, which is not in `charts`"
    hint = "run `helm dependency build` and commit `charts`"
    raise RenderError("render.helm.dependency", problem, where=_place(release), hint=hint)


def build(absent: tuple[Dependency, ...], *, chart: Path, copy: Path, release: Release) -> None:
    """Get the dependencies that are declared and absent into the copy's `charts` directory."""
    wanted = tuple(_pinned(absent, copy))
    for one in wanted:
        if one.repository.startswith(LOCAL):
            _stage_beside(one, chart=chart, copy=copy, release=release)
        elif not one.repository:
            problem = f"the chart needs `{foreign(one.name)}`, which is not in `charts`"
            hint = "put it there, or name a repository in Chart.yaml"
            raise RenderError("render.helm.dependency", problem, where=_place(release), hint=hint)
    distant = [one for one in wanted if not one.repository.startswith(LOCAL)]
    if distant and (release.fetched or not release.repositories):
        _lay_out(wanted, copy=copy, release=release)
    else:
        _refuse_repositories(distant, release)
        _let_helm_build(wanted, copy=copy, release=release)


def _pinned(absent: Iterable[Dependency], copy: Path) -> Iterable[Dependency]:
    """With the version that the lock has, if there is a lock."""
    locks = [content for name in LOCKS if (content := read_text(copy / name, shown=name))]
    locked = sdk.read_values(locks[0], LOCKS[0]) if locks else {}
    versions = {
        (text(entry, "name"), text(entry, "repository")): text(entry, "version")
        for entry in mappings(locked, "dependencies")
    }
    for one in absent:
        version = versions.get((one.name, one.repository))
        yield msgspec.structs.replace(one, version=version) if version else one


def _lay_out(wanted: tuple[Dependency, ...], *, copy: Path, release: Release) -> None:
    """Put local charts and those that were handed in where Helm looks for them."""
    brought = {one.dependency: Path(one.path) for one in release.fetched}
    missing = [one for one in wanted if one not in brought and not one.repository.startswith(LOCAL)]
    if missing:
        raise needs_fetching(missing, where=_place(release))
    charts = copy / "charts"
    charts.mkdir(exist_ok=True)
    for number, one in enumerate(wanted):
        path = brought.get(one) or Path(os.path.normpath(copy / one.repository.removeprefix(LOCAL)))
        if path.is_dir():
            check_chart(path, str(path))
            shutil.copytree(path, charts / f"fetched-{number}")
        else:
            shutil.copyfile(path, charts / f"fetched-{number}.tgz")


def _refuse_repositories(distant: list[Dependency], release: Release) -> None:
    for one in distant:
        if not one.repository.startswith(release.repositories):
            problem = f"the chart needs `{foreign(one.name)}` from `{foreign(one.repository)}`"
            hint = "only these are allowed: " + ", ".join(f"`{a}`" for a in release.repositories)
            raise RenderError("render.helm.repository", problem, where=_place(release), hint=hint)


def _let_helm_build(wanted: tuple[Dependency, ...], *, copy: Path, release: Release) -> None:
    try:
        sdk.build_dependencies(copy)
    except HelmError as error:
        names = ", ".join(f"`{foreign(one.name)}`" for one in wanted)
        problem = f"the chart needs {names}, which cannot be had: {foreign(str(error))}"
        raise RenderError("render.helm.dependency", problem, where=_place(release)) from None


def _stage_beside(one: Dependency, *, chart: Path, copy: Path, release: Release) -> None:
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

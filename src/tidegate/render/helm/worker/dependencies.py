"""Gets what Chart.yaml declares, and `charts` does not have, into the copy of a chart.

Local charts come from the same source, and charts from elsewhere are those that were handed in.
Only where none were, and repositories are allowed, does the SDK fetch them itself; then local
charts lie beside the copy, so that `file://../db` means the same there. Runs in the worker.

Chart.lock has the versions that a chart has chosen. `helm dependency build`, and so Argo CD, takes
no lock that was made for other dependencies than the chart has now.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from helm_python.errors import HelmError

from tidegate.errors import Location, RenderError, sanitize
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.units.chart_request import LOCAL_PREFIX, ChartDependency, ChartRequest
from tidegate.render.helm.worker import sdk
from tidegate.render.helm.worker.files import check_chart, find_file, read_text
from tidegate.render.helm.worker.staging import copy_chart
from tidegate.render.helm.worker_replies import dependency_error

LOCKS = ("Chart.lock", "requirements.lock")
# As Go writes JSON.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def raise_missing_dependencies(absent: tuple[ChartDependency, ...], release: ChartRequest) -> None:
    """Where nothing may be built, a chart must bring all it declares."""
    names = ", ".join(f"`{sanitize(one.name)}`" for one in absent)
    problem = f"the chart needs {names}, which is not in `charts`"
    hint = "run `helm dependency build` and commit `charts`"
    raise RenderError("render.helm.dependency", problem, location=_place(release), hint=hint)


def build_dependencies(
    absent: tuple[ChartDependency, ...], *, chart: Path, copy: Path, release: ChartRequest
) -> None:
    """Get the dependencies that are declared and absent into the copy's `charts` directory."""
    lock = read_lock(copy)
    if lock is not None and release.checks_lock:
        check_lock(lock, chart=copy, release=release)
    wanted = tuple(pin_versions(absent, lock))
    for one in wanted:
        if not one.repository:
            problem = f"the chart needs `{sanitize(one.name)}`, which is not in `charts`"
            hint = "put it there, or name a repository in Chart.yaml"
            raise RenderError(
                "render.helm.dependency", problem, location=_place(release), hint=hint
            )
    distant = [one for one in wanted if not one.repository.startswith(LOCAL_PREFIX)]
    if distant and release.repositories and not release.fetched:
        _refuse_repositories(distant, release)
        _let_helm_build(wanted, chart=chart, copy=copy, release=release)
    else:
        _lay_out(wanted, chart=chart, copy=copy, release=release)


def _lay_out(
    wanted: tuple[ChartDependency, ...], *, chart: Path, copy: Path, release: ChartRequest
) -> None:
    """Put local charts and those that were handed in where Helm looks for them."""
    brought = {one.dependency: Path(one.path) for one in release.fetched}
    missing = [
        one for one in wanted if one not in brought and not one.repository.startswith(LOCAL_PREFIX)
    ]
    if missing:
        raise dependency_error(missing, where=_place(release))
    charts = copy / "charts"
    charts.mkdir(exist_ok=True)
    for number, one in enumerate(wanted):
        path = brought.get(one) or _find_beside(one, chart=chart, release=release)
        if one in brought and path.is_dir():
            check_chart(path, str(path))
        _refuse_version(one, path, release)
        if path.is_dir():
            copy_chart(path, charts / f"fetched-{number}")
        else:
            shutil.copyfile(path, charts / f"fetched-{number}.tgz")


def _refuse_version(one: ChartDependency, path: Path, release: ChartRequest) -> None:
    """Of a chart with another version Helm would ignore the alias, the condition and the tags."""
    with sdk.load_chart(path) as handle:
        found = sdk.read_metadata(handle)
    if found.name == one.name and not sdk.is_in_range(found.version, one.version, release):
        problem = (
            f"the chart needs `{sanitize(one.name)}` in version `{sanitize(one.version)}`,"
            f" and the one that is there has version `{sanitize(found.version)}`"
        )
        raise RenderError("render.helm.dependency", problem, location=_place(release))


def _refuse_repositories(distant: list[ChartDependency], release: ChartRequest) -> None:
    for one in distant:
        if not one.repository.startswith(release.repositories):
            problem = f"the chart needs `{sanitize(one.name)}` from `{sanitize(one.repository)}`"
            hint = "only these are allowed: " + ", ".join(f"`{a}`" for a in release.repositories)
            raise RenderError(
                "render.helm.repository", problem, location=_place(release), hint=hint
            )


def _let_helm_build(
    wanted: tuple[ChartDependency, ...], *, chart: Path, copy: Path, release: ChartRequest
) -> None:
    for one in wanted:
        if one.repository.startswith(LOCAL_PREFIX):
            there = _find_beside(one, chart=chart, release=release)
            target = Path(os.path.normpath(copy / one.repository.removeprefix(LOCAL_PREFIX)))
            if not target.exists():
                copy_chart(there, target)
    try:
        sdk.build_dependencies(copy)
    except HelmError as error:
        names = ", ".join(f"`{sanitize(one.name)}`" for one in wanted)
        problem = f"the chart needs {names}, which cannot be had: {sanitize(str(error))}"
        raise RenderError("render.helm.dependency", problem, location=_place(release)) from None


def _find_beside(one: ChartDependency, *, chart: Path, release: ChartRequest) -> Path:
    """A chart of the same source."""
    path = one.repository.removeprefix(LOCAL_PREFIX)
    if path.startswith("/"):
        problem = f"the dependency `{sanitize(one.name)}` has an absolute path"
        hint = "write it from the chart on: `file://../name`"
        raise RenderError("render.helm.outside", problem, location=_place(release), hint=hint)
    there = find_file(path, root=release.root, start=chart)
    # Through a link the copy could lead elsewhere than the chart does.
    if not there.is_dir() or there != Path(os.path.normpath(chart / path)):
        problem = f"the chart needs `{sanitize(one.name)}`, and `{sanitize(path)}` is not there"
        raise RenderError("render.helm.dependency", problem, location=_place(release))
    check_chart(there, release.root)
    return there


def _place(release: ChartRequest) -> Location:
    return Location(f"{release.chart}/Chart.yaml", field="dependencies")


class Lock(msgspec.Struct, frozen=True):
    """What was chosen, and a digest over what was asked for and what was chosen."""

    name: str
    dependencies: tuple[ChartDependency, ...]
    digest: str


def read_lock(chart: Path) -> Lock | None:
    """The lock in the directory of a chart, if there is one."""
    for name in LOCKS:
        content = read_text(chart / name, shown=name)
        if content:
            body = sdk.read_values(content, name)
            entries = get_mappings(body, "dependencies")
            chosen = (
                ChartDependency(
                    get_text(one, "name"), get_text(one, "version"), get_text(one, "repository")
                )
                for one in entries
            )
            return Lock(name, tuple(chosen), get_text(body, "digest"))
    return None


def pin_versions(absent: Iterable[ChartDependency], lock: Lock | None) -> Iterator[ChartDependency]:
    """Each with the version that the lock has, if there is a lock."""
    chosen = lock.dependencies if lock else ()
    versions = {(one.name, one.repository): one.version for one in chosen}
    for one in absent:
        version = versions.get((one.name, one.repository))
        yield msgspec.structs.replace(one, version=version) if version else one


def check_lock(lock: Lock, *, chart: Path, release: ChartRequest) -> None:
    """Raise where Chart.yaml has changed since the lock was made."""
    with sdk.load_chart(chart) as handle:
        declared = sdk.declared_dependencies(handle)
    chosen = msgspec.json.encode([_entry(one) for one in lock.dependencies])
    whole = b"[%b,%b]" % (declared, chosen.decode().translate(_ESCAPES).encode())
    of_helm_2 = b'{"dependencies":%b}' % declared  # only charts of its time have such a lock
    if lock.digest not in {_digest(whole), _digest(of_helm_2)}:
        problem = f"`{lock.name}` is out of sync with the dependencies that the chart declares"
        hint = "run `helm dependency update` and commit the lock"
        where = Location(f"{release.chart}/{lock.name}", field="digest")
        raise RenderError("render.helm.dependency", problem, location=where, hint=hint)


def _entry(one: ChartDependency) -> dict[str, str]:
    version = {"version": one.version} if one.version else {}
    return {"name": one.name, **version, "repository": one.repository}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"

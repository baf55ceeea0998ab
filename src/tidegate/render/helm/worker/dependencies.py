"""Dependencies that Chart.yaml declares and `charts` lacks, added to the copy of a chart.

Local charts come from the same source, remote charts from the request. Runs in the worker, which
has no network: a remote chart that the request does not contain is reported, so that the caller
fetches it.

Chart.lock has the chosen versions. `helm dependency build`, and so Argo CD, rejects a lock that was
created for other dependencies than the chart has now.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tidegate.errors import Location, RenderError, sanitize
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.units.chart_request import LOCAL_PREFIX, ChartDependency, ChartRequest
from tidegate.render.helm.worker import sdk
from tidegate.render.helm.worker.chart_copy import copy_chart
from tidegate.render.helm.worker.files import check_chart, find_file, read_text
from tidegate.render.helm.worker_replies import dependency_error

LOCK_FILES = ("Chart.lock", "requirements.lock")
# As Go writes JSON.
_GO_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def raise_missing_dependencies(missing: tuple[ChartDependency, ...], release: ChartRequest) -> None:
    """Raise RenderError for dependencies that are not in the chart and may not be added."""
    names = ", ".join(f"`{sanitize(dependency.name)}`" for dependency in missing)
    problem = f"the chart needs {names}, which is not in `charts`"
    hint = "run `helm dependency build` and commit `charts`"
    raise RenderError("render.helm.dependency", problem, location=_location(release), hint=hint)


def build_dependencies(
    missing: tuple[ChartDependency, ...], *, chart: Path, copy: Path, release: ChartRequest
) -> None:
    """Add the declared and missing dependencies to the `charts` directory of the copy.

    Like `Build` in `pkg/downloader/manager.go` of Helm 4.2.4.
    """
    lock = read_lock(copy)
    if lock is not None and release.checks_lock:
        check_lock(lock, chart=copy, release=release)
    pinned = tuple(pin_versions(missing, lock))
    for dependency in pinned:
        if not dependency.repository:
            problem = f"the chart needs `{sanitize(dependency.name)}`, which is not in `charts`"
            hint = "add it, or set its repository in Chart.yaml"
            raise RenderError(
                "render.helm.dependency", problem, location=_location(release), hint=hint
            )
    _copy_dependencies(pinned, chart=chart, copy=copy, release=release)


def _copy_dependencies(
    pinned: tuple[ChartDependency, ...], *, chart: Path, copy: Path, release: ChartRequest
) -> None:
    """Copy local charts and those of the request to where Helm looks for them."""
    fetched = {dependency.dependency: Path(dependency.path) for dependency in release.fetched}
    missing = [
        dependency
        for dependency in pinned
        if dependency not in fetched and not dependency.repository.startswith(LOCAL_PREFIX)
    ]
    if missing:
        raise dependency_error(missing, location=_location(release))
    charts = copy / "charts"
    charts.mkdir(exist_ok=True)
    for number, dependency in enumerate(pinned):
        path = fetched.get(dependency) or _find_local_chart(
            dependency, chart=chart, release=release
        )
        if dependency in fetched and path.is_dir():
            check_chart(path, str(path))
        _check_version(dependency, path, release)
        if path.is_dir():
            copy_chart(path, charts / f"fetched-{number}")
        else:
            shutil.copyfile(path, charts / f"fetched-{number}.tgz")


def _check_version(dependency: ChartDependency, path: Path, release: ChartRequest) -> None:
    """Raise RenderError if a chart has the wrong version.

    Helm would ignore the alias, the condition and the tags of such a chart.

    Like `getAliasDependency` in `pkg/chart/v2/util/dependencies.go` of Helm 4.2.4.
    """
    with sdk.load_chart(path) as handle:
        metadata = sdk.read_metadata(handle)
    if metadata.name == dependency.name and not sdk.is_in_range(
        metadata.version, dependency.version, release
    ):
        problem = (
            f"the chart needs `{sanitize(dependency.name)}`"
            f" in version `{sanitize(dependency.version)}`,"
            f" but `charts` has version `{sanitize(metadata.version)}`"
        )
        raise RenderError("render.helm.dependency", problem, location=_location(release))


def _find_local_chart(dependency: ChartDependency, *, chart: Path, release: ChartRequest) -> Path:
    """Return a chart of the same source."""
    path = dependency.repository.removeprefix(LOCAL_PREFIX)
    if path.startswith("/"):
        problem = f"the dependency `{sanitize(dependency.name)}` has an absolute path"
        hint = "write it relative to the chart: `file://../name`"
        raise RenderError("render.helm.outside", problem, location=_location(release), hint=hint)
    local_chart = find_file(path, root=release.root, start=chart)
    # A link in the copy could lead elsewhere than in the chart.
    if not local_chart.is_dir() or local_chart != Path(os.path.normpath(chart / path)):
        problem = (
            f"the chart needs `{sanitize(dependency.name)}`, but `{sanitize(path)}` does not exist"
        )
        raise RenderError("render.helm.dependency", problem, location=_location(release))
    check_chart(local_chart, release.root)
    return local_chart


def _location(release: ChartRequest) -> Location:
    return Location(f"{release.chart}/Chart.yaml", field="dependencies")


class Lock(msgspec.Struct, frozen=True):
    """Content of Chart.lock: the chosen versions, and a digest of the request and the choice."""

    name: str
    """The name of the file."""
    dependencies: tuple[ChartDependency, ...]
    """The chosen versions."""
    digest: str
    """The digest of the requested and the chosen dependencies."""


def read_lock(chart: Path) -> Lock | None:
    """Return the lock in the directory of a chart; None without one."""
    for name in LOCK_FILES:
        content = read_text(chart / name, display_path=name)
        if content:
            body = sdk.read_values(content, name)
            entries = get_mappings(body, "dependencies")
            chosen = (
                ChartDependency(
                    get_text(entry, "name"),
                    get_text(entry, "version"),
                    get_text(entry, "repository"),
                )
                for entry in entries
            )
            return Lock(name, tuple(chosen), get_text(body, "digest"))
    return None


def pin_versions(
    missing: Iterable[ChartDependency], lock: Lock | None
) -> Iterator[ChartDependency]:
    """Yield each dependency with the version in the lock, if there is one."""
    locked = lock.dependencies if lock else ()
    versions = {
        (dependency.name, dependency.repository): dependency.version for dependency in locked
    }
    for dependency in missing:
        version = versions.get((dependency.name, dependency.repository))
        yield msgspec.structs.replace(dependency, version=version) if version else dependency


def check_lock(lock: Lock, *, chart: Path, release: ChartRequest) -> None:
    """Raise RenderError if Chart.yaml has changed since the lock was created.

    Like `HashReq` and `HashV2Req` in `internal/resolver/resolver.go` of Helm 4.2.4.
    """
    with sdk.load_chart(chart) as handle:
        declared = sdk.declared_dependencies(handle)
    locked = msgspec.json.encode([_lock_entry(dependency) for dependency in lock.dependencies])
    content = b"[%b,%b]" % (declared, locked.decode().translate(_GO_ESCAPES).encode())
    helm_2_content = b'{"dependencies":%b}' % declared  # locks of Helm 2 have another digest
    if lock.digest not in {_digest(content), _digest(helm_2_content)}:
        problem = f"`{lock.name}` is out of sync with the dependencies that the chart declares"
        hint = "run `helm dependency update` and commit the lock"
        location = Location(f"{release.chart}/{lock.name}", field="digest")
        raise RenderError("render.helm.dependency", problem, location=location, hint=hint)


def _lock_entry(dependency: ChartDependency) -> dict[str, str]:
    version = {"version": dependency.version} if dependency.version else {}
    return {"name": dependency.name, **version, "repository": dependency.repository}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"

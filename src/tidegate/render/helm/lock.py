"""Chart.lock: which versions of its dependencies a chart has chosen.

It belongs to the dependencies that it was made for. `helm dependency build`, and so Argo CD, takes
no lock that has been left behind. Runs in the worker.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tidegate.errors import Place, RenderError
from tidegate.model.reading import mappings, text
from tidegate.model.release import ChartDependency, Release
from tidegate.render.helm import sdk
from tidegate.render.helm.files import read_text

NAMES = ("Chart.lock", "requirements.lock")
# As Go writes JSON.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


class Lock(msgspec.Struct, frozen=True):
    """What was chosen, and a digest over what was asked for and what was chosen."""

    name: str
    dependencies: tuple[ChartDependency, ...]
    digest: str


def read_lock(chart: Path) -> Lock | None:
    """The lock in the directory of a chart, if there is one."""
    for name in NAMES:
        content = read_text(chart / name, shown=name)
        if content:
            body = sdk.read_values(content, name)
            entries = mappings(body, "dependencies")
            chosen = (
                ChartDependency(text(one, "name"), text(one, "version"), text(one, "repository"))
                for one in entries
            )
            return Lock(name, tuple(chosen), text(body, "digest"))
    return None


def pin(absent: Iterable[ChartDependency], lock: Lock | None) -> Iterator[ChartDependency]:
    """Each with the version that the lock has, if there is a lock."""
    chosen = lock.dependencies if lock else ()
    versions = {(one.name, one.repository): one.version for one in chosen}
    for one in absent:
        version = versions.get((one.name, one.repository))
        yield msgspec.structs.replace(one, version=version) if version else one


def refuse_stale(lock: Lock, *, chart: Path, release: Release) -> None:
    """Raise where Chart.yaml has changed since the lock was made."""
    with sdk.loaded(chart) as handle:
        declared = sdk.declared_dependencies(handle)
    chosen = msgspec.json.encode([_entry(one) for one in lock.dependencies])
    whole = b"[%b,%b]" % (declared, chosen.decode().translate(_ESCAPES).encode())
    of_helm_2 = b'{"dependencies":%b}' % declared  # only charts of its time have such a lock
    if lock.digest not in {_digest(whole), _digest(of_helm_2)}:
        problem = f"`{lock.name}` is out of sync with the dependencies that the chart declares"
        hint = "run `helm dependency update` and commit the lock"
        where = Place(f"{release.chart}/{lock.name}", field="digest")
        raise RenderError("render.helm.dependency", problem, where=where, hint=hint)


def _entry(one: ChartDependency) -> dict[str, str]:
    version = {"version": one.version} if one.version else {}
    return {"name": one.name, **version, "repository": one.repository}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"

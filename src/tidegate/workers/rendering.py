"""Settings and worker processes for rendering units."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

import msgspec

from tidegate.documents import Document, DocumentReader, read_documents
from tidegate.errors import TidegateError
from tidegate.external.worker import Workers
from tidegate.files import RootedFiles
from tidegate.model.units.chart_request import LookupResult
from tidegate.model.units.release_history import KnownRelease
from tidegate.model.units.source import Snapshot, SourceRef
from tidegate.model.units.unit import Unit
from tidegate.render.helm import helm_workers
from tidegate.render.jsonnet.client import jsonnet_workers
from tidegate.render.sops import Keys
from tidegate.source import (
    Cache,
    Checkout,
    VendoredCharts,
)


def has_helm_sdk() -> bool:
    """Return whether the Helm SDK is installed."""
    return find_spec("helm_python") is not None


def available_cores() -> int:
    """Return how many cores of this machine may be used."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class WorkerPool:
    """Warm workers, as many as there are cores. Each kind starts on first use."""

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self.build_slots = asyncio.Semaphore(cores)
        self._exit_stack = AsyncExitStack()
        self._start_lock = asyncio.Lock()
        self._helm: Workers | None = None
        self._jsonnet: Workers | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exit_stack.aclose()

    async def helm(self) -> Workers:
        """Return the workers for all charts."""
        async with self._start_lock:
            if self._helm is None:
                workers = helm_workers(count=self._cores)
                self._helm = await self._exit_stack.enter_async_context(workers)
            return self._helm

    async def jsonnet(self) -> Workers:
        """Return the workers for all Jsonnet files."""
        async with self._start_lock:
            if self._jsonnet is None:
                workers = jsonnet_workers(count=self._cores)
                self._jsonnet = await self._exit_stack.enter_async_context(workers)
            return self._jsonnet


class ClusterDataResult(NamedTuple):
    """The entries of a ConfigMap or Secret in a cluster, or why they are unknown."""

    entries: Mapping[str, bytes] | None
    """Decoded entries by name; None if unknown."""
    reason: str = ""
    """Why the entries are unknown; empty if they are known."""


GetClusterData: TypeAlias = Callable[[str, str, str], Awaitable[ClusterDataResult]]
"""Returns the data of an object by kind, namespace and name."""
GetRelease: TypeAlias = Callable[[Unit], Awaitable[KnownRelease | None]]
"""Returns the last revision of the release of a unit; None where there is none."""
GetReleaseManifest: TypeAlias = Callable[[Unit, KnownRelease], Awaitable[tuple[Document, ...]]]
"""Returns the objects and hooks of that revision, as its record has them."""
LookUp: TypeAlias = Callable[[Unit, str], Awaitable[LookupResult]]
"""Returns the response of the cluster of a unit to a path of its API."""


class RenderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for fetching, decrypting and rendering sources."""

    cache: Cache
    """The cache of sources and renders."""
    keys: Keys = msgspec.field(default_factory=Keys)
    """Keys of SOPS files."""
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Environment variables of the user."""
    checkouts: tuple[Checkout, ...] = ()
    """Directories in place of the URLs of repositories."""
    vendored: VendoredCharts = msgspec.field(default_factory=VendoredCharts)
    """Charts that are used where their repository cannot be reached."""
    repository: Path | None = None
    """Directory in place of its remotes, which are read when a source names a repository."""
    scanned_tree: Snapshot | None = None
    """A tree that was scanned already."""
    scanned_files: RootedFiles | None = None
    """The files of this tree, as far as they were read."""
    read: DocumentReader = read_documents
    """Reads files, some of which may be known."""
    offline: bool = False
    """Whether nothing is fetched from the network."""
    skips_unavailable: bool = False
    """Whether parts that cannot be fetched are left out and reported, as they are if `offline`."""
    unavailable: dict[SourceRef, TidegateError] = msgspec.field(default_factory=dict)
    """Sources that could not be fetched, if that is allowed: they are not tried again."""
    requires_data: bool = False
    """Whether a missing object with variables fails its unit, as it does in a rollout.

    Otherwise it is assumed to exist, and placeholders replace the variables.
    """
    search_pattern: re.Pattern[bytes] | None = None
    """Text that is searched: charts and overlays that cannot contain it are not rendered."""
    cores: int = msgspec.field(default_factory=available_cores)
    """How many cores the workers use."""
    worker_pool: WorkerPool | None = None
    """Shared workers; None to start workers of its own."""
    get_cluster_data: GetClusterData | None = None
    """Reads decryption keys and values from a cluster."""
    get_release: GetRelease | None = None
    """Reads the last revision of a release from a cluster."""
    get_release_manifest: GetReleaseManifest | None = None
    """Reads the objects of that revision from a cluster."""
    look_up: LookUp | None = None
    """Answers the lookups of charts from a cluster."""
    is_simulated: bool = False
    """Whether the cluster is a simulated one."""

    def __repr__(self) -> str:
        return f"Setting({self.cache!r}, offline={self.offline})"

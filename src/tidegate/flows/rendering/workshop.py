"""State that all units of one run share: the cache, the fetched sources and the workers."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

import msgspec

from tidegate.documents import Document, DocumentReader, read_documents
from tidegate.errors import Location, TidegateError
from tidegate.external.worker import Workers
from tidegate.files import RootedFiles
from tidegate.model.ledger import KnownRelease
from tidegate.model.release import LookupResult
from tidegate.model.source import ArtifactCopy, GitSource, Snapshot, SourceRef
from tidegate.model.unit import Unit
from tidegate.render.cache import RenderCache
from tidegate.render.cache_keys import program_version
from tidegate.render.footprint import Footprint, KnownKeys
from tidegate.render.helm import helm_workers
from tidegate.render.jsonnet import jsonnet_workers
from tidegate.render.kustomize import Builder, find_tool
from tidegate.render.own_key import OwnKey
from tidegate.render.sops import Keys
from tidegate.source import (
    Access,
    Cache,
    Checkout,
    VendoredCharts,
    fetch,
    find_checkouts,
    keep_directories,
    keyring_of,
    leave_out,
    leaves_out_texts,
    put_together,
)
from tidegate.source.credentials import Keyring, Keyrings

SOURCE_IGNORE = ".sourceignore"
"""File in a tree with the rules for what Flux leaves out of it."""


def has_helm_sdk() -> bool:
    return find_spec("helm_python") is not None


def available_cores() -> int:
    """Return how many cores of this machine may be used."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class WorkerPool:
    """Warm workers, as many as there are cores. Each kind starts on first use."""

    def __init__(self, cores: int, *, offline: bool) -> None:
        self._cores = cores
        self._offline = offline
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
                workers = helm_workers(count=self._cores, offline=self._offline)
                self._helm = await self._exit_stack.enter_async_context(workers)
            return self._helm

    async def jsonnet(self) -> Workers:
        async with self._start_lock:
            if self._jsonnet is None:
                workers = jsonnet_workers(count=self._cores)
                self._jsonnet = await self._exit_stack.enter_async_context(workers)
            return self._jsonnet


class ClusterDataResult(NamedTuple):
    """The entries of a ConfigMap or Secret in a cluster, or why they are unknown."""

    entries: Mapping[str, bytes] | None
    reason: str = ""


GetClusterData: TypeAlias = Callable[[str, str, str], Awaitable[ClusterDataResult]]
"""Returns the data of an object by kind, namespace and name."""
GetRelease: TypeAlias = Callable[[Unit], Awaitable[KnownRelease | None]]
"""Returns the last revision of the release of a unit; None where there is none."""
GetReleaseManifest: TypeAlias = Callable[[Unit, KnownRelease], Awaitable[tuple[Document, ...]]]
"""Returns the objects and hooks of that revision, as its record has them."""
LookUp: TypeAlias = Callable[[Unit, str], Awaitable[LookupResult]]
"""Returns the response of the cluster of a unit to a path of its API."""


class RenderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How sources are fetched, decrypted and rendered."""

    cache: Cache
    keys: Keys = msgspec.field(default_factory=Keys)
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    checkouts: tuple[Checkout, ...] = ()
    """Directories in place of the URLs of repositories."""
    vendored: VendoredCharts = msgspec.field(default_factory=VendoredCharts)
    """Charts that are used where their repository cannot be reached."""
    repository: Path | None = None
    """Directory in place of its remotes, which are read when a source names a repository."""
    scanned_tree: Snapshot | None = None
    """A tree that was scanned already."""
    read: DocumentReader = read_documents
    """Reads files, some of which may be known."""
    offline: bool = False
    skips_unavailable: bool = False
    """Whether parts that cannot be fetched are left out and reported, as they are if `offline`."""
    search_pattern: re.Pattern[bytes] | None = None
    """Text that is searched: charts and overlays that cannot contain it are not rendered."""
    cores: int = msgspec.field(default_factory=available_cores)
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


class RenderContext:
    """Shared state of renders. Nothing starts before it is needed."""

    def __init__(self, settings: RenderSettings) -> None:
        self.settings = settings
        self.render_cache = RenderCache(settings.cache.renders, OwnKey(settings.environment))
        self.cache_keys = KnownKeys()
        self.prescan_inputs = Footprint()
        """Files that were read to see what they may contain: shared, as most are side by side."""
        self.worker_pool = settings.worker_pool or WorkerPool(
            settings.cores, offline=settings.offline
        )
        self._checkouts_lock = asyncio.Lock()
        self._rooted_files: dict[Path, RootedFiles] = {}
        self._local_checkouts: dict[Path, tuple[Checkout, ...]] = {}
        self._fetched: dict[tuple[SourceRef, str | None], Snapshot | TidegateError] = {}
        self._fetch_locks: dict[tuple[SourceRef, str | None], asyncio.Lock] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.settings.worker_pool is None:
            await self.worker_pool.__aexit__()
        if self.render_cache.has_grown:
            await asyncio.to_thread(self.settings.cache.shrink)

    @cached_property
    def builder(self) -> tuple[Builder, str]:
        """The tool that builds overlays, and its version."""
        tool = msgspec.structs.replace(find_tool(), read=self.settings.read)
        return tool, program_version(tool.argv)

    def rooted_files(self, root: Path) -> RootedFiles:
        """Return the files below a root, for reading."""
        files = self._rooted_files.get(root)
        if files is None:
            files = self._rooted_files[root] = RootedFiles(root)
        return files

    async def fetch(
        self, source: SourceRef, ignore: str | None = None, keyring: Keyring | None = None
    ) -> Snapshot:
        """Return the tree of a source; each is fetched once.

        `keyring`: credentials besides those of the user. With `ignore`, without the files that
        these rules and those in `.sourceignore` files exclude.
        """
        lock = self._fetch_locks.setdefault((source, ignore), asyncio.Lock())
        async with lock:
            fetched = self._fetched.get((source, ignore))
            if fetched is None:
                fetched = self._fetched[source, ignore] = await self._fetch(source, ignore, keyring)
        if isinstance(fetched, TidegateError):
            raise fetched
        return fetched

    async def _fetch(
        self, source: SourceRef, ignore: str | None, keyring: Keyring | None
    ) -> Snapshot | TidegateError:
        options = await self.fetch_options(
            self.settings.repository if isinstance(source, GitSource) else None
        )
        if keyring is not None:
            rings = Keyrings((keyring, options.keyring))
            options = msgspec.structs.replace(options, keyring=rings)
        try:
            tree = await fetch(source, options)
            return tree if ignore is None else await self.filter_ignored(tree, ignore)
        except TidegateError as error:
            return error

    async def filter_ignored(self, tree: Snapshot, ignore: str) -> Snapshot:
        """Return a tree without the files that these, its own and the default rules exclude."""
        has_rules = any(file.rpartition("/")[2] == SOURCE_IGNORE for file in tree.files)
        if not (ignore or has_rules or leaves_out_texts(tree.files)):
            return tree
        return await leave_out(tree, ignore, await self.fetch_options(None))

    async def select_directories(
        self, tree: Snapshot, directories: Sequence[str], location: Location | None
    ) -> Snapshot:
        """Return a tree with these directories alone."""
        return await keep_directories(tree, directories, await self.fetch_options(None), location)

    async def compose_tree(
        self, base: Snapshot | None, copies: Sequence[tuple[ArtifactCopy, Snapshot]]
    ) -> Snapshot:
        """Return one tree that is made of several."""
        return await put_together(base, copies, await self.fetch_options(None))

    async def optional_helm_workers(self) -> Workers | None:
        """Return the Helm workers; None where the Helm SDK is not installed."""
        return await self.worker_pool.helm() if has_helm_sdk() else None

    async def fetch_options(self, directory: Path | None) -> Access:
        """Return how to fetch sources from a directory: its own repository is not fetched."""
        settings = self.settings
        options = Access(
            cache=settings.cache,
            keyring=keyring_of(settings.environment),
            offline=settings.offline,
            environment=settings.environment,
            checkouts=settings.checkouts,
            vendored=settings.vendored,
            here=settings.scanned_tree,
        )
        if directory is None:
            return options
        async with self._checkouts_lock:
            if directory not in self._local_checkouts:
                self._local_checkouts[directory] = await find_checkouts(directory, options)
        return msgspec.structs.replace(
            options, checkouts=(*settings.checkouts, *self._local_checkouts[directory])
        )

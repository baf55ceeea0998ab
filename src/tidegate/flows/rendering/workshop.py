"""What all units of one run share: the cache, the way to sources, warm workers, and turns."""

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

from tidegate.documents import Document, Read, read
from tidegate.errors import Place, TidegateError
from tidegate.external.worker import Workers
from tidegate.files import Within
from tidegate.model.ledger import KnownRelease
from tidegate.model.release import LookedUp
from tidegate.model.source import GitSource, Portion, Snapshot, SourceRef
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
"""Where a tree says what Flux shall not take of it."""


def has_helm() -> bool:
    return find_spec("helm_python") is not None


def count_cores() -> int:
    """How many of this machine's cores we may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class WorkerCrew:
    """Warm workers, as many as there are cores. Nobody starts before there is something to do."""

    def __init__(self, cores: int, *, offline: bool) -> None:
        self._cores = cores
        self._offline = offline
        self.builds = asyncio.Semaphore(cores)
        self._ends = AsyncExitStack()
        self._entering = asyncio.Lock()
        self._helm: Workers | None = None
        self._jsonnet: Workers | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._ends.aclose()

    async def helm(self) -> Workers:
        """For all charts."""
        async with self._entering:
            if self._helm is None:
                opening = helm_workers(count=self._cores, offline=self._offline)
                self._helm = await self._ends.enter_async_context(opening)
            return self._helm

    async def jsonnet(self) -> Workers:
        async with self._entering:
            if self._jsonnet is None:
                opening = jsonnet_workers(count=self._cores)
                self._jsonnet = await self._ends.enter_async_context(opening)
            return self._jsonnet


class KeptData(NamedTuple):
    """The entries of a ConfigMap or Secret that a cluster has, or why they are not known."""

    entries: Mapping[str, bytes] | None
    why: str = ""


AskData: TypeAlias = Callable[[str, str, str], Awaitable[KeptData]]
"""By kind, namespace and name."""
AskRelease: TypeAlias = Callable[[Unit], Awaitable[KnownRelease | None]]
"""The last revision of the release that a unit is; None where there is none."""
AskManifest: TypeAlias = Callable[[Unit, KnownRelease], Awaitable[tuple[Document, ...]]]
"""The objects and hooks of that revision, as its record has them."""
AskLookup: TypeAlias = Callable[[Unit, str], Awaitable[LookedUp]]
"""What the cluster of a unit answers at a path of its API."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """How things may be had and opened. `maps` are directories that stand for addresses; so is the
    `home` for its remotes, which are looked up when somebody names a repository. `vendored` are
    charts that will do where their repository cannot be asked. `here` is a tree that has been
    looked through already, and `read` reads files, of which it may know some. With `seeks`, charts
    and overlays that cannot come to such a text are not rendered.
    Where something `stands_in`, a part that cannot be had is left out and told, as it is `offline`.
    A `crew` may be shared. `ask_data` asks a cluster for keys and values, `ask_release` for what it
    has of a release, `ask_manifest` for the objects of that, `ask_lookup` for what charts look up.
    `simulates`: the cluster that is asked is a simulated one.
    """

    cache: Cache
    keys: Keys = msgspec.field(default_factory=Keys)
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    maps: tuple[Checkout, ...] = ()
    vendored: VendoredCharts = msgspec.field(default_factory=VendoredCharts)
    home: Path | None = None
    here: Snapshot | None = None
    read: Read = read
    offline: bool = False
    stands_in: bool = False
    seeks: re.Pattern[bytes] | None = None
    cores: int = msgspec.field(default_factory=count_cores)
    crew: WorkerCrew | None = None
    ask_data: AskData | None = None
    ask_release: AskRelease | None = None
    ask_manifest: AskManifest | None = None
    ask_lookup: AskLookup | None = None
    simulates: bool = False

    def __repr__(self) -> str:
        return f"Setting({self.cache!r}, offline={self.offline})"


class Workshop:
    """Open for as long as there is something to render. Nothing starts before it is needed."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.renders = RenderCache(setting.cache.renders, OwnKey(setting.environment))
        self.keys = KnownKeys()
        self.looked = Footprint()
        """What was looked at to see what may be in it: shared by all, as most lie side by side."""
        self.crew = setting.crew or WorkerCrew(setting.cores, offline=setting.offline)
        self._entering = asyncio.Lock()
        self._within: dict[Path, Within] = {}
        self._nearby: dict[Path, tuple[Checkout, ...]] = {}
        self._trees: dict[tuple[SourceRef, str | None], Snapshot | TidegateError] = {}
        self._fetching: dict[tuple[SourceRef, str | None], asyncio.Lock] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.setting.crew is None:
            await self.crew.__aexit__()
        if self.renders.has_grown:
            await asyncio.to_thread(self.setting.cache.shrink)

    @cached_property
    def builder(self) -> tuple[Builder, str]:
        """What builds overlays, and which version of it."""
        tool = msgspec.structs.replace(find_tool(), read=self.setting.read)
        return tool, program_version(tool.argv)

    def within(self, root: Path) -> Within:
        """A tree to look into."""
        found = self._within.get(root)
        if found is None:
            found = self._within[root] = Within(root)
        return found

    async def fetch(
        self, source: SourceRef, ignore: str | None = None, keyring: Keyring | None = None
    ) -> Snapshot:
        """The tree of a source; each is had once. `keyring`: what opens it besides the user's own.

        With `ignore`, without what these rules and those in `.sourceignore` files leave out.
        """
        lock = self._fetching.setdefault((source, ignore), asyncio.Lock())
        async with lock:
            known = self._trees.get((source, ignore))
            if known is None:
                known = self._trees[source, ignore] = await self._fetch(source, ignore, keyring)
        if isinstance(known, TidegateError):
            raise known
        return known

    async def _fetch(
        self, source: SourceRef, ignore: str | None, keyring: Keyring | None
    ) -> Snapshot | TidegateError:
        access = await self.access(self.setting.home if isinstance(source, GitSource) else None)
        if keyring is not None:
            rings = Keyrings((keyring, access.keyring))
            access = msgspec.structs.replace(access, keyring=rings)
        try:
            tree = await fetch(source, access)
            return tree if ignore is None else await self.leave_out(tree, ignore)
        except TidegateError as error:
            return error

    async def leave_out(self, tree: Snapshot, ignore: str) -> Snapshot:
        """Without what these rules leave out, those of the tree, and those that always count."""
        has_rules = any(one.rpartition("/")[2] == SOURCE_IGNORE for one in tree.files)
        if not (ignore or has_rules or leaves_out_texts(tree.files)):
            return tree
        return await leave_out(tree, ignore, await self.access(None))

    async def keep_directories(
        self, tree: Snapshot, wanted: Sequence[str], where: Place | None
    ) -> Snapshot:
        """These directories of a tree alone."""
        return await keep_directories(tree, wanted, await self.access(None), where)

    async def put_together(
        self, own: Snapshot | None, parts: Sequence[tuple[Portion, Snapshot]]
    ) -> Snapshot:
        """One tree of several."""
        return await put_together(own, parts, await self.access(None))

    async def workers_if_any(self) -> Workers | None:
        """Nothing where the Helm SDK is not installed."""
        return await self.crew.helm() if has_helm() else None

    async def access(self, near: Path | None) -> Access:
        """The way to sources for a unit that lies here: its own repository is not fetched."""
        setting = self.setting
        access = Access(
            cache=setting.cache,
            keyring=keyring_of(setting.environment),
            offline=setting.offline,
            environment=setting.environment,
            checkouts=setting.maps,
            vendored=setting.vendored,
            here=setting.here,
        )
        if near is None:
            return access
        async with self._entering:
            if near not in self._nearby:
                self._nearby[near] = await find_checkouts(near, access)
        return msgspec.structs.replace(access, checkouts=(*setting.maps, *self._nearby[near]))

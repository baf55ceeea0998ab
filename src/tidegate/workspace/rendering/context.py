"""State that all units of one run share: the cache, the fetched sources and the workers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import msgspec

from tidegate.errors import Location, TidegateError
from tidegate.external.worker import Workers
from tidegate.files import RootedFiles
from tidegate.model.units.source import ArtifactCopy, GitSource, Snapshot, SourceRef
from tidegate.render.cache.keys import program_version
from tidegate.render.cache.local_key import LocalKey
from tidegate.render.cache.store import RenderCache
from tidegate.render.inputs import CacheInputs, KeyCache
from tidegate.render.kustomize import Builder, find_tool
from tidegate.render.sops import Keys
from tidegate.source import (
    Cache,
    Checkout,
    FetchOptions,
    apply_ignore_rules,
    compose_artifact,
    credentials_from_environment,
    default_cache_root,
    fetch,
    find_checkouts,
    ignores_manifests_by_default,
    read_repository_map,
    select_directories,
)
from tidegate.source.credentials import CredentialChain, CredentialProvider
from tidegate.workers.rendering import (
    RenderSettings,
    WorkerPool,
    has_helm_sdk,
)

SOURCE_IGNORE = ".sourceignore"
"""File in a tree with the rules for what Flux leaves out of it."""


class RenderContext:
    """Shared state of renders. Nothing starts before it is needed."""

    def __init__(self, settings: RenderSettings) -> None:
        self.settings = settings
        self.render_cache = RenderCache(settings.cache.renders, LocalKey(settings.environment))
        self.cache_keys = KeyCache()
        self.prescan_inputs = CacheInputs()
        """Files that were searched; shared between units, as many use the same directory."""
        self.worker_pool = settings.worker_pool or WorkerPool(settings.cores)
        self._checkouts_lock = asyncio.Lock()
        scanned = settings.scanned_files
        self._rooted_files = {scanned.root: scanned} if scanned is not None else {}
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
        self,
        source: SourceRef,
        ignore: str | None = None,
        keyring: CredentialProvider | None = None,
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
        self, source: SourceRef, ignore: str | None, keyring: CredentialProvider | None
    ) -> Snapshot | TidegateError:
        options = await self.fetch_options(
            self.settings.repository if isinstance(source, GitSource) else None
        )
        if keyring is not None:
            rings = CredentialChain((keyring, options.credentials))
            options = msgspec.structs.replace(options, credentials=rings)
        remembers = self.settings.skips_unavailable and keyring is None
        if remembers and source in self.settings.unavailable:
            return self.settings.unavailable[source]
        try:
            tree = await fetch(source, options)
            return tree if ignore is None else await self.filter_ignored(tree, ignore)
        except TidegateError as error:
            if remembers:
                self.settings.unavailable[source] = error
            return error

    async def filter_ignored(self, tree: Snapshot, ignore: str) -> Snapshot:
        """Return a tree without the files that these, its own and the default rules exclude."""
        has_rules = any(file.rpartition("/")[2] == SOURCE_IGNORE for file in tree.files)
        if not (ignore or has_rules or ignores_manifests_by_default(tree.files)):
            return tree
        return await apply_ignore_rules(tree, ignore, await self.fetch_options(None))

    async def select_directories(
        self, tree: Snapshot, directories: Sequence[str], location: Location | None
    ) -> Snapshot:
        """Return a tree with these directories alone."""
        return await select_directories(tree, directories, await self.fetch_options(None), location)

    async def compose_tree(
        self, base: Snapshot | None, copies: Sequence[tuple[ArtifactCopy, Snapshot]]
    ) -> Snapshot:
        """Return one tree that is made of several."""
        return await compose_artifact(base, copies, await self.fetch_options(None))

    async def optional_helm_workers(self) -> Workers | None:
        """Return the Helm workers; None if the Helm SDK is not installed."""
        return await self.worker_pool.helm() if has_helm_sdk() else None

    async def fetch_options(self, directory: Path | None) -> FetchOptions:
        """Return how to fetch sources from a directory: its own repository is not fetched."""
        settings = self.settings
        options = FetchOptions(
            cache=settings.cache,
            credentials=credentials_from_environment(settings.environment),
            offline=settings.offline,
            environment=settings.environment,
            checkouts=settings.checkouts,
            vendored_charts=settings.vendored,
            known_snapshot=settings.scanned_tree,
        )
        if directory is None:
            return options
        async with self._checkouts_lock:
            if directory not in self._local_checkouts:
                self._local_checkouts[directory] = await find_checkouts(directory, options)
        return msgspec.structs.replace(
            options, checkouts=(*settings.checkouts, *self._local_checkouts[directory])
        )


def user_render_settings(*, offline: bool = False, maps: Iterable[str] = ()) -> RenderSettings:
    """Return render settings with the user's cache, keys and credentials. A map is `URL=PATH`."""
    return RenderSettings(
        cache=Cache(default_cache_root()),
        keys=Keys.from_environment(os.environ),
        environment=os.environ,
        checkouts=tuple(read_repository_map(text) for text in maps),
        offline=offline,
    )

"""Options of fetching: the cache, the credentials, limits, and directories that replace sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from tidegate.errors import Location, SourceError
from tidegate.model.times import MINUTE, Ms
from tidegate.model.units.source import Snapshot
from tidegate.source.cache import Cache, CachedTree, CacheEntryKind, Fill
from tidegate.source.credentials import CredentialChain, CredentialProvider
from tidegate.source.tree import TreeLimits
from tidegate.source.urls import SCHEMES, redact_password
from tidegate.source.vendored import VendoredCharts


class Checkout(msgspec.Struct, frozen=True):
    """A directory that replaces a repository."""

    url: str
    """The address of the repository."""
    path: Path
    """The directory."""
    is_override: bool = False
    """Whether the directory replaces every revision, as a user's `--repo-map` does."""
    branch: str = ""
    """The branch that is checked out; empty if unknown."""
    default_branch: str = ""
    """The default branch of the remote; empty if unknown."""
    remote: str = ""
    """The name of the remote with this address, such as `origin`; empty for none."""
    chart: str = ""
    """With a value, the directory replaces only this chart of the repository."""
    version: str = ""
    """Version of the chart. With a value, the directory is used only if the requested range
    contains it.
    """


class FetchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of fetching sources."""

    cache: Cache
    """The cache."""
    credentials: CredentialProvider = CredentialChain()
    """The credentials."""
    offline: bool = False
    """Whether only cached sources are used."""
    limits: TreeLimits = TreeLimits()
    """Limits of sizes."""
    timeout: Ms = Ms(2 * MINUTE)
    """Maximum duration of a fetch."""
    schemes: frozenset[str] = SCHEMES
    """Allowed URL schemes."""
    use_user_git_config: bool = True
    """Whether git reads the user's configuration and asks the user's credential helpers and ssh
    agent. Without it, git gets only what `credentials` has.
    """
    environment: Mapping[str, str] = {}
    """Where git's own variables are looked up; only a few are passed on to git."""
    checkouts: tuple[Checkout, ...] = ()
    """Directories that replace repositories."""
    vendored_charts: VendoredCharts = VendoredCharts()
    """Charts of the user's repository, used when their Helm repository is unavailable."""
    known_snapshot: Snapshot | None = None
    """A directory that has been listed already."""

    def __repr__(self) -> str:
        return f"FetchOptions({self.cache.root})"  # the environment contains secrets

    def read_cached_text(self, name: str, display_name: str) -> bytes | None:
        """Return a cached response in offline mode, else None.

        Raises SourceError in offline mode if the response is not cached.
        """
        text = self.cache.read_text(name) if self.offline else None
        if self.offline and text is None:
            raise offline_error(display_name)
        return text

    async def find_or_fetch_tree(
        self,
        name: str,
        fill: Fill,
        *,
        display_name: str,
        source_name: str,
        kind: CacheEntryKind = CacheEntryKind.SOURCES,
    ) -> CachedTree:
        """Return the cached tree of this name; without one, `fill` fetches it.

        Raises SourceError in offline mode if the tree is not cached.
        """
        tree = self.cache.find(name)
        if tree is None and self.offline:
            raise offline_error(display_name)
        return tree or await self.cache.store(name, fill, source_name=source_name, kind=kind)


def offline_error(display_name: str) -> SourceError:
    """Return the error for something that is not cached in offline mode."""
    return SourceError(
        "source.offline",
        "not in the cache, and network access is disabled",
        location=Location(redact_password(display_name)),
        hint="fetch it once without `--offline`, or map the URL to a directory",
    )

"""What fetching needs to know: the cache, the keys, what is allowed, and what is at hand."""

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
    """A directory that stands for a repository.

    `always` is for what a user maps by hand: the directory counts whatever revision is asked for.
    `branch` is what is checked out, `default` the branch that the remote shows to visitors; both
    are empty where they are not known. With a `chart` it is this chart of the repository, and
    nothing else of it; if its `version` is told, only where that is in the range asked for.
    """

    url: str
    path: Path
    always: bool = False
    branch: str = ""
    default: str = ""
    chart: str = ""
    version: str = ""


class FetchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How sources may be had.

    With `uses_own_git`, git reads the user's configuration and asks the user's credential helpers
    and ssh agent; without it, git is alone with what `keyring` has. `environment` is where git's
    own variables are looked up; only a few are passed on. `vendored` are charts that will do where
    their repository cannot be asked. `here` is a directory that has been looked through already.
    """

    cache: Cache
    keyring: CredentialProvider = CredentialChain()
    offline: bool = False
    limits: TreeLimits = TreeLimits()
    patience: Ms = Ms(2 * MINUTE)
    schemes: frozenset[str] = SCHEMES
    uses_own_git: bool = True
    environment: Mapping[str, str] = {}
    checkouts: tuple[Checkout, ...] = ()
    vendored: VendoredCharts = VendoredCharts()
    here: Snapshot | None = None

    def __repr__(self) -> str:
        return f"Access({self.cache.root})"  # an environment holds secrets

    def recall(self, note: str, what: str) -> bytes | None:
        """What was noted, where the network is not to be used; raises if it is not there."""
        known = self.cache.recall(note) if self.offline else None
        if self.offline and known is None:
            raise offline_error(what)
        return known

    async def tree(
        self,
        name: str,
        fill: Fill,
        *,
        what: str,
        shown: str,
        kind: CacheEntryKind = CacheEntryKind.SOURCES,
    ) -> CachedTree:
        """The tree that goes by this name; made by `fill` if the network may be used."""
        known = self.cache.find(name)
        if known is None and self.offline:
            raise offline_error(what)
        return known or await self.cache.keep(name, fill, shown=shown, kind=kind)


def offline_error(what: str) -> SourceError:
    return SourceError(
        "source.offline",
        "it is not in the cache, and the network is not to be used",
        location=Location(redact_password(what)),
        hint="fetch it once without offline mode, or map the address to a directory",
    )

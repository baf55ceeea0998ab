"""What tests of fetching start from: access to an empty cache, and nothing of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tidegate.source.cache import Cache
from tidegate.source.credentials import CredentialChain, CredentialProvider
from tidegate.source.options import Checkout, FetchOptions
from tidegate.source.tree import TreeLimits


def an_access(
    place: Path,
    *,
    keyring: CredentialProvider | None = None,
    offline: bool = False,
    limits: TreeLimits | None = None,
    checkouts: tuple[Checkout, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> FetchOptions:
    return FetchOptions(
        cache=Cache(place / "cache"),
        credentials=keyring or CredentialChain(),
        offline=offline,
        limits=limits or TreeLimits(),
        use_user_git_config=environment is not None,
        environment=environment or {},
        checkouts=checkouts,
    )

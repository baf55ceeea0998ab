"""What charts see of the cluster that they are for: its version, and what it serves."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.model.objects import Kind


class Capabilities(msgspec.Struct, frozen=True):
    """Empty where the cluster does not say."""

    kube_version: str = ""
    api_versions: tuple[str, ...] = ()


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = ""


def read_version(body: bytes) -> str:
    """What a server says at `/version`; empty where it is no version."""
    try:
        return msgspec.json.decode(body, type=_Version).git_version
    except (msgspec.MsgspecError, RecursionError):
        return ""


def named_versions(kinds: Iterable[Kind]) -> tuple[str, ...]:
    """As `.Capabilities.APIVersions` has them: `apps/v1`, `apps/v1/Deployment`."""
    kinds = tuple(kinds)
    names = {kind.api_version for kind in kinds}
    names |= {f"{kind.api_version}/{kind.name}" for kind in kinds}
    return tuple(sorted(names))

"""What Helm templates see of their cluster: its version and the API versions it serves."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.model.k8s.objects import Kind


class Capabilities(msgspec.Struct, frozen=True):
    """Version and API versions of a cluster; empty if they are unknown."""

    kube_version: str = ""
    api_versions: tuple[str, ...] = ()


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = ""


def read_kube_version(body: bytes) -> str:
    """Return the version in a `/version` response; empty if it has none."""
    try:
        return msgspec.json.decode(body, type=_Version).git_version
    except (msgspec.MsgspecError, RecursionError):
        return ""


def api_version_names(kinds: Iterable[Kind]) -> tuple[str, ...]:
    """Return the names of `.Capabilities.APIVersions`: `apps/v1`, `apps/v1/Deployment`."""
    kinds = tuple(kinds)
    names = {kind.api_version for kind in kinds}
    names |= {f"{kind.api_version}/{kind.name}" for kind in kinds}
    return tuple(sorted(names))

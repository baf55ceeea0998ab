"""What charts see of the cluster that they are for: its version, and what it serves."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.model.objects import Kind
from tidegate.world.ask import ask
from tidegate.world.calls import Http, Kinds
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Catalogue, Said


class Capabilities(msgspec.Struct, frozen=True):
    """Empty where the cluster does not say."""

    kube_version: str = ""
    api_versions: tuple[str, ...] = ()


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = ""


async def ask_capabilities(world: Exchange, *, cluster: str = "") -> Capabilities:
    """Ask a cluster, real or simulated, what `helm` would ask it."""
    version, catalogue = await ask(world, Http("/version"), Kinds(), cluster=cluster)
    kinds = [one.kind for one in catalogue.kinds] if isinstance(catalogue, Catalogue) else []
    return Capabilities(_read(version.body) if isinstance(version, Said) else "", _named(kinds))


def _read(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Version).git_version
    except msgspec.MsgspecError:
        return ""


def _named(kinds: Iterable[Kind]) -> tuple[str, ...]:
    """As `.Capabilities.APIVersions` has them: `apps/v1`, `apps/v1/Deployment`."""
    kinds = tuple(kinds)
    names = {kind.api_version for kind in kinds}
    names |= {f"{kind.api_version}/{kind.name}" for kind in kinds}
    return tuple(sorted(names))

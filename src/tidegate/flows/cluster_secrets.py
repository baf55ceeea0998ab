"""Keys that lie in the cluster, where Flux has them: read when something is to be opened."""

from __future__ import annotations

import base64
import binascii

import msgspec

from tidegate.errors import foreign
from tidegate.flows.rendering.workshop import KeptSecret
from tidegate.knowledge.settings import has_open_keys
from tidegate.model.objects import Kind, Ref
from tidegate.model.reading import mapping
from tidegate.world.ask import ask
from tidegate.world.calls import Get
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Done, Missing, is_refusal

SECRET = Kind("", "v1", "Secret")


class ClusterSecrets:
    """The Secrets of one cluster; each is asked for once."""

    def __init__(self, world: Exchange, cluster: str) -> None:
        self._world = world
        self._cluster = cluster
        self._known: dict[tuple[str, str], KeptSecret] = {}

    async def __call__(self, namespace: str, name: str) -> KeptSecret:
        key = (namespace, name)
        if key not in self._known:
            self._known[key] = await self._read(Ref(SECRET, namespace, name))
        return self._known[key]

    async def _read(self, ref: Ref) -> KeptSecret:
        (found,) = await ask(self._world, Get(ref), cluster=self._cluster)
        if isinstance(found, Done) and found.live is not None:
            body = msgspec.json.decode(found.live.body)
            if has_open_keys(body):
                return KeptSecret(None, "given by its name alone")
            data = mapping(body, "data")
            return KeptSecret({name: _decoded(part) for name, part in data.items()})
        if isinstance(found, Missing) or not is_refusal(found):
            return KeptSecret(None, "not in the cluster")
        return KeptSecret(None, f"the cluster does not show it: {foreign(found.message)}")


def _decoded(part: object) -> bytes:
    try:
        return base64.b64decode(str(part), validate=True)
    except binascii.Error:
        return b""

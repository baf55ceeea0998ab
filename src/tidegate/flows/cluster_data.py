"""ConfigMaps and Secrets that only the cluster has: keys that open files, values, variables."""

from __future__ import annotations

import msgspec

from tidegate.errors import foreign
from tidegate.flows.rendering.trees import data_of
from tidegate.flows.rendering.workshop import KeptData
from tidegate.knowledge.settings import has_open_keys
from tidegate.model.objects import Kind, Ref
from tidegate.world.ask import ask
from tidegate.world.calls import Get
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Done, Missing, is_refusal


class ClusterData:
    """Those of one cluster, where Flux has them; each is asked for once."""

    def __init__(self, world: Exchange, cluster: str) -> None:
        self._world = world
        self._cluster = cluster
        self._known: dict[Ref, KeptData] = {}

    async def __call__(self, kind: str, namespace: str, name: str) -> KeptData:
        ref = Ref(Kind("", "v1", kind), namespace, name)
        if ref not in self._known:
            self._known[ref] = await self._read(ref)
        return self._known[ref]

    async def _read(self, ref: Ref) -> KeptData:
        (found,) = await ask(self._world, Get(ref), cluster=self._cluster)
        if isinstance(found, Done) and found.live is not None:
            body = msgspec.json.decode(found.live.body)
            if has_open_keys(body):
                return KeptData(None, "given by its name alone")
            return KeptData(data_of(body))
        if isinstance(found, Missing) or not is_refusal(found):
            return KeptData(None, "not in the cluster")
        return KeptData(None, f"the cluster does not show it: {foreign(found.message)}")

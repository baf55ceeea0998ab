"""Inputs of rendering that are read from clusters: data, lookups of charts, and releases."""

from __future__ import annotations

import msgspec

from tidegate.errors import sanitize
from tidegate.flows.rendering.trees import decode_data
from tidegate.flows.rendering.workshop import ClusterDataResult
from tidegate.knowledge.settings import has_open_keys
from tidegate.model.objects import Kind, Ref
from tidegate.world.ask import send_requests
from tidegate.world.calls import Get
from tidegate.world.exchange import Dispatcher
from tidegate.world.facts import NotFound, Success, is_error


class ClusterDataReader:
    """Reads ConfigMaps and Secrets of the cluster in which Flux has them, each once."""

    def __init__(self, world: Dispatcher, cluster: str) -> None:
        self._world = world
        self._cluster = cluster
        self._results: dict[Ref, ClusterDataResult] = {}

    async def __call__(self, kind: str, namespace: str, name: str) -> ClusterDataResult:
        ref = Ref(Kind("", "v1", kind), namespace, name)
        if ref not in self._results:
            self._results[ref] = await self._read(ref)
        return self._results[ref]

    async def _read(self, ref: Ref) -> ClusterDataResult:
        (outcome,) = await send_requests(self._world, Get(ref), cluster=self._cluster)
        if isinstance(outcome, Success) and outcome.live is not None:
            body = msgspec.json.decode(outcome.live.body)
            if has_open_keys(body):
                return ClusterDataResult(None, "given by its name alone")
            return ClusterDataResult(decode_data(body))
        if isinstance(outcome, NotFound) or not is_error(outcome):
            return ClusterDataResult(None, "not in the cluster")
        return ClusterDataResult(None, f"the cluster does not show it: {sanitize(outcome.message)}")

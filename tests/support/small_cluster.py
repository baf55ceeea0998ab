"""A sandbox with the controllers a test asks for, and short ways to look into it."""

from __future__ import annotations

import msgspec

from tests.support.cluster_client import ClusterClient, require_items, require_live
from tests.support.instant_kubelet import INSTANT_KUBELET
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.kinds import EVENT
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.times import Ms
from tidegate.sandbox.controllers.core import API_CONTROLLERS
from tidegate.sandbox.controllers.interface import Controller
from tidegate.sandbox.world import START, Sandbox
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import Success
from tidegate.world.requests import Selection, Verb, View, Write

SHOP = "shop"
NOTES = "test.tidegate.dev/"


class SmallCluster:
    """One cluster with the namespace `shop`; the instant kubelet simulates its pods."""

    def __init__(self, *controllers: Controller) -> None:
        self.world = Sandbox(controllers=(*API_CONTROLLERS, *controllers, INSTANT_KUBELET))
        self.client = ClusterClient(Dispatcher(self.world), namespace=SHOP)

    async def open(self) -> SmallCluster:
        require_live(await self.client.create(an_object("v1", "Namespace", SHOP)))
        await self.until(Ms(100))
        return self

    @property
    def elapsed(self) -> Ms:
        """Since the sandbox began."""
        return Ms(self.world.now() - START)

    async def until(self, moment: Ms) -> None:
        """Let time pass up to a moment after the beginning."""
        while self.elapsed < moment:
            await self.world.wait(Ms(START + moment))

    async def create(self, body: JsonObject) -> Ref:
        return require_live(await self.client.create(body)).ref

    async def remove(self, ref: Ref) -> None:
        """Delete at once: a pod gets no time to end."""
        await self.client.ask(Write(verb=Verb.DELETE, ref=ref, grace_period_seconds=0))

    async def body(self, kind: Kind, name: str) -> JsonObject | None:
        """An object as it is now; None where there is none."""
        outcome = await self.client.get(Ref(kind, SHOP if kind.name not in WIDE else "", name))
        if not isinstance(outcome, Success) or outcome.live is None:
            return None
        body: JsonObject = msgspec.json.decode(outcome.live.body)
        return body

    async def status(self, kind: Kind, name: str) -> JsonObject:
        return get_mapping(await self.body(kind, name), "status")

    async def all_of(self, kind: Kind) -> list[JsonObject]:
        namespace = SHOP if kind.name not in WIDE else ""
        page = await self.client.page(Selection(kind, namespace, view=View.FULL))
        return [msgspec.json.decode(live.body) for live in require_items(page)]

    async def reasons(self, name: str) -> list[str]:
        """Why there are Events about an object, each reason once, sorted."""
        events = await self.all_of(EVENT)
        about = (event for event in events if get_text(event, "involvedObject", "name") == name)
        return sorted({get_text(item, "reason") for item in about})


WIDE = ("PersistentVolume", "StorageClass", "APIService", "Namespace")


def an_object(api_version: str, kind: str, name: str, **parts: Json) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **parts}


def notes(**annotations: str) -> JsonObject:
    """Annotations for the kubelet, with `_` for `-`."""
    return {f"{NOTES}{name.replace('_', '-')}": value for name, value in annotations.items()}

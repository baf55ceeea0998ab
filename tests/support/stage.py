"""A cluster with a kubelet, to watch pods on: time moves where a test says."""

from __future__ import annotations

from tests.support.cluster_client import ClusterClient, require_body, require_items, require_live
from tests.support.objects import a_namespace
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.core import API_CONTROLLERS
from tidegate.sandbox.controllers.interface import Controller
from tidegate.sandbox.node.kubelet.pod import kubelet_controller
from tidegate.sandbox.node.profile import ContainerProfile, ContainerRule, Profile
from tidegate.sandbox.node.profile_file import default_profile
from tidegate.sandbox.scenario import read_scenario
from tidegate.sandbox.world import START, Sandbox
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import RawResponse, Success
from tidegate.world.requests import Logs, Selection

POD = Kind("", "v1", "Pod")
EVENT = Kind("", "v1", "Event")
BEGIN = Ms(START + SECOND)
SIMPLE = Profile(
    durations=ContainerProfile(),
    polls=default_profile().polls,
    telemetry=default_profile().telemetry,
)
"""Two seconds to pull, one to start, one to be ready, five to run; no rules."""


class Stage:
    """A namespace `shop`. Moments are seconds since its first second was over."""

    def __init__(self, profile: Profile = SIMPLE, controllers: tuple[Controller, ...] = ()) -> None:
        self.sandbox = Sandbox(
            controllers=(*API_CONTROLLERS, *controllers, kubelet_controller(profile))
        )
        self.client = ClusterClient(Dispatcher(self.sandbox), namespace="shop")

    async def at(self, seconds: float) -> Stage:
        """Let time pass until shortly after this moment, so that everything due by then is done."""
        moment = Ms(int(BEGIN + seconds * SECOND) + 200)
        while self.sandbox.now() < moment:
            await self.sandbox.wait(moment)
        return self

    async def create(self, *bodies: JsonObject) -> None:
        for body in bodies:
            require_live(await self.client.create(body))

    async def pod(self, name: str = "web") -> JsonObject:
        return require_body(await self.client.get(Ref(POD, "shop", name)))

    async def is_there(self, name: str = "web") -> bool:
        return isinstance(await self.client.get(Ref(POD, "shop", name)), Success)

    async def phase(self, name: str = "web") -> str:
        return get_text(await self.pod(name), "status", "phase")

    async def container(self, name: str = "web", container: str = "app") -> JsonObject:
        status = get_mapping(await self.pod(name), "status")
        statuses = [
            *get_mappings(status, "initContainerStatuses"),
            *get_mappings(status, "containerStatuses"),
        ]
        return next((status for status in statuses if status.get("name") == container), {})

    async def state(self, name: str = "web", container: str = "app") -> str:
        """`running`, or the reason of a container that waits or has ended."""
        state = get_mapping(await self.container(name, container), "state")
        for word in ("waiting", "terminated"):
            if word in state:
                return get_text(state, word, "reason")
        return next(iter(state), "")

    async def condition(self, kind: str, name: str = "web") -> str:
        conditions = get_mappings(await self.pod(name), "status", "conditions")
        return next(
            (
                get_text(condition, "status")
                for condition in conditions
                if condition.get("type") == kind
            ),
            "",
        )

    async def events(self, reason: str) -> list[str]:
        items = require_items(await self.client.page(Selection(EVENT, "shop")))
        bodies = [require_body(Success(item)) for item in items]
        return [get_text(body, "message") for body in bodies if body.get("reason") == reason]

    async def printed(self, name: str = "web", container: str = "app") -> str:
        (text,) = await self.client.ask(Logs(ref=Ref(POD, "shop", name), container=container))
        assert isinstance(text, RawResponse)
        return text.body.decode()


async def a_stage(
    *controllers: Controller, profile: Profile = SIMPLE, behaviours: str = ""
) -> Stage:
    """A stage that is set: the namespace is there, and a second has passed."""
    rules: tuple[ContainerRule, ...] = ()
    if behaviours:
        text_ = f"behaviours:\n- {{{behaviours}}}\n"
        rules = read_scenario(text_.encode(), "s.yaml").behaviours
    stage = Stage(profile.with_rules(rules), controllers)
    await stage.create(a_namespace("shop"))
    while stage.sandbox.now() < BEGIN:
        await stage.sandbox.wait(BEGIN)
    return stage


def a_container(
    name: str = "app", image: str = "registry.example/app:1", /, **parts: Json
) -> JsonObject:
    return {"name": name, "image": image, **parts}


def a_pod(name: str = "web", *containers: JsonObject, **spec: Json) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [*(containers or (a_container(),))], **spec},
    }


def a_probe(**numbers: int) -> JsonObject:
    return {"exec": {"command": ["true"]}, **numbers}


def at(body: JsonObject, *path: str) -> Json:
    """The value at a path of a body."""
    return get_value(body, *path)

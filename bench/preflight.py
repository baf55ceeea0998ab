"""Dry runs before the first write of 3,000 objects on a real API server: their share of a rollout.

Every ten objects are an app. Apps `of one chart` differ in names, images and values; of apps
`by hand` no two are alike in ports, rights and resources. The share is of the time from the
beginning of a rollout to its end: the time in which dry runs were under way.
"""

from __future__ import annotations

import asyncio
import time

from bench.engine.cluster import USER, Bench
from plane import ControlPlane
from tests.support.builders import make_config_map, make_object, make_plan_from, make_unit
from tests.support.rollout_runs import roll_out
from tidegate.clusters.connect import open_world
from tidegate.engine.context import RolloutSettings
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.plan import Plan
from tidegate.model.times import Ms
from tidegate.model.units.policy import PreflightMode
from tidegate.world.messages import Message, Response
from tidegate.world.protocol import World
from tidegate.world.requests import Call, RequestId, Write

APPS = 300
PER_APP = 10
RBAC = "rbac.authorization.k8s.io"


class DryRunTimer:
    """A world that knows since when and until when it was asked to try something."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._open: set[RequestId] = set()
        self._since = 0.0
        self.request_count = 0
        self.seconds = 0.0

    def now(self) -> Ms:
        return self._world.now()

    def submit(self, call: Call) -> None:
        if isinstance(call.request, Write) and call.request.dry_run and call.request.ref.name:
            self._since = self._since if self._open else time.perf_counter()
            self._open.add(call.request_id)
            self.request_count += 1
        self._world.submit(call)

    def cancel(self, request_id: RequestId) -> bool:
        return self._world.cancel(request_id)

    async def wait(self, until: Ms | None) -> tuple[Message, ...]:
        messages = await self._world.wait(until)
        answered = {
            message.request_id for message in messages if isinstance(message, Response)
        } & self._open
        if answered:
            self._open -= answered
            now = time.perf_counter()
            self.seconds += 0 if self._open else now - self._since
        return messages

    def wake(self) -> None:
        self._world.wake()


def an_app(number: int, namespace: str, *, by_hand: bool) -> tuple[tuple[JsonObject, ...], ...]:
    """The waves of an app; one that was written by hand is like no other."""
    name, unit_resource = f"app-{number}", number if by_hand else 0
    labels: JsonObject = {"app": name}
    limits: JsonObject = {"cpu": f"{100 + unit_resource}m", "memory": "64Mi"}
    container: JsonObject = {
        "name": name,
        "image": f"registry.example.org/{name}:1.{number}",
        "env": [{"name": "HOST", "value": f"db.{name}"}],
        "envFrom": [{"configMapRef": {"name": name}}, {"secretRef": {"name": name}}],
        "ports": [{"containerPort": 8080 + unit_resource, "name": "http"}],
        "resources": {"limits": limits, "requests": limits},
    }
    pod: JsonObject = {"containers": [container], "serviceAccountName": name}
    template: JsonObject = {"metadata": {"labels": labels}, "spec": pod}
    selector: JsonObject = {"matchLabels": labels}
    ports: list[Json] = [{"port": 80, "targetPort": 8080 + unit_resource}]
    incoming: JsonObject = {"ports": [{"port": 8080 + unit_resource}]}
    once: JsonObject = {**pod, "restartPolicy": "Never"}
    nightly: JsonObject = {
        "schedule": f"{unit_resource % 60} {unit_resource // 60} * * *",
        "jobTemplate": {"spec": {"template": {"spec": once}}},
    }
    rule: JsonObject = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    rights: JsonObject = {**rule, "resourceNames": [f"secret-{unit_resource}"]}
    role: JsonObject = {"apiGroup": RBAC, "kind": "Role", "name": name}
    account: JsonObject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    first = (
        make_object("v1 ServiceAccount", name),
        make_object("v1 Secret", name, stringData={"password": "secret"}),
        make_config_map(name, text="x" * 500),
        make_object(f"{RBAC}/v1 Role", name, rules=[rights]),
        make_object(f"{RBAC}/v1 RoleBinding", name, roleRef=role, subjects=[account]),
    )
    budget: JsonObject = {"selector": selector, "maxUnavailable": 1 + unit_resource}
    second = (
        make_object("apps/v1 Deployment", name, spec={"selector": selector, "template": template}),
        make_object("v1 Service", name, spec={"selector": labels, "ports": ports}),
    )
    third = (
        make_object("policy/v1 PodDisruptionBudget", name, spec=budget),
        make_object(
            "networking.k8s.io/v1 NetworkPolicy",
            name,
            spec={"podSelector": selector, "ingress": [incoming]},
        ),
        make_object("batch/v1 CronJob", name, spec=nightly),
    )
    return tuple(
        tuple(_placed(body, namespace) for body in wave) for wave in (first, second, third)
    )


def _placed(body: JsonObject, namespace: str) -> JsonObject:
    metadata = body["metadata"]
    if not isinstance(metadata, dict):
        raise TypeError(metadata)
    return {**body, "metadata": {**metadata, "namespace": namespace}}


def a_fleet(namespace: str, *, by_hand: bool) -> Plan:
    apps = [an_app(number, namespace, by_hand=by_hand) for number in range(APPS)]
    waves = (tuple(body for wave in parts for body in wave) for parts in zip(*apps, strict=True))
    return make_plan_from(make_unit(*waves, name=namespace))


async def run(bench: Bench, namespace: str, *, by_hand: bool) -> dict[str, float]:
    await bench.make_namespace(namespace)
    plan = a_fleet(namespace, by_hand=by_hand)
    settings = RolloutSettings(holder=namespace, preflight_mode=PreflightMode.AUTO)
    async with open_world({"": None}, kubeconfig=str(bench.plane.kubeconfig(USER))) as world:
        timed, begun = DryRunTimer(world), time.perf_counter()
        ended = await roll_out(timed, plan, settings)
        lasted = time.perf_counter() - begun
    if ended.result != "passed":
        raise RuntimeError(ended.events[-5:])
    which = "by hand" if by_hand else "of one chart"
    return {
        f"{which}, dry runs": timed.request_count,
        f"{which}, rollout, s": lasted,
        f"{which}, share of dry runs, %": 100 * timed.seconds / lasted,
    }


def measure() -> dict[str, float]:
    """Each on a control plane of its own."""
    figures: dict[str, float] = {"objects": APPS * PER_APP}
    for by_hand in (False, True):
        with ControlPlane.start() as plane:
            namespace = "by-hand" if by_hand else "chart"
            figures |= asyncio.run(run(Bench(plane), namespace, by_hand=by_hand))
    return figures

"""Many units in one rollout, compared with one unit of as many objects, in a simulated cluster.

Ten objects are an app: account, Secret, Service and ConfigMaps in a first wave, a Deployment in a
second. A unit has one app, or all of them. CPU time is that of one core and includes the cluster:
its server, its controllers and its kubelet.
"""

from __future__ import annotations

import asyncio
import cProfile
import time
from dataclasses import dataclass, field

from tests.support.builders import (
    make_config_map,
    make_deployment,
    make_object,
    make_plan_from,
    make_unit,
)
from tests.support.rollout_runs import roll_out
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.model.k8s.objects import JsonObject, Ref
from tidegate.model.plans.plan import Plan
from tidegate.model.times import SECOND, Ms
from tidegate.world.messages import Message
from tidegate.world.protocol import World
from tidegate.world.requests import Call, Get, List, RequestId, Watch, Write

PER_APP = 10
ONE_UNIT = (100, 1_000)
"""Apps of the rollouts that have one unit."""
MANY_UNITS = 1_000
"""Apps, and units, of the rollout that has many."""
BOOKS = "tidegate-system"
"""The namespace of leases and journals."""


def an_app(number: int) -> tuple[tuple[JsonObject, ...], tuple[JsonObject, ...]]:
    """The two waves of an app."""
    name = f"app-{number}"
    service: JsonObject = {"selector": {"app": name}, "ports": [{"port": 80}]}
    first = (
        make_object("v1 ServiceAccount", name),
        make_object("v1 Secret", name, stringData={"password": "simulated"}),
        make_object("v1 Service", name, spec=service),
        *(make_config_map(f"{name}-{part}", text="x" * 500) for part in range(PER_APP - 4)),
    )
    return first, (make_deployment(name),)


def one_unit(apps: int) -> Plan:
    waves = zip(*map(an_app, range(apps)), strict=True)
    return make_plan_from(
        make_unit(*(tuple(body for app in wave for body in app) for wave in waves))
    )


def many_units(apps: int) -> Plan:
    return make_plan_from(
        *(make_unit(*an_app(number), name=f"unit-{number}") for number in range(apps))
    )


@dataclass(slots=True)
class CountingWorld:
    """A World that counts its requests, and records when each app was first written."""

    world: World
    books: int = 0
    """Calls for leases and journals."""
    begun: dict[str, Ms] = field(default_factory=dict)

    def now(self) -> Ms:
        return self.world.now()

    def submit(self, call: Call) -> None:
        match call.request:
            case Get(ref=Ref(namespace=place)) | Write(ref=Ref(namespace=place)) if place == BOOKS:
                self.books += 1
            case List(selection=selection) | Watch(selection=selection) if (
                selection.namespace == BOOKS
            ):
                self.books += 1
            case Write(ref=Ref(name=name)) if name.startswith("app-"):
                app = "-".join(name.split("-")[:2])
                self.begun.setdefault(app, self.now())
            case _:
                pass
        self.world.submit(call)

    def cancel(self, request_id: RequestId) -> bool:
        return self.world.cancel(request_id)

    async def wait(self, until: Ms | None) -> tuple[Message, ...]:
        return await self.world.wait(until)

    def wake(self) -> None:
        self.world.wake()


def play(plan: Plan) -> dict[str, float]:
    """The figures of one rollout, on a new cluster."""
    world = CountingWorld(build_sandbox(SimulationConfig()))
    opened, start = world.now(), time.process_time()
    run = asyncio.run(roll_out(world, plan))
    spent = time.process_time() - start
    if run.result != "passed":
        raise RuntimeError(run.events_of()[-5:])
    objects = len(world.begun) * PER_APP
    return {
        "CPU s": spent,
        "CPU us/object": spent / objects * 1e6,
        "lease+journal calls/object": world.books / objects,
        "first app begun, virtual s": (min(world.begun.values()) - opened) / SECOND,
        "last app begun, virtual s": (max(world.begun.values()) - opened) / SECOND,
        "ended, virtual s": (world.now() - opened) / SECOND,
    }


def count_calls(plan: Plan) -> int:
    """Function calls of one rollout: they know no caches and no neighbours."""
    profile = cProfile.Profile()
    profile.runcall(play, plan)
    return sum(entry.callcount for entry in profile.getstats())


def measure() -> dict[str, float]:
    """Each shape by itself, and the ratio of the cost per object."""
    few, most = ONE_UNIT
    shapes = {
        f"1 x {few * PER_APP:,}": one_unit(few),
        f"1 x {most * PER_APP:,}": one_unit(most),
        f"{MANY_UNITS:,} x {PER_APP}": many_units(MANY_UNITS),
    }
    figures = {
        f"{shape}, {figure}": value
        for shape, plan in shapes.items()
        for figure, value in play(plan).items()
    }
    single, _, many = (figures[f"{shape}, CPU us/object"] for shape in shapes)
    figures["CPU us/object, many units / one"] = many / single
    single = count_calls(one_unit(few)) / (few * PER_APP)
    many = count_calls(many_units(MANY_UNITS)) / (MANY_UNITS * PER_APP)
    return figures | {
        "function calls/object, one unit": single,
        "function calls/object, many units": many,
        "function calls/object, many units / one": many / single,
    }


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:48} {value:12.2f}", flush=True)

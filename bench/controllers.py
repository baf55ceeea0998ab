"""Many objects applied at once to a simulated cluster with controllers, until they settle.

Ten objects are an app: a Deployment with a Service, a Job, and the objects that they read. Their
controllers and the kubelet create as many again. The figures are CPU time of one core.
"""

from __future__ import annotations

import asyncio
import time

from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import MINUTE, Ms
from tidegate.sandbox.bootstrap import load_base_objects
from tidegate.sandbox.controller_set import build_controllers
from tidegate.sandbox.node.profile_file import default_profile
from tidegate.sandbox.world import START, Sandbox, to_create_write
from tidegate.world.messages import is_error

SIZES = (1_000, 10_000)
AT_REST = Ms(5 * MINUTE)


def an_object(api_version: str, kind: str, name: str, **parts: Json) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def an_app(number: int) -> list[JsonObject]:
    name = f"app-{number}"
    labels: JsonObject = {"app": name}
    container: JsonObject = {
        "name": "app",
        "image": "registry.example/app:1",
        "envFrom": [{"configMapRef": {"name": name}}, {"secretRef": {"name": name}}],
    }
    pod: JsonObject = {"containers": [container]}
    template: JsonObject = {"metadata": {"labels": labels}, "spec": pod}
    job: JsonObject = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return [
        an_object("v1", "ServiceAccount", name),
        an_object("v1", "ConfigMap", name, data={"color": "blue"}),
        an_object("v1", "ConfigMap", f"{name}-files", data={"file": "x" * 500}),
        an_object("v1", "ConfigMap", f"{name}-more", data={"file": "x" * 500}),
        an_object("v1", "Secret", name, stringData={"password": "simulated"}),
        an_object("v1", "Secret", f"{name}-more", stringData={"password": "simulated"}),
        an_object("v1", "Service", name, spec={"selector": labels, "ports": [{"port": 80}]}),
        an_object(
            "v1", "Service", f"{name}-more", spec={"clusterIP": "None", "ports": [{"port": 80}]}
        ),
        an_object(
            "apps/v1",
            "Deployment",
            name,
            spec={"selector": {"matchLabels": labels}, "template": template},
        ),
        an_object("batch/v1", "Job", name, spec={"template": job}),
    ]


def play(size: int) -> tuple[float, int]:
    """CPU seconds until rest, and how many objects there are then."""
    sandbox = Sandbox(controllers=build_controllers(default_profile(), load_builtin_knowledge()))
    sandbox.preload(load_base_objects())
    server = sandbox.clusters[""].server
    writes = [to_create_write(body) for number in range(size // 10) for body in an_app(number)]
    start = time.process_time()
    for write in writes:
        outcome = server.perform(write)
        if is_error(outcome):
            raise RuntimeError(outcome)
    asyncio.run(_rest(sandbox))
    spent = time.process_time() - start
    tables = (table for _, table in server.store.list_tables())
    return spent, sum(len(inside) for table in tables for inside in table.objects.values())


async def _rest(sandbox: Sandbox) -> None:
    await sandbox.wait(Ms(START + AT_REST))


def measure() -> dict[str, float]:
    figures: dict[str, float] = {}
    for size in SIZES:
        spent, objects = play(size)
        figures[f"{size:,} applied, CPU s"] = spent
        figures[f"{size:,} applied, us/applied"] = spent / size * 1e6
        figures[f"{size:,} applied, objects at rest"] = objects
    first, last = (figures[f"{size:,} applied, us/applied"] for size in SIZES)
    figures["us/applied, many / few"] = last / first
    return figures


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:32} {value:12.2f}")

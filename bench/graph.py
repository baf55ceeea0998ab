"""A rendered repository becomes a graph, and every query of the graph runs.

Ten objects each are an app and a unit: account, Secret, Service, ConfigMaps with hosts, a custom
resource that creates a Secret, and a Deployment that references all of it and calls the next app.
A root creates all units, each tenth in a separate wave. CPU time is that of one core.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import TypeVar

import msgspec

from tests.support.builders import make_config_map, make_object, make_unit
from tidegate.graph.build import build_graph
from tidegate.graph.cycles import find_cycles
from tidegate.graph.missing import find_unmet_dependencies
from tidegate.inspection.graph import find_inverted_edges
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.graph import Graph
from tidegate.model.plans.manifest import Manifests
from tidegate.model.plans.plan import Plan
from tidegate.plan.build.build import build_plan
from tidegate.planning.graph import graph_inputs

PER_APP = 10
SIZES = (100, 1_000, 5_000)
"""Apps, and so units."""
RESOURCE = "external-secrets.io/v1 ExternalSecret"
Got = TypeVar("Got")


def a_workload(name: str, following: str) -> JsonObject:
    container: Json = {
        "name": "app",
        "image": f"registry.example.com/team/{name}:1",
        "envFrom": [{"configMapRef": {"name": f"{name}-0"}}, {"secretRef": {"name": name}}],
        "env": [
            {"name": "UPSTREAM_URL", "value": f"http://{following}.default.svc:80/"},
            {
                "name": "PASSWORD",
                "valueFrom": {"secretKeyRef": {"name": f"{name}-made", "key": "password"}},
            },
        ],
    }
    pod: Json = {
        "serviceAccountName": name,
        "containers": [container],
        "volumes": [{"name": "settings", "configMap": {"name": f"{name}-1"}}],
    }
    template: Json = {"metadata": {"labels": {"app": name}}, "spec": pod}
    spec: Json = {"selector": {"matchLabels": {"app": name}}, "template": template}
    return make_object("apps/v1 Deployment", name, spec=spec)


def an_app(number: int, of: int) -> Manifests:
    name, following = f"app-{number}", f"app-{(number + 1) % of}"
    service: JsonObject = {"selector": {"app": name}, "ports": [{"port": 80}]}
    made: JsonObject = {
        "secretStoreRef": {"kind": "ClusterSecretStore", "name": "vault"},
        "target": {"name": f"{name}-made"},
        "data": [{"secretKey": "password", "remoteRef": {"key": name}}],
    }
    first = (
        make_object("v1 ServiceAccount", name),
        make_object("v1 Secret", name, stringData={"token": "simulated"}),
        make_object("v1 Service", name, spec=service),
        make_object(RESOURCE, name, spec=made),
        *(
            make_config_map(f"{name}-{part}", text=f"url: http://{following}.default.svc:80/")
            for part in range(PER_APP - 5)
        ),
    )
    waits = (f"app-{number - 1}",) if number % PER_APP else ()
    return make_unit(first, (a_workload(name, following),), name=name, after=waits)


def repository(apps: int) -> tuple[list[Manifests], Plan]:
    units = [an_app(number, apps) for number in range(apps)]
    return units, build_plan(units, readiness_timeout=lambda _: None)


def ask_all(graph: Graph) -> int:
    return (
        len(find_inverted_edges(graph))
        + len(find_cycles(graph))
        + len(find_unmet_dependencies(graph))
    )


def measure() -> dict[str, float]:
    """The cost of an object at each size, and the ratio of the largest to the smallest."""
    ground = graph_inputs(None)
    figures: dict[str, float] = {}
    per_object: list[float] = []
    for apps in SIZES:
        units, plan = repository(apps)
        objects = apps * PER_APP
        graph, built = timed(lambda: build_graph(units, plan, ground))  # noqa: B023 - called at once
        _, request = timed(lambda: ask_all(graph))  # noqa: B023 - called at once
        parsed = bare(units)
        name = f"{objects:,} objects in {apps:,} units"
        figures[f"{name}, build CPU s"] = built
        figures[f"{name}, ask CPU s"] = request
        figures[f"{name}, build + ask / parsing them"] = (built + request) / parsed
        per_object.append((built + request) / objects)
    figures["cost of an object, largest / smallest"] = per_object[-1] / per_object[0]
    figures["10,000 objects, MiB of the graph"] = weight(*repository(1_000))
    return figures


def bare(units: list[Manifests]) -> float:
    """What reading the same texts alone costs."""
    bodies = [manifest.body for unit in units for manifest in unit.manifests]
    _, spent = timed(lambda: [msgspec.json.decode(body) for body in bodies])
    return spent


def weight(units: list[Manifests], plan: Plan) -> float:
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    graph = build_graph(units, plan, graph_inputs(None))
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / 2**20 if graph.nodes else 0.0


def timed(work: Callable[[], Got]) -> tuple[Got, float]:
    gc.collect()
    start = time.process_time()
    got = work()
    return got, time.process_time() - start

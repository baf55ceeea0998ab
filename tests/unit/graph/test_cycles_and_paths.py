"""The order of steps, cycles, the critical path, and the reason of a wait."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.recorded_wording import RecordedWording
from tests.unit.graph.repository import (
    graph_of,
    graph_of_text,
    ground,
    manifests_of,
    node,
    unit_of,
)
from tidegate.graph.build import build_graph
from tidegate.graph.cycles import find_cycles
from tidegate.graph.paths import explain_wait, find_critical_path
from tidegate.graph.reachability import StepReachability
from tidegate.model.plans.graph import Graph, GraphStep, HealthCoverage
from tidegate.model.plans.plan import Edge
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.semantics import ARGOCD
from tidegate.model.units.unit import UnitId
from tidegate.plan.build.build import build_plan

MOST = 14


def steps_with(edges: set[tuple[int, int]]) -> Graph:
    unit = UnitId.plain("", "u")
    steps = tuple(
        GraphStep(
            number=at,
            id=str(at),
            unit=unit,
            phase="sync",
            wave=at,
            stage="",
            part=0,
            nodes=(),
            is_last=False,
            is_gated=True,
        )
        for at in range(MOST)
    )
    return Graph(steps=steps, order=tuple(Edge(str(item), str(other)) for item, other in edges))


pairs = st.tuples(st.integers(0, MOST - 1), st.integers(0, MOST - 1)).filter(
    lambda pair: pair[0] < pair[1]
)


@given(st.sets(pairs, max_size=40))
def test_a_step_follows_exactly_its_predecessors(edges: set[tuple[int, int]]) -> None:
    later = {at: {at} for at in range(MOST)}
    for at in reversed(range(MOST)):
        for item, other in edges:
            if item == at:
                later[at] |= later[other]
    reach = StepReachability(steps_with(edges))

    for item in range(MOST):
        for other in range(MOST):
            assert reach.is_after(other, item) is (other != item and other in later[item])


CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, annotations: {argocd.argoproj.io/sync-wave: "%s"}}
"""
MOUNTS = """\
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {argocd.argoproj.io/sync-wave: "1"}}
spec:
  template:
    spec:
      containers: [{name: web, image: acme/web}]
      volumes: [{name: settings, configMap: {name: settings}}]
"""


def test_a_config_map_of_a_later_wave_is_a_cycle(wording: RecordedWording) -> None:
    (circle,) = find_cycles(graph_of_text(CONFIG % 5 + MOUNTS))

    wording(circle.links[0].reason)
    assert find_cycles(graph_of_text(CONFIG % 1 + MOUNTS)) == ()


def test_a_kind_without_a_health_check_holds_nothing() -> None:
    unit = unit_of("app", rules=ARGOCD)
    text = CONFIG % 5 + MOUNTS
    known = [manifests_of(unit, text)]
    plan = build_plan(known, readiness_timeout=lambda _: Ms(0))
    graph = build_graph(
        known,
        plan,
        ground(),
        lookup_coverage=lambda _unit, _body: HealthCoverage(has_health_check=False),
    )

    assert find_cycles(graph) == ()


def test_units_that_depend_on_each_other_are_a_cycle(wording: RecordedWording) -> None:
    first = manifests_of(unit_of("first", depends=("second",)), CONFIG % 0)
    second = manifests_of(unit_of("second", depends=("first",)), "")
    plan = build_plan(
        [manifests_of(unit_of("first"), CONFIG % 0)], readiness_timeout=lambda _: Ms(0)
    )

    (circle,) = find_cycles(build_graph([first, second], plan, ground()))
    wording(f"{link.waiter} {link.reason}" for link in circle.links)


def test_a_service_answers_when_its_workload_is_ready(wording: RecordedWording) -> None:
    job = """\
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {argocd.argoproj.io/hook: PreSync}}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: app, image: acme/app, env: [{name: DB_HOST, value: db}]}]
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: postgres}]}
"""
    (circle,) = find_cycles(graph_of_text(job, rules=ARGOCD))

    wording(f"{link.waiter} {link.reason}" for link in circle.links)


def test_the_critical_path_is_the_chain_that_takes_longest() -> None:
    slow = manifests_of(unit_of("slow"), CONFIG % 0 + MOUNTS)
    quick = manifests_of(unit_of("quick"), CONFIG.replace("settings", "other") % 0)
    last = manifests_of(
        unit_of("last", depends=("slow", "quick")), CONFIG.replace("settings", "last") % 0
    )
    graph = graph_of(slow, quick, last)

    path = find_critical_path(
        graph, lambda item: Ms(5 * SECOND if item.name.startswith("Dep") else 0)
    )
    assert [graph.steps[item.step].id for item in path] == [
        "shop/slow/sync/0",
        "shop/slow/sync/1",
        "shop/last/sync/0",
    ]
    assert path[-1].finishes_at == 5 * SECOND
    assert graph.nodes[path[1].slowest_node].name == "Deployment shop/web"


def test_why_one_waits_for_another_is_the_shortest_chain(wording: RecordedWording) -> None:
    graph = graph_of(
        manifests_of(unit_of("database"), CONFIG % 0),
        manifests_of(unit_of("app", depends=("database",)), MOUNTS.removeprefix("---\n")),
    )
    web, settings = node(graph, "Deployment shop/web"), node(graph, "ConfigMap shop/settings")

    (wait,) = explain_wait(graph, web.number, settings.number)
    assert wait.waiter == "Deployment shop/web"
    wording(wait.reason)
    assert explain_wait(graph, settings.number, web.number) == []
    (unit,) = explain_wait(
        graph, node(graph, "shop/app").number, node(graph, "shop/database").number
    )
    assert unit.reason == "needs shop/database (dependsOn)"

"""DaemonSets in virtual time: which nodes have a pod, and how many have none."""

from __future__ import annotations

import pytest

from tests.support.trace_workloads import AGENT, a_template, a_workload
from tests.support.workload_stage import PLACE, Stage
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.kinds import POD
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import MINUTE, Ms
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.controllers.pods import is_active, is_ready

SECOND_IMAGE = a_template(image="app:2")


def counts(view: ObjectReader) -> Json:
    pods = [pod for pod in view.list_objects(POD, PLACE) if is_active(pod)]
    return [len(pods), sum(map(is_ready, pods))]


def least_ready(stage: Stage) -> int:
    return min(int(str(sample[1])) for sample in stage.samples if isinstance(sample, list))


def most_pods(stage: Stage) -> int:
    return max(int(str(sample[0])) for sample in stage.samples if isinstance(sample, list))


def node_names(stage: Stage) -> list[str]:
    return sorted(get_text(pod.body, "spec", "nodeName") for pod in stage.all_of(POD))


def a_node(name: str, *, taints: Json = None, **labels: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**labels}},
        "spec": {"taints": taints} if taints else {},
    }


def with_pod_spec(template: JsonObject, **spec: Json) -> JsonObject:
    return {**template, "spec": {**get_mapping(template, "spec"), **spec}}


async def test_every_node_has_one_pod_and_a_new_node_gets_one() -> None:
    stage = await Stage().open(nodes=2)
    await stage.do(a_workload(AGENT))
    await stage.run()
    before = node_names(stage)

    await stage.apply(a_node("node-9"))
    await stage.run()

    assert before == ["node-0", "node-1"]
    assert node_names(stage) == ["node-0", "node-1", "node-9"]
    assert stage.count(AGENT, "numberReady") == 3


async def test_without_nodes_there_is_nothing_to_wait_for() -> None:
    stage = await Stage().open(nodes=0)

    await stage.do(a_workload(AGENT))
    await stage.run()

    assert stage.pods() == []
    assert stage.count(AGENT, "observedGeneration") == 1
    assert stage.count(AGENT, "desiredNumberScheduled") == 0


async def test_a_node_selector_and_a_taint_decide_where_pods_run() -> None:
    stage = await Stage().open(nodes=0)
    taint: Json = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]
    await stage.apply(a_node("plain"))
    await stage.apply(a_node("fast", disk="ssd"))
    await stage.apply(a_node("dedicated", taints=taint, disk="ssd"))

    await stage.do(
        a_workload(AGENT, template=with_pod_spec(a_template(), nodeSelector={"disk": "ssd"}))
    )
    await stage.run()

    assert node_names(stage) == ["fast"]
    assert stage.count(AGENT, "desiredNumberScheduled") == 1


async def test_a_toleration_lets_a_pod_run_on_a_tainted_node() -> None:
    stage = await Stage().open(nodes=0)
    taint: Json = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]
    await stage.apply(a_node("dedicated", taints=taint))

    tolerations: Json = [{"key": "dedicated", "operator": "Exists"}]
    await stage.do(a_workload(AGENT, template=with_pod_spec(a_template(), tolerations=tolerations)))
    await stage.run()

    assert node_names(stage) == ["dedicated"]


@pytest.mark.parametrize(
    ("unavailable", "least"), [(1, 3), (2, 2), ("50%", 2), ("100%", 0)], ids=str
)
async def test_the_limit_of_unavailable_nodes_is_kept(unavailable: int | str, least: int) -> None:
    stage = await Stage(sample=counts).open(nodes=4)
    strategy: Json = {"rollingUpdate": {"maxUnavailable": unavailable}}
    await stage.do(a_workload(AGENT, updateStrategy=strategy))
    await stage.run()
    stage.samples.clear()

    await stage.do(a_workload(AGENT, updateStrategy=strategy, template=SECOND_IMAGE))
    await stage.run(Ms(MINUTE))

    assert stage.images() == ["2"] * 4
    assert least_ready(stage) == least
    assert stage.count(AGENT, "updatedNumberScheduled") == 4


async def test_with_surge_every_node_keeps_a_ready_pod() -> None:
    stage = await Stage(sample=counts).open(nodes=3)
    strategy: Json = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await stage.do(a_workload(AGENT, updateStrategy=strategy))
    await stage.run()
    stage.samples.clear()

    await stage.do(a_workload(AGENT, updateStrategy=strategy, template=SECOND_IMAGE))
    await stage.run(Ms(MINUTE))

    assert stage.images() == ["2"] * 3
    assert least_ready(stage) == 3
    assert most_pods(stage) == 4


async def test_a_rollout_whose_pods_are_never_ready_stops_at_its_limit() -> None:
    stage = await Stage().open(nodes=3)
    await stage.do(a_workload(AGENT))
    await stage.run()

    broken = a_template(image="app:2", outcome="never")
    await stage.do(a_workload(AGENT, template=broken))
    await stage.run(Ms(60 * MINUTE))

    assert sorted(stage.images()) == ["1", "1", "2"]
    assert stage.count(AGENT, "numberUnavailable") == 1


async def test_on_delete_pods_are_renewed_by_hand() -> None:
    stage = await Stage().open(nodes=2)
    strategy: Json = {"type": "OnDelete"}
    await stage.do(a_workload(AGENT, updateStrategy=strategy))
    await stage.run()
    await stage.do(a_workload(AGENT, updateStrategy=strategy, template=SECOND_IMAGE))
    await stage.run()
    before = stage.images()

    await stage.delete(POD, stage.pods()[0])
    await stage.run()

    assert before == ["1", "1"]
    assert sorted(stage.images()) == ["1", "2"]

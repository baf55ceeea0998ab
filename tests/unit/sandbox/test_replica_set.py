"""ReplicaSets in virtual time: how many pods, and which of them are deleted first."""

from __future__ import annotations

from tests.support.trace_workloads import CREW, a_template, a_workload, scale
from tests.support.workload_stage import Stage
from tidegate.model.k8s.kinds import POD, REPLICA_SET
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.sandbox.controllers.pods import is_ready, phase_of


async def test_a_deleted_pod_is_replaced() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(CREW, replicas=3))
    await stage.run()
    first = stage.pods()[0]

    await stage.delete(POD, first)
    await stage.run()

    assert len(stage.pods()) == 3
    assert first not in stage.pods()


async def test_pods_that_are_not_ready_are_deleted_before_younger_ready_ones() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(CREW, replicas=2, template=a_template(outcome="crash")))
    await stage.run()
    await stage.do(a_workload(CREW, replicas=4))
    await stage.run()

    await stage.do(scale(CREW, 2))
    await stage.run()

    assert [is_ready(pod) for pod in stage.all_of(POD)] == [True, True]


async def test_a_failed_pod_stays_and_another_takes_its_place() -> None:
    stage = await Stage().open()
    template = a_template(outcome="fail", run_for="1h")

    await stage.do(a_workload(CREW, replicas=1, template=template))
    await stage.run(Ms(65 * MINUTE))

    assert sorted(map(phase_of, stage.all_of(POD))) == ["Failed", "Running"]
    assert stage.count(CREW, "replicas") == 1


async def test_retries_of_a_refused_pod_back_off() -> None:
    stage = await Stage(sample=lambda view: len(view.list_objects(POD))).open()
    await stage.do(a_workload(CREW, replicas=1, template=a_template(account="builder")))
    await stage.run(Ms(10 * SECOND))
    stage.samples.clear()

    await stage.run(Ms(60 * MINUTE))

    assert stage.samples == []
    assert len(stage.events("FailedCreate")) == 1


async def test_the_pods_of_a_deleted_replica_set_are_deleted() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(CREW, replicas=3))
    await stage.run()

    await stage.delete(REPLICA_SET, "crew")
    await stage.run()

    assert stage.pods() == []

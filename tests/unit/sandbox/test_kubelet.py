"""Pods and the kubelet: started, restarted, ended, deleted."""

from __future__ import annotations

import pytest

from tests.support.cluster_client import require_live
from tests.support.stage import POD, a_container, a_pod, a_stage, at
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.node.profile import ContainerProfile, Profile
from tidegate.world.messages import Conflict
from tidegate.world.requests import Verb, Write


def a_task(name: str = "web", policy: str = "Never", **spec: Json) -> JsonObject:
    return a_pod(name, restartPolicy=policy, **spec)


async def test_a_pod_is_scheduled_at_once_and_runs_when_its_image_is_pulled() -> None:
    stage = await a_stage()
    await stage.create(a_pod())

    placed = at(await (await stage.at(0)).pod(), "spec", "nodeName")
    before = await (await stage.at(2)).phase()
    after = await (await stage.at(3)).phase()

    assert placed == "node-1"
    assert (before, after) == ("Pending", "Running")
    assert await stage.condition("Ready") == "True"


async def test_a_pod_that_is_not_delayed_is_written_twice() -> None:
    stage = await a_stage()
    await stage.create(a_pod())
    created = int(require_live(await stage.client.get(Ref(POD, "shop", "web"))).resource_version)

    await stage.at(60)

    assert (
        int(require_live(await stage.client.get(Ref(POD, "shop", "web"))).resource_version)
        == created + 2
    )


async def test_a_pod_has_the_status_that_a_kubelet_would_write() -> None:
    stage = await a_stage()
    await stage.create(a_pod())

    pod = await (await stage.at(5)).pod()

    assert at(pod, "status", "startTime") == "2026-01-01T00:00:01Z"
    assert at(pod, "status", "podIPs") == [{"ip": at(pod, "status", "podIP")}]
    assert await stage.container() == {
        "name": "app",
        "state": {"running": {"startedAt": "2026-01-01T00:00:04Z"}},
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": "registry.example/app:1",
        "imageID": "",
        "started": True,
    }


async def test_init_containers_run_in_order() -> None:
    stage = await a_stage()
    inits: list[Json] = [a_container("first"), a_container("second")]
    await stage.create(a_pod(initContainers=inits))

    during_first = await (await stage.at(3)).state(container="first")
    waits = await stage.state(container="second")
    initialized = await stage.condition("Initialized")
    during_second = await (await stage.at(7)).state(container="second")

    assert (during_first, waits, initialized) == ("running", "PodInitializing", "False")
    assert during_second == "running"
    assert await stage.state(container="first") == "Completed"
    assert await (await stage.at(10)).phase() == "Pending"
    assert await (await stage.at(11)).phase() == "Running"


async def test_a_sidecar_starts_before_the_containers_and_ends_after_them() -> None:
    stage = await a_stage()
    sidecar: list[Json] = [a_container("proxy", restartPolicy="Always")]
    await stage.create(a_task(initContainers=sidecar))

    proxy = await (await stage.at(3)).state(container="proxy")
    begun = await (await stage.at(6)).state()
    ended = await (await stage.at(11)).phase()

    assert (proxy, begun, ended) == ("running", "running", "Succeeded")
    assert await stage.state(container="proxy") == "Completed"


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
async def test_a_task_that_is_done_has_succeeded(policy: str) -> None:
    stage = await a_stage()
    await stage.create(a_task(policy=policy))

    running = await (await stage.at(7)).phase()
    done = await (await stage.at(8)).phase()

    assert (running, done) == ("Running", "Succeeded")
    assert at(await stage.container(), "state", "terminated", "exitCode") == 0


async def test_a_task_that_fails_is_over_if_it_is_not_restarted() -> None:
    stage = await a_stage(behaviours="effect: fails, after: 2s, exit: 3")
    await stage.create(a_task())

    phase = await (await stage.at(5)).phase()

    assert phase == "Failed"
    assert at(await stage.container(), "state", "terminated", "exitCode") == 3
    assert at(await stage.container(), "state", "terminated", "reason") == "Error"


async def test_a_container_that_crashes_is_restarted_at_once_and_then_with_backoff() -> None:
    stage = await a_stage(behaviours="effect: crashes, after: 1s")
    await stage.create(a_pod())
    restarts = []

    for moment in (4, 5, 6, 15, 16, 17, 36, 37):
        await stage.at(moment)
        restarts.append((moment, at(await stage.container(), "restartCount"), await stage.state()))

    assert restarts == [
        (4, 0, "Error"),
        (5, 1, "running"),
        (6, 1, "CrashLoopBackOff"),
        (15, 1, "CrashLoopBackOff"),
        (16, 2, "running"),
        (17, 2, "CrashLoopBackOff"),
        (36, 2, "CrashLoopBackOff"),
        (37, 3, "running"),
    ]
    assert await stage.phase() == "Running"


async def test_an_init_container_that_fails_keeps_its_pod_pending() -> None:
    stage = await a_stage(behaviours="effect: fails, when: {container: first}")
    await stage.create(a_pod(initContainers=[a_container("first")]))

    await stage.at(60)

    assert await stage.phase() == "Pending"
    assert await stage.state(container="first") == "CrashLoopBackOff"


async def test_an_init_container_that_fails_in_a_pod_that_never_restarts_fails_the_pod() -> None:
    stage = await a_stage(behaviours="effect: fails, when: {container: first}")
    await stage.create(a_task(initContainers=[a_container("first")]))

    await stage.at(4)

    assert await stage.phase() == "Failed"


async def test_a_pod_that_is_active_for_too_long_fails() -> None:
    stage = await a_stage()
    await stage.create(a_pod(activeDeadlineSeconds=20))

    before = await (await stage.at(19)).phase()
    pod = await (await stage.at(20)).pod()

    assert before == "Running"
    assert at(pod, "status", "phase") == "Failed"
    assert at(pod, "status", "reason") == "DeadlineExceeded"


async def test_a_readiness_gate_is_waited_for() -> None:
    stage = await a_stage()
    await stage.create(a_pod(readinessGates=[{"conditionType": "example.com/open"}]))
    pod = await (await stage.at(5)).pod()
    closed = await stage.condition("Ready")
    conditions = at(pod, "status", "conditions")
    assert isinstance(conditions, list)

    opened: Json = {"type": "example.com/open", "status": "True"}
    ref = Ref(POD, "shop", "web")
    patch: JsonObject = {"status": {"conditions": [*conditions, opened]}}
    await stage.client.patch(ref, patch, subresource="status")

    assert closed == "False"
    assert await (await stage.at(6)).condition("Ready") == "True"


async def test_a_pod_on_a_node_is_deleted_after_it_has_stopped() -> None:
    stage = await a_stage()
    await stage.create(a_pod())
    await stage.at(10)

    await stage.client.delete(Ref(POD, "shop", "web"))

    assert at(await stage.pod(), "metadata", "deletionGracePeriodSeconds") == 30
    assert not await (await stage.at(11)).is_there()


async def test_a_pod_is_deleted_after_its_grace_period_at_the_latest() -> None:
    lasting = Profile(durations=ContainerProfile(stop=Ms(60 * SECOND)))
    stage = await a_stage(profile=lasting)
    await stage.create(a_pod(terminationGracePeriodSeconds=4))
    await stage.at(10)

    await stage.client.delete(Ref(POD, "shop", "web"))

    assert await (await stage.at(13)).is_there()
    assert not await (await stage.at(14)).is_there()


async def test_a_pod_with_a_finalizer_has_ended_before_it_is_deleted() -> None:
    stage = await a_stage()
    held = a_pod()
    held["metadata"] = {"name": "web", "finalizers": ["example.com/count"]}
    await stage.create(held)
    await stage.at(10)

    await stage.client.delete(Ref(POD, "shop", "web"))
    await stage.at(12)

    assert await stage.phase() == "Failed"
    assert at(await stage.container(), "state", "terminated", "exitCode") == 143
    assert at(await stage.pod(), "metadata", "deletionGracePeriodSeconds") == 0


async def test_a_pod_is_scheduled_once() -> None:
    stage = await a_stage()
    await stage.create(a_pod())
    await stage.at(1)
    body = b'{"kind":"Binding","metadata":{"name":"web"},"target":{"name":"node-2"}}'
    binding = Write(verb=Verb.CREATE, ref=Ref(POD, "shop", "web"), body=body, subresource="binding")

    (outcome,) = await stage.client.ask(binding)

    assert isinstance(outcome, Conflict)
    assert "already assigned" in outcome.message


async def test_a_pod_with_a_node_name_runs_there() -> None:
    stage = await a_stage()
    await stage.create(a_pod(nodeName="node-7"))

    await stage.at(3)

    assert await stage.phase() == "Running"
    assert await stage.condition("PodScheduled") == "True"

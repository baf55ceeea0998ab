"""Containers that wait for objects with kubectl: they end when the condition holds, or time out."""

from __future__ import annotations

import pytest

from tests.support.cluster_client import require_live
from tests.support.objects import a_definition, a_gate, an_object
from tests.support.recorded_wording import RecordedWording
from tests.support.stage import Stage, a_container, a_pod, a_probe, a_stage, at
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.sandbox.controllers.workloads.deployment import DEPLOYMENTS
from tidegate.sandbox.controllers.workloads.replica_set import REPLICA_SETS

DEPLOYMENT = Kind("apps", "v1", "Deployment")
CONFIG_MAP = Kind("", "v1", "ConfigMap")
GROUP = "example.org"
GATE = Kind(GROUP, "v1", "Gate")


def a_smoke_test(script: str, **parts: Json) -> JsonObject:
    command: Json = ["sh", "-ec", script]
    return a_pod("smoke", a_container(command=command, **parts), restartPolicy="Never")


async def phase_and_message(stage: Stage) -> tuple[str, str]:
    """The phase, and the message of the container that has ended."""
    result = at(await stage.container("smoke"), "state", "terminated", "message")
    return await stage.phase("smoke"), str(result or "")


async def test_kubectl_wait_waits_for_a_condition(wording: RecordedWording) -> None:
    stage = await a_stage()
    later = a_pod("web", a_container(readinessProbe=a_probe(initialDelaySeconds=20)))
    await stage.create(
        later, a_smoke_test("kubectl wait pod/web --for=condition=Ready --timeout=60s\necho fine")
    )

    await stage.at(22)
    before = await stage.phase("smoke")
    await stage.at(40)

    assert (before, await phase_and_message(stage)) == ("Running", ("Succeeded", ""))
    assert await stage.condition("Ready", "web") == "True"
    (event,) = await stage.events("Assumed")
    wording(event)


async def test_kubectl_wait_times_out_with_the_error_of_kubectl(
    wording: RecordedWording,
) -> None:
    stage = await a_stage()
    later = a_pod("web", a_container(readinessProbe=a_probe(initialDelaySeconds=50)))
    await stage.create(
        later, a_smoke_test("kubectl wait pod/web --for=condition=Ready --timeout=10s")
    )

    await stage.at(14)

    phase, message = await phase_and_message(stage)
    assert phase == "Failed"
    assert "kubectl-waits" in message
    wording(message)
    printed = await stage.printed("smoke")
    assert printed == "error: timed out waiting for the condition on pod/web\n"


async def test_a_missing_object_is_not_waited_for_except_with_for_create() -> None:
    stage = await a_stage()
    await stage.create(a_smoke_test("kubectl wait pod/web --for=condition=Ready"))
    await stage.at(4)
    first = await phase_and_message(stage)
    printed = await stage.printed("smoke")

    patient = a_pod(
        "patient",
        a_container(command=["kubectl", "wait", "cm/late", "--for=create"]),
        restartPolicy="Never",
    )
    await stage.create(patient)
    await stage.at(15)
    waiting = await stage.phase("patient")
    await stage.create(an_object(CONFIG_MAP, "late"))
    await stage.at(30)

    assert first[0] == "Failed"
    assert printed == 'Error from server (NotFound): pod "web" not found\n'
    assert (waiting, await stage.phase("patient")) == ("Running", "Succeeded")


async def test_kubectl_wait_waits_for_a_deletion() -> None:
    stage = await a_stage()
    container = a_container("app", "example/kubectl:1", args=["wait", "cm/x", "--for=delete"])
    await stage.create(an_object(CONFIG_MAP, "x"), a_pod("smoke", container, restartPolicy="Never"))
    await stage.at(12)
    before = await stage.phase("smoke")
    await stage.client.delete(Ref(CONFIG_MAP, "shop", "x"))

    await stage.at(25)

    assert (before, await stage.phase("smoke")) == ("Running", "Succeeded")


@pytest.mark.parametrize("name", ["deployment/web", "deploy/web", "deployments.apps/web"])
async def test_a_rollout_is_over_when_its_pods_are_ready(name: str) -> None:
    stage = await a_stage(DEPLOYMENTS, REPLICA_SETS)
    pod: Json = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [a_container(readinessProbe=a_probe(initialDelaySeconds=20))]},
    }
    spec: Json = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    await stage.create(
        an_object(DEPLOYMENT, "web", spec=spec), a_smoke_test(f"kubectl rollout status {name}")
    )

    await stage.at(20)
    before = await stage.phase("smoke")
    await stage.at(40)

    assert (before, await stage.phase("smoke")) == ("Running", "Succeeded")


@pytest.mark.parametrize("name", ["gate", "gates", "gates.example.org", "gates.v1.example.org"])
async def test_custom_resources_are_known_by_their_definition(name: str) -> None:
    stage = await a_stage()
    await stage.create(a_definition(GROUP))
    await stage.at(1)
    await stage.create(
        a_gate(GROUP), a_smoke_test(f"kubectl wait {name}/north --for=condition=Open")
    )
    await stage.at(10)
    before = await stage.phase("smoke")
    status: JsonObject = {"status": {"conditions": [{"type": "Open", "status": "True"}]}}
    require_live(await stage.client.patch(Ref(GATE, "shop", "north"), status, subresource="status"))

    await stage.at(25)

    assert (before, await stage.phase("smoke")) == ("Running", "Succeeded")


async def test_an_unknown_kind_is_not_waited_for() -> None:
    stage = await a_stage()
    await stage.create(a_smoke_test("kubectl wait nonsense/web --for=condition=Ready"))

    await stage.at(10)

    assert await phase_and_message(stage) == ("Succeeded", "")

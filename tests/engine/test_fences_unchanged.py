"""A second rollout of what is there already: every gate opens at once, and nothing is written."""

from __future__ import annotations

from tests.support.builders import make_config_map, make_job, make_object, make_pod_template
from tests.support.cluster_client import require_body
from tests.support.objects import a_definition
from tests.support.rollout_objects import WEB, a_gate, an_ingress
from tests.support.rollout_stage import HASTY, PATIENT, Stage
from tests.support.rollout_statuses import addressed
from tests.support.write_records import Record
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.rollouts.event import EventType, StepState
from tidegate.world.messages import Outcome

SIZE: JsonObject = {"storage": "1Gi"}


def everything(stage: Stage) -> tuple[tuple[JsonObject, ...], ...]:
    """One object for each way in which kinds prove their health."""
    group, volume = f"{stage.namespace}.example.org", f"disk-{stage.namespace}"
    return (
        (a_definition(group), a_volume(volume), make_config_map(color="red")),
        (
            a_claim(volume),
            a_service("web"),
            a_service("door", type="LoadBalancer"),
            an_ingress("web"),
            WEB,
            a_stateful_set("db"),
            make_job("migrate"),
            a_gate(group),
        ),
        (make_config_map("later"),),
    )


def a_volume(name: str) -> JsonObject:
    spec: JsonObject = {
        "capacity": SIZE,
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/tmp/disk"},  # noqa: S108 - no process mounts it
    }
    return make_object("v1 PersistentVolume", name, namespace="", spec=spec)


def a_claim(volume: str) -> JsonObject:
    spec: JsonObject = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "volumeName": volume,
        "resources": {"requests": SIZE},
    }
    return make_object("v1 PersistentVolumeClaim", "disk", spec=spec)


def a_service(name: str, **spec: Json) -> JsonObject:
    ports: list[Json] = [{"port": 80}]
    return make_object(
        "v1 Service", name, spec={"selector": {"app": "web"}, "ports": ports, **spec}
    )


def a_stateful_set(name: str) -> JsonObject:
    spec: JsonObject = {
        "replicas": 2,
        "serviceName": name,
        "selector": {"matchLabels": {"app": name}},
        "template": make_pod_template(name),
    }
    return make_object("apps/v1 StatefulSet", name, spec=spec)


async def test_a_second_rollout_opens_every_gate_at_once_and_writes_nothing(
    living_stage: Stage, record: Record
) -> None:
    waves = everything(living_stage)
    first = await living_stage.roll_out(*waves, semantics=HASTY)
    await record.mark()

    second = await living_stage.roll_out(*waves, semantics=PATIENT)

    assert (first.result, second.result) == ("passed", "passed")
    assert await record.written() == []
    assert not second.events_of(
        EventType.GATE_WAITING, EventType.GATE_UNPROVEN, EventType.OBJECT_WRITTEN
    )
    assert len(second.events_of(EventType.OBJECT_UNCHANGED)) == sum(map(len, waves))
    assert set(second.states.values()) == {StepState.PASSED}


async def test_a_gate_that_was_left_while_it_waited_waits_again(stage: Stage) -> None:
    await _pass_with(stage, an_ingress("old"))
    first = stage.start(an_ingress("new"))
    await first.waits("NoNewerStatus")
    await first.stops()

    second = stage.start(an_ingress("new"))
    await second.waits("NoNewerStatus")

    assert not second.is_open
    await stage.says(an_ingress("new"), addressed("192.0.2.2"))
    assert (await second.ends()).result == "passed"


async def test_a_status_that_is_newer_than_our_write_counts_without_a_journal(
    stage: Stage,
) -> None:
    rolling = stage.start(an_ingress("web"))
    await rolling.waits("NoNewerStatus")
    await _next_second(stage)
    await stage.says(an_ingress("web"), addressed())
    await rolling.ends()
    await stage.forgets()

    run = await stage.roll_out(an_ingress("web"))

    assert run.result == "passed"
    assert not run.events_of(
        EventType.GATE_WAITING, EventType.GATE_UNPROVEN, EventType.OBJECT_WRITTEN
    )


async def _pass_with(stage: Stage, ingress: JsonObject) -> None:
    rolling = stage.start(ingress)
    await rolling.waits("NoNewerStatus")
    await stage.says(ingress, addressed())
    assert (await rolling.ends()).result == "passed"


async def _next_second(stage: Stage) -> None:
    """Wait until the server writes another time than it does now: its times are whole seconds."""

    async def attempt() -> Outcome:
        return await stage.client.create(stage.here(make_config_map("clock")), dry_run=True)

    def second(outcome: Outcome) -> str:
        return get_text(require_body(outcome), "metadata", "creationTimestamp")

    now = second(await attempt())
    await stage.client.eventually(attempt, lambda outcome: second(outcome) != now)

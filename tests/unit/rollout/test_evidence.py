"""What a cluster knows of an object that failed."""

from __future__ import annotations

import msgspec

from tests.support.builders import make_config_map, make_object
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.model.k8s.objects import ClusterRef, Json, JsonObject, Kind, Ref
from tidegate.model.plans.change import MASK
from tidegate.model.redaction import Redactor
from tidegate.model.rollouts.evidence import Evidence
from tidegate.model.times import MINUTE, Ms
from tidegate.rollout.diagnosis import DiagnosisContext, collect_evidence
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import is_error
from tidegate.world.one_shot import send_requests
from tidegate.world.protocol import World
from tidegate.world.requests import Verb, Write

DIALS: JsonObject = {"env": [{"name": "DB_HOST", "value": "db"}]}
NEEDS: JsonObject = {"envFrom": [{"secretRef": {"name": "missing"}}]}
DATABASE = make_object("v1 Service", "db", spec={"selector": {"app": "db"}, "ports": [{"port": 1}]})


def pods_that(more: JsonObject) -> JsonObject:
    container: Json = {"name": "app", "image": "app:1", **more}
    return {"containers": [container]}


def a_job_that(more: JsonObject, **limits: Json) -> JsonObject:
    pod: JsonObject = {"restartPolicy": "Never", **pods_that(more)}
    spec: JsonObject = {"backoffLimit": 0, "template": {"spec": pod}, **limits}
    return make_object("batch/v1 Job", "migrate", spec=spec)


def a_deployment_that(more: JsonObject) -> JsonObject:
    labels: JsonObject = {"app": "web"}
    template: JsonObject = {"metadata": {"labels": labels}, "spec": pods_that(more)}
    spec: JsonObject = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    return make_object("apps/v1 Deployment", "web", spec=spec)


def ref_of(body: JsonObject) -> Ref:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    kind = Kind.of(str(body["apiVersion"]), str(body["kind"]))
    return Ref(kind, "default", str(metadata["name"]))


async def world_with(*bodies: JsonObject) -> World:
    """A cluster some time after these were applied."""
    world = build_sandbox(SimulationConfig())
    for body in bodies:
        text, ref = msgspec.json.encode(body), ref_of(body)
        (outcome,) = await send_requests(
            Dispatcher(world), Write(verb=Verb.APPLY, ref=ref, body=text, manager="me")
        )
        assert not is_error(outcome)
    end = Ms(world.now() + 2 * MINUTE)
    while world.now() < end:
        await world.wait(end)
    return world


async def evidence_of(world: World, body: JsonObject, *hidden: str) -> Evidence:
    (result,) = await collect_evidence(
        Dispatcher(world),
        [ClusterRef("", ref_of(body))],
        DiagnosisContext(redactor=Redactor(hidden)),
    )
    return result


async def test_a_failed_job_has_its_pods_their_logs_and_its_events() -> None:
    job = a_job_that(DIALS)
    world = await world_with(DATABASE, job)

    evidence = await evidence_of(world, job)

    (pod,) = evidence.pods
    (container,) = pod.containers
    assert pod.phase == "Failed"
    assert (container.name, container.exit_code) == ("app", 1)
    assert container.message.startswith("Service default/db")
    (line,) = container.log
    assert "lookup db" in line
    assert {note.reason for note in evidence.events} >= {"SuccessfulCreate", "BackoffLimitExceeded"}


async def test_a_deployment_has_some_pods_of_its_replica_set() -> None:
    deployment = a_deployment_that(NEEDS)
    world = await world_with(deployment)

    evidence = await evidence_of(world, deployment)

    assert len(evidence.pods) == 2
    (container,) = evidence.pods[0].containers
    assert container.reason == "CreateContainerConfigError"
    assert "missing" in container.message


async def test_deleted_pods_are_known_from_their_events() -> None:
    job = a_job_that(NEEDS, activeDeadlineSeconds=60)
    world = await world_with(job)

    evidence = await evidence_of(world, job)

    assert evidence.pods == ()
    messages = [(note.reason, note.message) for note in evidence.events]
    assert ("Failed", 'Error: secret "missing" not found') in messages
    assert messages[-1] == ("DeadlineExceeded", "Job was active longer than specified deadline")


async def test_pods_of_other_objects_are_no_evidence() -> None:
    deployment, job = a_deployment_that(NEEDS), a_job_that({})
    world = await world_with(deployment, job)

    evidence = await evidence_of(world, job)

    assert evidence.pods == ()


async def test_secrets_are_hidden_in_logs() -> None:
    job = a_job_that(DIALS)
    world = await world_with(DATABASE, job)

    evidence = await evidence_of(world, job, "lookup db")

    (container,) = evidence.pods[0].containers
    (line,) = container.log
    assert MASK in line
    assert "lookup db" not in line


async def test_an_object_without_pods_has_no_pods_in_its_evidence() -> None:
    settings = make_config_map("settings")
    world = await world_with(settings)

    evidence = await evidence_of(world, settings)

    assert evidence == Evidence(ref=ref_of(settings))


async def test_a_missing_object_has_no_evidence() -> None:
    job = a_job_that({})

    evidence = await evidence_of(await world_with(), job)

    assert evidence == Evidence(ref=ref_of(job))

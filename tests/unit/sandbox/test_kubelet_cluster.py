"""The kubelet together with all controllers: small clusters that become stable."""

from __future__ import annotations

import pytest

from tests.support.cluster_client import require_body, require_items
from tests.support.objects import an_object
from tests.support.stage import BEGIN, SIMPLE, Stage, a_container, a_probe, at
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.bootstrap import load_base_objects
from tidegate.sandbox.controller_set import CONTROLLERS
from tidegate.sandbox.controllers.storage.volumes import provisioner_controller
from tidegate.sandbox.node.profile import ContainerRule, ContainerSelector
from tidegate.world.messages import NotFound, Success
from tidegate.world.requests import Selection

DEPLOYMENT = Kind("apps", "v1", "Deployment")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet")
SERVICE = Kind("", "v1", "Service")
JOB = Kind("batch", "v1", "Job")
POD = Kind("", "v1", "Pod")
KINDS = (DEPLOYMENT, STATEFUL_SET, JOB, POD, SERVICE)


async def a_shop(*rules: ContainerRule) -> Stage:
    stage = Stage(SIMPLE.with_rules(rules), (*CONTROLLERS, provisioner_controller()))
    shop = an_object(Kind("", "v1", "Namespace"), "shop")
    stage.sandbox.preload(load_base_objects())
    await stage.create(shop)
    while stage.sandbox.now() < BEGIN:
        await stage.sandbox.wait(BEGIN)
    return stage


def a_template(app: str, *containers: JsonObject, **spec: Json) -> JsonObject:
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [*containers], **spec}}


def a_deployment(name: str, template: JsonObject, **spec: Json) -> JsonObject:
    selector: Json = {"matchLabels": {"app": name}}
    return an_object(DEPLOYMENT, name, spec={"selector": selector, "template": template, **spec})


def a_database() -> JsonObject:
    mount: Json = [{"name": "data", "mountPath": "/data"}]
    container = a_container("db", "postgres:17", volumeMounts=mount, readinessProbe=a_probe())
    request: Json = {"requests": {"storage": "1Gi"}}
    claim: Json = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": request},
    }
    spec: JsonObject = {
        "serviceName": "db",
        "replicas": 2,
        "selector": {"matchLabels": {"app": "db"}},
        "template": a_template("db", container),
        "volumeClaimTemplates": [claim],
    }
    return an_object(STATEFUL_SET, "db", spec=spec)


def a_service(name: str) -> JsonObject:
    return an_object(SERVICE, name, spec={"selector": {"app": name}, "ports": [{"port": 80}]})


def a_migration() -> JsonObject:
    env: Json = [{"name": "DATABASE_URL", "value": "postgres://db/shop"}]
    template = a_template("migrate", a_container(env=env), restartPolicy="Never")
    return an_object(JOB, "migrate", spec={"template": template})


def a_waiting_api() -> JsonObject:
    wait = a_container("wait", command=["sh", "-c", "until nc -z db 5432; do sleep 1; done"])
    return a_deployment("api", a_template("api", a_container(), initContainers=[wait]), replicas=3)


async def read_field(stage: Stage, kind: Kind, name: str, *path: str) -> Json:
    return at(require_body(await stage.client.get(Ref(kind, "shop", name))), *path)


async def test_a_shop_applied_without_order_becomes_healthy() -> None:
    stage = await a_shop()

    await stage.create(
        a_waiting_api(), a_migration(), a_service("db"), a_service("api"), a_database()
    )
    await stage.at(300)

    assert await read_field(stage, STATEFUL_SET, "db", "status", "readyReplicas") == 2
    assert await read_field(stage, DEPLOYMENT, "api", "status", "availableReplicas") == 3
    assert await read_field(stage, JOB, "migrate", "status", "succeeded") == 1


async def test_a_simulation_is_repeatable() -> None:
    runs = []

    for _ in range(2):
        stage = await a_shop()
        await stage.create(a_waiting_api(), a_migration(), a_service("db"), a_database())
        await stage.at(120)
        pages = [await stage.client.page(Selection(kind, "shop")) for kind in KINDS]
        runs.append([live.body for page in pages for live in require_items(page)])

    assert runs[0] == runs[1]


async def test_a_rollout_replaces_pods_and_lets_the_old_ones_end() -> None:
    stage = await a_shop()
    old = a_deployment("api", a_template("api", a_container(readinessProbe=a_probe())), replicas=2)
    await stage.create(old)
    await stage.at(20)

    new = a_template("api", a_container("app", "registry.example/app:2"))
    outcome = await stage.client.patch(Ref(DEPLOYMENT, "shop", "api"), {"spec": {"template": new}})
    await stage.at(60)

    assert isinstance(outcome, Success)
    pods = [
        require_body(Success(item))
        for item in require_items(await stage.client.page(Selection(POD, "shop")))
    ]
    images = [at(pod, "status", "containerStatuses") for pod in pods]
    assert len(pods) == 2
    assert all("app:2" in str(image) for image in images)
    assert await read_field(stage, DEPLOYMENT, "api", "status", "updatedReplicas") == 2


@pytest.mark.parametrize(("moment", "progressing"), [(50, "True"), (80, "False"), (200, "True")])
async def test_a_start_that_exceeds_the_deadline_fails_first_and_then_succeeds(
    moment: int, progressing: str
) -> None:
    stage = await a_shop(ContainerRule(ContainerSelector(name="api"), {"ready": Ms(120 * SECOND)}))
    probe = a_probe(periodSeconds=5, failureThreshold=60)
    template = a_template("api", a_container(startupProbe=probe))

    await stage.create(a_deployment("api", template, progressDeadlineSeconds=60))
    await stage.at(moment)

    conditions = await read_field(stage, DEPLOYMENT, "api", "status", "conditions")
    assert isinstance(conditions, list)
    by_name = {
        condition["type"]: condition["status"]
        for condition in conditions
        if isinstance(condition, dict)
    }
    assert by_name["Progressing"] == progressing


async def test_a_namespace_that_is_out_of_quota_gets_no_more_pods() -> None:
    stage = await a_shop()
    quota = an_object(Kind("", "v1", "ResourceQuota"), "few", spec={"hard": {"pods": "2"}})

    await stage.create(quota, a_deployment("api", a_template("api", a_container()), replicas=3))
    await stage.at(20)

    assert await read_field(stage, DEPLOYMENT, "api", "status", "readyReplicas") == 2
    (message,) = await stage.events("FailedCreate")
    assert "exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2" in message


async def test_a_namespace_is_deleted_when_its_pods_have_ended() -> None:
    stage = await a_shop()
    namespace = Ref(Kind("", "v1", "Namespace"), "", "shop")
    await stage.create(a_deployment("api", a_template("api", a_container()), replicas=2))
    await stage.at(10)

    await stage.client.delete(namespace)
    still = await stage.client.get(namespace)
    await stage.at(20)

    assert isinstance(still, Success)
    assert isinstance(await stage.client.get(namespace), NotFound)

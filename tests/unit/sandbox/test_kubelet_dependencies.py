"""What a pod needs to start: ConfigMaps, Secrets, volumes, claims."""

from __future__ import annotations

import pytest

from tests.support.objects import an_object
from tests.support.stage import Stage, a_container, a_pod, a_stage, at
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.times import Ms
from tidegate.sandbox.controllers.storage.claims import CLAIMS, CONSUMERS
from tidegate.sandbox.controllers.storage.volumes import VOLUMES, provisioner_controller

SECRET = Kind("", "v1", "Secret")
CONFIG_MAP = Kind("", "v1", "ConfigMap")
CLAIM = Kind("", "v1", "PersistentVolumeClaim")
CLASS = Kind("storage.k8s.io", "v1", "StorageClass")
STORAGE = (CLAIMS, CONSUMERS, VOLUMES, provisioner_controller(Ms(2_000)))

URL: Json = {"name": "URL", "valueFrom": {"secretKeyRef": {"name": "db", "key": "url"}}}
LEVEL: Json = {"name": "L", "valueFrom": {"configMapKeyRef": {"name": "app", "key": "level"}}}
MAYBE: Json = {
    "name": "URL",
    "valueFrom": {"secretKeyRef": {"name": "db", "key": "url", "optional": True}},
}


def a_secret(**data: str) -> JsonObject:
    return an_object(SECRET, "db", data={**data})


def a_pod_with(**parts: Json) -> JsonObject:
    return a_pod("web", a_container(**parts))


def a_pod_mounting(volume: JsonObject) -> JsonObject:
    return a_pod(volumes=[{"name": "settings", **volume}])


async def waiting_message(stage: Stage) -> Json:
    return at(await stage.container(), "state", "waiting", "message")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"env": [URL]}, 'secret "db" not found'),
        ({"env": [LEVEL]}, 'configmap "app" not found'),
        ({"envFrom": [{"secretRef": {"name": "db"}}]}, 'secret "db" not found'),
        ({"envFrom": [{"configMapRef": {"name": "app"}}]}, 'configmap "app" not found'),
    ],
)
async def test_a_container_without_its_settings_does_not_start(
    parts: JsonObject, message: str
) -> None:
    stage = await a_stage()
    await stage.create(a_pod_with(**parts))

    await stage.at(600)

    assert await stage.state() == "CreateContainerConfigError"
    assert await waiting_message(stage) == message
    assert await stage.phase() == "Pending"
    assert await stage.events("Failed") == [f"Error: {message}"]


async def test_a_key_that_is_missing_is_named() -> None:
    stage = await a_stage()
    await stage.create(a_secret(other="eA=="), a_pod_with(env=[URL]))

    await stage.at(5)

    assert await waiting_message(stage) == "couldn't find key url in Secret shop/db"


async def test_a_container_starts_when_its_settings_are_created() -> None:
    stage = await a_stage()
    await stage.create(a_pod_with(env=[URL]))
    await stage.at(30)

    await stage.create(a_secret(url="eA=="))
    held = await (await stage.at(32)).state()
    free = await (await stage.at(33)).state()

    assert (held, free) == ("CreateContainerConfigError", "running")
    assert at(await stage.container(), "restartCount") == 0


@pytest.mark.parametrize(
    "parts",
    [
        {"env": [MAYBE]},
        {"envFrom": [{"secretRef": {"name": "db", "optional": True}}]},
    ],
)
async def test_optional_settings_delay_nothing(parts: JsonObject) -> None:
    stage = await a_stage()
    await stage.create(a_pod_with(**parts))

    assert await (await stage.at(3)).phase() == "Running"


async def test_a_missing_pull_secret_delays_nothing() -> None:
    stage = await a_stage()
    await stage.create(a_pod(imagePullSecrets=[{"name": "registry"}]))

    assert await (await stage.at(3)).phase() == "Running"


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"secret": {"secretName": "db"}}, 'secret "db" not found'),
        ({"configMap": {"name": "app"}}, 'configmap "app" not found'),
        ({"projected": {"sources": [{"secret": {"name": "db"}}]}}, 'secret "db" not found'),
    ],
)
async def test_a_pod_without_its_volumes_starts_no_container(
    volume: JsonObject, message: str
) -> None:
    stage = await a_stage()
    await stage.create(a_pod_mounting(volume))

    await stage.at(300)

    assert await stage.state() == "ContainerCreating"
    assert await stage.condition("PodReadyToStartContainers") == "False"
    text = f'MountVolume.SetUp failed for volume "settings" : {message}'
    assert await stage.events("FailedMount") == [text]


async def test_a_pod_whose_volume_is_created_later_pulls_its_image_then() -> None:
    stage = await a_stage()
    await stage.create(a_pod_mounting({"secret": {"secretName": "db"}}))
    await stage.at(3)

    await stage.create(a_secret(url="eA=="))
    before = await (await stage.at(6)).state()
    after = await (await stage.at(7)).state()

    assert (before, after) == ("ContainerCreating", "running")


async def test_a_missing_item_of_a_volume_is_named() -> None:
    stage = await a_stage()
    items: Json = [{"key": "url", "path": "url"}]
    mounting = a_pod_mounting({"secret": {"secretName": "db", "items": items}})
    await stage.create(a_secret(other="eA=="), mounting)

    await stage.at(5)

    (event,) = await stage.events("FailedMount")
    assert event.endswith("references non-existent secret key: url")


def a_claim() -> JsonObject:
    spec: Json = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "fast",
    }
    return an_object(CLAIM, "data", spec=spec)


def a_class(mode: str) -> JsonObject:
    return an_object(CLASS, "fast", provisioner="example.com/disk", volumeBindingMode=mode)


STORING: JsonObject = {"persistentVolumeClaim": {"claimName": "data"}}


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([], 'persistentvolumeclaim "data" not found. not found'),
        ([a_claim()], "pod has unbound immediate PersistentVolumeClaims. not found"),
    ],
)
async def test_a_pod_without_its_claim_is_not_scheduled(
    objects: list[JsonObject], message: str
) -> None:
    stage = await a_stage(*STORAGE)
    await stage.create(*objects, a_pod_mounting(STORING))

    await stage.at(120)

    assert await stage.condition("PodScheduled") == "False"
    assert await stage.events("FailedScheduling") == [f"0/1 nodes are available: {message}"]
    assert await stage.phase() == "Pending"


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
async def test_a_pod_is_scheduled_when_its_claim_is_bound(mode: str) -> None:
    stage = await a_stage(*STORAGE)
    await stage.create(a_class(mode), a_claim(), a_pod_mounting(STORING))

    await stage.at(10)

    assert await stage.phase() == "Running"
    assert await stage.condition("PodScheduled") == "True"

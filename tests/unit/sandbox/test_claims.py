"""Claims and their volumes."""

from __future__ import annotations

import pytest

from tests.support.small_cluster import SmallCluster, an_object
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.kinds import CLAIM, VOLUME
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.storage.claims import CLAIMS, CONSUMERS, PROTECTED_CLAIMS
from tidegate.sandbox.controllers.storage.volumes import VOLUMES, provisioner_controller

DEFAULT: Json = {"storageclass.kubernetes.io/is-default-class": "true"}


async def a_cluster(provisioning: Ms = Ms(2 * SECOND)) -> SmallCluster:
    provisioner = provisioner_controller(provisioning)
    return await SmallCluster(CLAIMS, CONSUMERS, PROTECTED_CLAIMS, VOLUMES, provisioner).open()


def a_claim(**spec: Json) -> JsonObject:
    expected: Json = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}},
        **spec,
    }
    return an_object("v1", "PersistentVolumeClaim", "disk", spec=expected)


def a_class(name: str = "fast", mode: str = "Immediate", **parts: Json) -> JsonObject:
    return {
        **an_object("storage.k8s.io/v1", "StorageClass", name),
        "provisioner": "disks.example.com",
        "volumeBindingMode": mode,
        **parts,
    }


def a_volume(name: str, size: str) -> JsonObject:
    spec: Json = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "by-hand",
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": "/disks"},
    }
    return an_object("v1", "PersistentVolume", name, spec=spec)


def a_pod() -> JsonObject:
    volume: Json = {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}
    container: Json = {"name": "app", "image": "registry.example/app:1"}
    return an_object("v1", "Pod", "app", spec={"containers": [container], "volumes": [volume]})


async def test_a_claim_is_bound_when_its_volume_has_been_created() -> None:
    cluster = await a_cluster()
    await cluster.create(a_class())
    await cluster.create(a_claim(storageClassName="fast"))
    await cluster.until(Ms(SECOND))
    before = await cluster.status(CLAIM, "disk")

    await cluster.until(Ms(3 * SECOND))

    claim = await cluster.body(CLAIM, "disk")
    (volume,) = await cluster.all_of(VOLUME)
    assert before == {"phase": "Pending"}
    assert await cluster.status(CLAIM, "disk") == {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "10Gi"},
    }
    assert get_text(claim, "spec", "volumeName") == get_text(volume, "metadata", "name")
    assert get_text(volume, "metadata", "name") == f"pvc-{get_text(claim, 'metadata', 'uid')}"
    assert get_text(volume, "status", "phase") == "Bound"
    assert get_text(volume, "spec", "persistentVolumeReclaimPolicy") == "Delete"
    assert await cluster.reasons("disk") == ["ExternalProvisioning", "ProvisioningSucceeded"]


async def test_provisioning_takes_as_long_as_configured() -> None:
    cluster = await a_cluster(Ms(90 * SECOND))
    await cluster.create(a_class())
    await cluster.create(a_claim(storageClassName="fast"))

    await cluster.until(Ms(89 * SECOND))
    before = await cluster.status(CLAIM, "disk")
    await cluster.until(Ms(91 * SECOND))

    assert before["phase"] == "Pending"
    assert (await cluster.status(CLAIM, "disk"))["phase"] == "Bound"


async def test_a_claim_that_waits_for_its_first_consumer_is_bound_when_a_pod_is_created() -> None:
    cluster = await a_cluster()
    await cluster.create(a_class(mode="WaitForFirstConsumer"))
    await cluster.create(a_claim(storageClassName="fast"))
    await cluster.until(Ms(60 * SECOND))
    before, reasons = await cluster.status(CLAIM, "disk"), await cluster.reasons("disk")

    await cluster.create(a_pod())
    await cluster.until(Ms(63 * SECOND))

    assert before == {"phase": "Pending"}
    assert reasons == ["WaitForFirstConsumer"]
    assert (await cluster.status(CLAIM, "disk"))["phase"] == "Bound"


async def test_a_pod_may_be_created_before_the_claim_that_waits_for_it() -> None:
    cluster = await a_cluster()
    await cluster.create(a_class(mode="WaitForFirstConsumer"))
    await cluster.create(a_pod())
    await cluster.until(Ms(10 * SECOND))

    await cluster.create(a_claim(storageClassName="fast"))
    await cluster.until(Ms(13 * SECOND))

    assert (await cluster.status(CLAIM, "disk"))["phase"] == "Bound"


async def test_a_claim_of_a_missing_class_has_an_event_and_is_bound_when_the_class_is_created() -> (
    None
):
    cluster = await a_cluster()
    await cluster.create(a_claim(storageClassName="fast"))
    await cluster.until(Ms(30 * SECOND))
    before, reasons = await cluster.status(CLAIM, "disk"), await cluster.reasons("disk")

    await cluster.create(a_class())
    await cluster.until(Ms(33 * SECOND))

    assert before == {"phase": "Pending"}
    assert reasons == ["ProvisioningFailed"]
    assert (await cluster.status(CLAIM, "disk"))["phase"] == "Bound"


async def test_a_claim_without_a_class_waits_where_no_class_is_the_default() -> None:
    cluster = await a_cluster()
    await cluster.create(a_class())

    await cluster.create(a_claim())
    await cluster.until(Ms(30 * SECOND))

    assert await cluster.status(CLAIM, "disk") == {"phase": "Pending"}
    assert await cluster.reasons("disk") == ["FailedBinding"]


async def test_a_claim_without_a_class_gets_the_default_class() -> None:
    cluster = await a_cluster()
    await cluster.create(a_class("standard", metadata={"name": "standard", "annotations": DEFAULT}))

    await cluster.create(a_claim())
    await cluster.until(Ms(3 * SECOND))

    (volume,) = await cluster.all_of(VOLUME)
    assert get_text(volume, "spec", "storageClassName") == "standard"


async def test_a_claim_with_an_empty_class_does_not_get_the_default() -> None:
    cluster = await a_cluster()
    await cluster.create(a_class("standard", metadata={"name": "standard", "annotations": DEFAULT}))

    await cluster.create(a_claim(storageClassName=""))
    await cluster.until(Ms(30 * SECOND))

    assert await cluster.all_of(VOLUME) == []


async def test_a_claim_takes_the_smallest_volume_that_is_large_enough() -> None:
    cluster = await a_cluster()
    for name, size in (("small", "5Gi"), ("large", "1Ti"), ("fitting", "12G")):
        await cluster.create(a_volume(name, size))

    await cluster.create(a_claim(storageClassName="by-hand"))
    await cluster.until(Ms(SECOND))

    phases = {
        get_text(volume, "metadata", "name"): get_text(volume, "status", "phase")
        for volume in await cluster.all_of(VOLUME)
    }
    assert phases == {"fitting": "Bound", "large": "Available", "small": "Available"}
    assert (await cluster.status(CLAIM, "disk"))["capacity"] == {"storage": "12G"}


@pytest.mark.parametrize(("policy", "phases"), [("Delete", []), ("Retain", ["Released"])])
async def test_a_volume_is_released_by_the_policy_of_its_class(
    policy: str, phases: list[str]
) -> None:
    cluster = await a_cluster()
    await cluster.create(a_class(reclaimPolicy=policy))
    claim = await cluster.create(a_claim(storageClassName="fast"))
    await cluster.until(Ms(5 * SECOND))

    await cluster.client.delete(claim)
    await cluster.until(Ms(6 * SECOND))

    assert [get_text(item, "status", "phase") for item in await cluster.all_of(VOLUME)] == phases


async def test_a_claim_whose_volume_is_deleted_is_lost() -> None:
    cluster = await a_cluster()
    await cluster.create(a_volume("by-hand", "10Gi"))
    await cluster.create(a_claim(storageClassName="by-hand"))
    await cluster.until(Ms(SECOND))

    (volume,) = await cluster.all_of(VOLUME)
    await cluster.client.delete(await cluster.client.ref(volume))
    await cluster.until(Ms(2 * SECOND))

    assert await cluster.status(CLAIM, "disk") == {"phase": "Lost"}


async def test_a_claim_in_use_is_deleted_after_its_pod() -> None:
    cluster = await a_cluster()
    await cluster.create(a_class())
    claim = await cluster.create(a_claim(storageClassName="fast"))
    pod = await cluster.create(a_pod())
    await cluster.until(Ms(5 * SECOND))

    await cluster.client.delete(claim)
    await cluster.until(Ms(10 * SECOND))
    held = await cluster.body(CLAIM, "disk")
    await cluster.remove(pod)
    await cluster.until(Ms(11 * SECOND))

    assert get_text(held, "metadata", "deletionTimestamp") != ""
    assert await cluster.body(CLAIM, "disk") is None

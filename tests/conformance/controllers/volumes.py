"""Cases of PersistentVolumeClaims."""

from __future__ import annotations

from plane.groundwork import STORAGE_CLASS
from tests.support.trace_case import (
    Action,
    Apply,
    Case,
    Claim,
    Pause,
    Remove,
    Until,
    UntilGone,
    WatchedObject,
)
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.kinds import CLAIM
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND, Ms

DISK = WatchedObject(CLAIM, "disk")


def a_claim(**spec: Json) -> Apply:
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": DISK.name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
    }
    return Apply(body)


def a_class(name: str, mode: str) -> Apply:
    """A class whose volumes the test plane's controller manager makes itself, of folders."""
    body: JsonObject = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/host-path",
        "volumeBindingMode": mode,
    }
    return Apply(body)


def a_consumer() -> Apply:
    """A pod that mounts the claim."""
    volume: Json = {"name": "disk", "persistentVolumeClaim": {"claimName": DISK.name}}
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "consumer"},
        "spec": {
            "containers": [{"name": "app", "image": "registry.example/app:1"}],
            "volumes": [volume],
        },
    }
    return Apply(body)


def a_volume(name: str, size: str, class_name: str) -> Apply:
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/disks"},
        },
    }
    return Apply(body)


def is_in(phase: str) -> Claim:
    return lambda body: get_text(body, "status", "phase") == phase


def _case(name: str, *actions: Action) -> Case:
    return Case(f"claim-{name}", (DISK,), actions)


PENDING = (Until(DISK, is_in("Pending")), Pause(Ms(2 * SECOND)))
BOUND = Until(DISK, is_in("Bound"))

VOLUMES = (
    _case("wants-no-class", a_claim(storageClassName=""), *PENDING),
    _case("of-a-class-that-is-missing", a_claim(storageClassName="missing"), *PENDING),
    _case("of-the-default-class", Apply({**STORAGE_CLASS}), a_claim(), BOUND),
    _case(
        "is-met-at-once",
        a_class("at-once", "Immediate"),
        a_claim(storageClassName="at-once"),
        BOUND,
    ),
    _case(
        "waits-for-a-pod",
        a_class("later", "WaitForFirstConsumer"),
        a_claim(storageClassName="later"),
        *PENDING,
        a_consumer(),
        BOUND,
    ),
    _case(
        "takes-a-volume-that-is-there",
        # Volumes belong to no namespace: enough of them for every run of the case.
        *(a_volume(f"by-hand-{number}", "2Gi", "by-hand") for number in range(9)),
        a_claim(storageClassName="by-hand"),
        BOUND,
    ),
    _case(
        "is-deleted",
        a_class("soon-over", "Immediate"),
        a_claim(storageClassName="soon-over"),
        BOUND,
        Remove(DISK),
        UntilGone(DISK),
    ),
)

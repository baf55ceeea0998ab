"""Facts about a running cluster, as a table: objects to apply, and the expected results.

Each fact is visible through the API alone, so a real server can be tested too. An object is written
as in a repository; `{namespace}` is replaced with the namespace of the test.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.support.objects import (
    DEPLOYMENT,
    JOB,
    POD,
    PVC,
    REPLICA_SET,
    STATEFUL_SET,
    a_claim,
    a_container,
    a_deployment,
    a_job,
    a_stateful_set,
    an_object,
)
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind

DAEMON_SET = Kind("apps", "v1", "DaemonSet")
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass")
LABELS: JsonObject = {"matchLabels": {"app": "web"}}


class ExpectedEvent(NamedTuple):
    """An Event about an object: its type, its reason, and how its message ends."""

    type: str
    reason: str
    message: str


class Fact(NamedTuple):
    """Of these objects, the one of this kind says so: a phase, a condition, an Event, or several.

    A condition is its type, its status, its reason and how its message ends.
    """

    name: str
    given: tuple[JsonObject, ...]
    kind: Kind
    phase: str = ""
    condition: tuple[str, str, str, str] = ("", "", "", "")
    event: ExpectedEvent | None = None


def a_pod(name: str = "web", **spec: Json) -> JsonObject:
    return an_object(POD, name, spec={"containers": [a_container("app")], **spec})


def a_template(**spec: Json) -> JsonObject:
    pod: JsonObject = {"containers": [a_container("app")], **spec}
    return {"metadata": {"labels": {"app": "web"}}, "spec": pod}


def a_set(kind: Kind, template: JsonObject) -> JsonObject:
    """A ReplicaSet or a DaemonSet."""
    return an_object(kind, "web", spec={"selector": LABELS, "template": template})


def a_pod_with_claim() -> JsonObject:
    volume: Json = {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}
    return a_pod(volumes=[volume])


def a_late_class() -> JsonObject:
    parts: JsonObject = {
        "provisioner": "kubernetes.io/host-path",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    return an_object(STORAGE_CLASS, "later", **parts)


BUILDER = a_template(serviceAccountName="builder")
NO_BUILDER = (
    "is forbidden: error looking up service account {namespace}/builder: "
    'serviceaccount "builder" not found'
)
FAILED_CREATE = ExpectedEvent("Warning", "FailedCreate", NO_BUILDER)
REPLICA_FAILURE = ("ReplicaFailure", "True", "FailedCreate", NO_BUILDER)
UNBOUND = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
NO_CLAIM = '0/1 nodes are available: persistentvolumeclaim "disk" not found. not found'
NO_CLASS = ExpectedEvent(
    "Warning", "ProvisioningFailed", 'storageclass.storage.k8s.io "missing" not found'
)
NO_CONSUMER = ExpectedEvent(
    "Normal", "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
)


def refused(kind: Kind, body: JsonObject) -> Fact:
    return Fact(f"{kind.name}-without-its-account", (body,), kind, event=FAILED_CREATE)


def unscheduled(name: str, message: str, *given: JsonObject) -> Fact:
    condition = ("PodScheduled", "False", "Unschedulable", message)
    event = ExpectedEvent("Warning", "FailedScheduling", message)
    return Fact(name, (*given, a_pod_with_claim()), POD, "Pending", condition, event)


FACTS = (
    refused(REPLICA_SET, a_set(REPLICA_SET, BUILDER))._replace(condition=REPLICA_FAILURE),
    refused(DAEMON_SET, a_set(DAEMON_SET, BUILDER)),
    refused(STATEFUL_SET, a_stateful_set("web", template=BUILDER)),
    refused(
        JOB,
        a_job("web", template=a_template(serviceAccountName="builder", restartPolicy="Never")),
    ),
    Fact(
        "Deployment-without-its-account",
        (a_deployment(template=BUILDER),),
        DEPLOYMENT,
        condition=REPLICA_FAILURE,
    ),
    Fact(
        "a-priority-that-is-missing",
        (a_set(REPLICA_SET, a_template(priorityClassName="critical")),),
        REPLICA_SET,
        condition=(
            "ReplicaFailure",
            "True",
            "FailedCreate",
            "is forbidden: no PriorityClass with name critical was found",
        ),
    ),
    Fact(
        "a-runtime-that-is-missing",
        (a_set(REPLICA_SET, a_template(runtimeClassName="sealed")),),
        REPLICA_SET,
        condition=(
            "ReplicaFailure",
            "True",
            "FailedCreate",
            'is forbidden: pod rejected: RuntimeClass "sealed" not found',
        ),
    ),
    unscheduled("a-claim-that-is-missing", NO_CLAIM),
    unscheduled("a-claim-that-is-not-bound", UNBOUND, a_claim(storageClassName="missing")),
    Fact(
        "a-class-that-is-missing",
        (a_claim("web", storageClassName="missing"),),
        PVC,
        "Pending",
        event=NO_CLASS,
    ),
    Fact(
        "a-class-that-waits-for-a-pod",
        (a_late_class(), a_claim("web", storageClassName="later")),
        PVC,
        "Pending",
        event=NO_CONSUMER,
    ),
    Fact(
        "a-pull-secret-that-is-missing-is-no-reason-not-to-be-placed",
        (a_pod(imagePullSecrets=[{"name": "missing"}]),),
        POD,
        condition=("PodScheduled", "True", "", ""),
    ),
)


def holds(fact: Fact, body: JsonObject, namespace: str) -> bool:
    """Whether an object's status says what the fact says."""
    if fact.phase and get_text(body, "status", "phase") != fact.phase:
        return False
    name, status, reason, message = fact.condition
    if not name:
        return True
    ending = message.format(namespace=namespace)
    return any(
        (get_text(condition, "type"), get_text(condition, "status"), get_text(condition, "reason"))
        == (name, status, reason)
        and get_text(condition, "message").endswith(ending)
        for condition in get_mappings(body, "status", "conditions")
    )


def is_about(event: JsonObject, fact: Fact) -> bool:
    involved = (
        get_text(event, "involvedObject", "kind"),
        get_text(event, "involvedObject", "name"),
    )
    return involved == (fact.kind.name, "web")


def is_expected_event(text: ExpectedEvent, event: JsonObject, namespace: str) -> bool:
    words = (get_text(event, "type"), get_text(event, "reason"))
    ending = text.message.format(namespace=namespace)
    return words == (text.type, text.reason) and get_text(event, "message").endswith(ending)

"""Promises about what else a write through `status` changes, and what a new pod's status says."""

from __future__ import annotations

import pytest

from tests.contract.test_definitions import a_served_gate, group_of, is_established
from tests.contract.test_pods import ACCOUNT, is_there
from tests.support.cluster_client import ClusterClient, require_body, require_live
from tests.support.objects import (
    DEPLOYMENT,
    POD,
    REPLICA_SET,
    a_claim,
    a_config_map,
    a_container,
    a_definition,
    a_deployment,
    a_gate,
    a_job,
    a_pod_template,
    a_service,
    a_stateful_set,
    an_object,
    at,
    labelled,
    owned_by,
)
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.world.messages import Invalid, Success
from tidegate.world.requests import PatchType

AUTOSCALER = Kind("autoscaling", "v2", "HorizontalPodAutoscaler")
OLD_AUTOSCALER = Kind("autoscaling", "v1", "HorizontalPodAutoscaler")
BUDGET = Kind("policy", "v1", "PodDisruptionBudget")
CRON_JOB = Kind("batch", "v1", "CronJob")
INGRESS = Kind("networking.k8s.io", "v1", "Ingress")
NOTES: JsonObject = {"metadata": {"labels": {"new": "label"}, "annotations": {"new": "note"}}}


async def written(
    client: ClusterClient, body: JsonObject, change: JsonObject = NOTES
) -> JsonObject:
    """An object after such a change through its status."""
    ref = require_live(await client.create(body)).ref
    return require_body(await client.patch(ref, change, subresource="status"))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(a_stateful_set(replicas=0), id="StatefulSet"),
        pytest.param(a_service(), id="Service"),
        pytest.param(a_claim(), id="PersistentVolumeClaim"),
        pytest.param(a_job(suspend=True), id="Job"),
    ],
)
async def test_metadata_of_most_kinds_is_changed_through_their_status(
    client: ClusterClient, body: JsonObject
) -> None:
    changed = await written(client, body)

    assert at(changed, "metadata", "labels", "new") == "label"
    assert at(changed, "metadata", "annotations", "new") == "note"


async def test_a_deployment_takes_annotations_through_its_status_and_no_labels(
    client: ClusterClient,
) -> None:
    changed = await written(client, labelled(a_deployment(replicas=0), app="shop"))

    assert at(changed, "metadata", "labels") == {"app": "shop"}
    assert at(changed, "metadata", "annotations", "new") == "note"


async def test_an_annotation_increases_the_generation_of_a_deployment_unless_its_status_is_written(
    client: ClusterClient,
) -> None:
    ref = require_live(await client.create(a_deployment(replicas=0))).ref

    through = require_live(await client.patch(ref, NOTES, subresource="status"))
    both = require_live(await client.patch(ref, {"metadata": {"annotations": {"new": "other"}}}))
    label = require_live(await client.patch(ref, {"metadata": {"labels": {"new": "label"}}}))

    assert (through.generation, both.generation, label.generation) == (1, 2, 2)


async def test_an_annotation_does_not_increase_the_generation_of_other_kinds(
    client: ClusterClient,
) -> None:
    ref = require_live(await client.create(a_stateful_set(replicas=0))).ref

    noted = require_live(await client.patch(ref, NOTES))

    assert noted.generation == 1


async def test_annotations_can_be_applied_through_a_deployments_status(
    client: ClusterClient,
) -> None:
    require_live(await client.create(a_deployment(replicas=0)))
    notes: JsonObject = {"name": "web", "annotations": {"new": "note"}, "labels": {"new": "label"}}
    intent: JsonObject = {**an_object(DEPLOYMENT, "web"), "metadata": notes}

    applied = require_body(await client.apply(intent, subresource="status", manager="operator"))

    assert at(applied, "metadata", "annotations", "new") == "note"
    assert at(applied, "metadata", "labels") is None


async def test_a_kind_of_a_definition_takes_nothing_but_its_status(client: ClusterClient) -> None:
    kind = await a_served_gate(client)

    changed = await written(client, a_gate(kind.group), {**NOTES, "status": {"open": True}})

    assert at(changed, "status", "open") is True
    assert at(changed, "metadata", "labels") is None
    assert at(changed, "metadata", "annotations") is None


async def test_owners_of_a_pod_are_not_changed_through_its_status(client: ClusterClient) -> None:
    owner = require_body(await client.create(a_config_map("owner")))
    owned = owned_by(await a_pod(client), owner=owner)

    changed = await written(
        client, owned, {"metadata": {"ownerReferences": None, "annotations": {"new": "note"}}}
    )

    assert at(changed, "metadata", "ownerReferences", 0, "name") == "owner"
    assert at(changed, "metadata", "annotations", "new") == "note"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param({}, "BestEffort", id="nothing"),
        pytest.param({"requests": {"example.org/gpu": "1"}, "limits": {"example.org/gpu": "1"}},
                     "BestEffort", id="other-resources"),
        pytest.param({"requests": {"cpu": "100m"}}, "Burstable", id="some-requests"),
        pytest.param({"limits": {"cpu": "1"}}, "Burstable", id="a-limit-for-one"),
        pytest.param({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed", id="limits-alone"),
        pytest.param(
            {
                "requests": {"cpu": "0.5", "memory": "1Gi"},
                "limits": {"cpu": "500m", "memory": "1024Mi"},
            },
            "Guaranteed",
            id="the-same-in-other-words",
        ),
        pytest.param(
            {"requests": {"cpu": "100m"}, "limits": {"cpu": "1", "memory": "1Gi"}},
            "Burstable",
            id="less-than-the-limit",
        ),
    ],
)  # fmt: skip
async def test_a_new_pod_has_a_qos_class(
    client: ClusterClient, resources: JsonObject, expected: str
) -> None:
    pod = await a_pod(client, resources)

    made = require_body(await client.create(pod))

    assert at(made, "status", "qosClass") == expected


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        pytest.param({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed", id="limits"),
        pytest.param({"requests": {"cpu": "1"}}, "Burstable", id="a-request"),
    ],
)
async def test_pod_level_resources_determine_the_qos_class(
    client: ClusterClient, whole: JsonObject, expected: str
) -> None:
    pod = await a_pod(client)
    containers = at(pod, "spec", "containers")

    made = require_body(
        await client.create(
            {
                **pod,
                "spec": {"containers": containers, "resources": whole, "schedulerName": "nobody"},
            }
        )
    )

    assert at(made, "status", "qosClass") == expected


async def test_a_pod_keeps_its_class_when_its_status_is_replaced(client: ClusterClient) -> None:
    ref = require_live(await client.create(await a_pod(client))).ref
    whole: list[Json] = [{"op": "add", "path": "/status", "value": {"phase": "Running"}}]

    changed = require_body(
        await client.patch(ref, whole, subresource="status", patch_type=PatchType.JSON)
    )

    assert at(changed, "status") == {"phase": "Running", "qosClass": "BestEffort"}


async def a_pod(client: ClusterClient, resources: JsonObject | None = None) -> JsonObject:
    """A pod without a node, when its namespace has a service account."""
    await client.settled(Ref(ACCOUNT, client.namespace, "default"), is_there)
    container: JsonObject = {**a_container("app"), "resources": resources or {}}
    return an_object(POD, "web", spec={"containers": [container], "schedulerName": "nobody"})


CRON: JsonObject = {
    "schedule": "0 0 1 1 *",
    "jobTemplate": {
        "spec": {
            "template": {"spec": {"restartPolicy": "Never", "containers": [a_container("cron")]}}
        }
    },
}
CHOSEN: JsonObject = {"matchLabels": {"app": "web"}}
SET: JsonObject = {"selector": CHOSEN, "template": a_pod_template()}
SCALING: JsonObject = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    "maxReplicas": 3,
}
BACKEND: JsonObject = {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(a_deployment(), {}, id="Deployment"),
        pytest.param(a_stateful_set(), {"replicas": 0, "availableReplicas": 0}, id="StatefulSet"),
        pytest.param(a_job(), {}, id="Job"),
        pytest.param(an_object(CRON_JOB, "cron", spec=CRON), {}, id="CronJob"),
        pytest.param(an_object(INGRESS, "web", spec=BACKEND), {"loadBalancer": {}}, id="Ingress"),
        pytest.param(a_service(), {"loadBalancer": {}}, id="Service"),
        pytest.param(a_claim(), {"phase": "Pending"}, id="PersistentVolumeClaim"),
        pytest.param(an_object(REPLICA_SET, "web", spec=SET), {"replicas": 0}, id="ReplicaSet"),
        pytest.param(
            an_object(AUTOSCALER, "web", spec=SCALING),
            {"currentMetrics": None, "desiredReplicas": 0},
            id="HorizontalPodAutoscaler",
        ),
        pytest.param(
            an_object(OLD_AUTOSCALER, "web", spec=SCALING),
            {"currentReplicas": 0, "desiredReplicas": 0},
            id="HorizontalPodAutoscaler-v1",
        ),
        pytest.param(
            an_object(BUDGET, "web", spec={"minAvailable": 1, "selector": CHOSEN}),
            {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
            id="PodDisruptionBudget",
        ),
    ],
)
async def test_a_new_object_has_the_required_fields_of_its_status(
    client: ClusterClient, body: JsonObject, status: JsonObject
) -> None:
    created = require_body(await client.create(body))

    assert created["status"] == status


async def a_gate_with_a_typed_status(client: ClusterClient) -> str:
    """The group of a kind whose status has a field of a type, served."""
    group = group_of(client)
    definition = a_definition(group)
    status: Json = {"type": "object", "properties": {"open": {"type": "boolean"}}}
    version = at(definition, "spec", "versions")
    assert isinstance(version, list)
    properties = at(version[0], "schema", "openAPIV3Schema", "properties")
    assert isinstance(properties, dict)
    properties["status"] = status
    known = require_live(await client.create(definition))
    await client.settled(known.ref, is_established)
    await client.eventually(
        lambda: client.create(a_gate(group, "probe"), dry_run=True),
        lambda outcome: isinstance(outcome, Success),
    )
    return group


async def test_a_null_in_the_status_of_a_kind_with_a_subresource_is_ignored(
    client: ClusterClient,
) -> None:
    group = await a_gate_with_a_typed_status(client)
    wrong: JsonObject = {"status": {"open": None}}

    created = await client.create({**a_gate(group, "created"), **wrong})
    applied = await client.apply({**a_gate(group, "applied"), **wrong}, force=True)

    assert "status" not in require_body(created)
    assert "status" not in require_body(applied)


async def test_a_null_that_is_applied_to_a_status_is_refused(client: ClusterClient) -> None:
    group = await a_gate_with_a_typed_status(client)
    require_live(await client.create(a_gate(group)))
    wrong: JsonObject = {**a_gate(group), "status": {"open": None}}

    through = await client.apply(wrong, subresource="status", manager="operator", force=True)

    assert isinstance(through, Invalid)
    assert [cause.field for cause in through.causes] == ["status.open"]

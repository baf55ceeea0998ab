from __future__ import annotations

import msgspec
import pytest

from tests.support.builders import make_object
from tests.support.cluster_client import ClusterClient, require_body
from tests.support.live_objects import fields_of
from tests.support.objects import a_config_map, a_namespace
from tests.support.takeover import OURS, take_over
from tests.support.worlds import sandbox_world
from tidegate.model.k8s.json_fields import get_mapping, get_value
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.change import DiffAction
from tidegate.plan.diff.adoption import adopted_managers, adoption_patch
from tidegate.plan.diff.compare import compare
from tidegate.plan.diff.last_applied import LAST_APPLIED
from tidegate.plan.diff.owned_fields import managed_entries
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import Conflict
from tidegate.world.requests import PatchType
from tidegate.world.resilient import ResilientWorld


async def make_client() -> ClusterClient:
    dispatcher = Dispatcher(ResilientWorld(sandbox_world()))
    await ClusterClient(dispatcher).create(a_namespace("shop"))
    return ClusterClient(dispatcher, namespace="shop")


def an_entry(manager: str, fields: JsonObject, **parts: Json) -> JsonObject:
    head: JsonObject = {"manager": manager, "operation": "Update", "apiVersion": "v1"}
    return {**head, "fieldsType": "FieldsV1", "fieldsV1": fields, **parts}


def owned_by(*entries: JsonObject) -> JsonObject:
    metadata: JsonObject = {"name": "web", "resourceVersion": "7", "managedFields": [*entries]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@pytest.mark.parametrize(
    "manager", ["kubectl-client-side-apply", "helm", "argocd-controller", "kustomize-controller"]
)
async def test_fields_of_an_adopted_manager_are_removed(manager: str) -> None:
    taken = await take_over(await make_client(), from_manager=manager)

    assert taken.managers == (manager,)
    assert [field.path for field in taken.foreseen.fields] == [
        "metadata.labels.team",
        "spec.minReadySeconds",
    ]
    assert get_value(taken.live, "spec", "minReadySeconds") is None
    assert get_value(taken.live, "metadata", "labels") == {"tier": "front"}
    assert LAST_APPLIED not in get_mapping(taken.live, "metadata", "annotations")
    assert taken.after.action is DiffAction.KEEP


@pytest.mark.parametrize("manager", ["kubectl-client-side-apply", "argocd-controller"])
@pytest.mark.parametrize(
    ("spec", "defaults"),
    [
        ({"podSelector": {}}, {"policyTypes": ["Ingress"]}),
        ({"backoffLimit": 0}, {"completions": 1, "parallelism": 1}),
    ],
)
def test_defaults_that_a_client_side_apply_owns_are_not_removed(
    manager: str, spec: JsonObject, defaults: JsonObject
) -> None:
    desired = make_object("example.org/v1 Thing", "all", spec=spec)
    live = client_side_applied(desired, manager, **defaults)

    difference = compare(desired, live, manager=OURS)

    assert (difference.fields, difference.immutable_fields) == ((), ())
    assert difference.changes_ownership
    adopted = msgspec.json.decode(adoption_patch(live, OURS) or b"[]")[0]["value"]
    assert adopted[0]["fieldsV1"] == {"f:spec": {f"f:{name}": {} for name in spec}}


def test_a_field_that_a_client_side_apply_sent_is_removed_with_its_manifest() -> None:
    before = make_object("example.org/v1 Thing", "all", spec={"color": "red", "size": 1})
    live = client_side_applied(before, "argocd-controller", policy="Default")

    difference = compare(
        make_object("example.org/v1 Thing", "all", spec={"color": "red"}), live, manager=OURS
    )

    assert [field.path for field in difference.fields] == ["spec.size"]


@pytest.mark.parametrize(
    ("spec", "removed"), [({}, []), ({"parallelism": 1}, ["spec.completions"])]
)
def test_the_completions_of_a_job_are_a_default_only_without_parallelism(
    spec: JsonObject, removed: list[str]
) -> None:
    entry = an_entry("helm", {"f:spec": {"f:completions": {}, "f:parallelism": {}}})
    live = make_object("batch/v1 Job", "once", spec={"completions": 1, "parallelism": 1})
    live["metadata"] = {**get_mapping(live, "metadata"), "managedFields": [entry]}

    difference = compare(make_object("batch/v1 Job", "once", spec=spec), live, manager=OURS)

    assert [field.path for field in difference.fields] == removed


def client_side_applied(body: JsonObject, manager: str, **defaults: Json) -> JsonObject:
    """An object of a client-side apply, whose manager also owns the defaults of the server."""
    spec: JsonObject = {**get_mapping(body, "spec"), **defaults}
    notes: JsonObject = {LAST_APPLIED: msgspec.json.encode(body).decode()}
    entry = an_entry(
        manager,
        {
            "f:metadata": {"f:annotations": {f"f:{LAST_APPLIED}": {}}},
            "f:spec": {f"f:{name}": {} for name in spec},
        },
    )
    metadata: JsonObject = {
        **get_mapping(body, "metadata"),
        "annotations": notes,
        "resourceVersion": "7",
        "managedFields": [entry],
    }
    return {**body, "metadata": metadata, "spec": spec}


async def test_without_adoption_the_fields_stay() -> None:
    client = await make_client()
    old = a_config_map(color="red", size="m")
    await client.create(old, manager="kubectl-client-side-apply")

    after = require_body(await client.apply(a_config_map(color="red"), force=True))

    assert after["data"] == {"color": "red", "size": "m"}


async def test_an_object_that_changed_meanwhile_is_not_taken_over() -> None:
    client = await make_client()
    live = require_body(await client.create(a_config_map(color="red"), manager="helm"))
    ref = await client.ref(live)
    patch = adoption_patch(live, OURS)
    assert patch is not None
    await client.patch(ref, {"data": {"size": "m"}}, manager="anna")

    operations: list[Json] = msgspec.json.decode(patch)
    outcome = await client.patch(ref, operations, patch_type=PatchType.JSON, manager=OURS)

    assert isinstance(outcome, Conflict)


def test_managers_of_kubectl_argo_cd_and_flux_are_adopted() -> None:
    names = ["anna", "before-first-apply", "Helm", "helm-controller", "kubectl", "kubectl-edit"]

    managers = adopted_managers(owned_by(*(an_entry(name, {}) for name in names)), OURS)

    assert managers == tuple(sorted(names[1:]))


def test_fields_of_a_subresource_keep_their_manager() -> None:
    live = owned_by(an_entry("kubectl", {"f:status": {}}, subresource="status"))

    assert adopted_managers(live, OURS) == ()
    assert adoption_patch(live, OURS) is None


def test_updates_of_our_manager_are_adopted_and_applies_are_ours() -> None:
    applied = an_entry("argocd-controller", {"f:data": {"f:a": {}}}, operation="Apply")
    updated = an_entry("argocd-controller", {"f:data": {".": {}, "f:b": {}}})

    assert adopted_managers(owned_by(applied), "argocd-controller") == ()
    assert adopted_managers(owned_by(applied, updated), "argocd-controller") == (
        "argocd-controller",
    )


def test_adopted_entries_are_merged_and_others_are_unchanged() -> None:
    live = owned_by(
        an_entry(OURS, {"f:data": {"f:a": {}}}, operation="Apply", time="2026-01-01T00:00:00Z"),
        an_entry("helm", {"f:data": {".": {}, "f:b": {}}}, time="2026-01-02T00:00:00Z"),
        an_entry("anna", {"f:data": {"f:c": {}}}),
    )

    patch: list[Json] = msgspec.json.decode(adoption_patch(live, OURS) or b"[]")

    value = get_value(patch[0], "value")
    merged: JsonObject = {"metadata": {"managedFields": value}}
    assert [entry["manager"] for entry in managed_entries(merged)] == [OURS, "anna"]
    assert fields_of(merged, OURS) == {"f:data": {".": {}, "f:a": {}, "f:b": {}}}
    assert managed_entries(merged)[0]["time"] == "2026-01-02T00:00:00Z"
    assert get_value(patch[1], "value") == "7"


def test_the_status_of_an_application_keeps_its_manager() -> None:
    status: Json = {"f:sync": {"f:status": {}}}
    entry = an_entry("argocd-application-controller", {"f:status": status, "f:operation": {}})
    mixed = an_entry(
        "argocd-application-controller",
        {"f:status": status, "f:metadata": {"f:annotations": {"f:note": {}}}},
    )

    assert adoption_patch(owned_by(entry), OURS) is None
    assert adopted_managers(owned_by(entry), OURS) == ()
    patch = adoption_patch(owned_by(mixed), OURS)
    assert patch is not None
    (ours, left) = msgspec.json.decode(patch)[0]["value"]
    assert ours["manager"] == OURS
    assert set(ours["fieldsV1"]) == {"f:metadata"}
    assert (left["manager"], left["fieldsV1"]) == (
        "argocd-application-controller",
        {"f:status": status},
    )


def test_helm_metadata_stays_with_its_manager() -> None:
    annotations: Json = {
        "f:meta.helm.sh/release-name": {},
        "f:meta.helm.sh/release-namespace": {},
        "f:team": {},
    }
    labels: Json = {".": {}, "f:app.kubernetes.io/managed-by": {}, "f:tier": {}}
    metadata: Json = {"f:annotations": annotations, "f:labels": labels}
    live = owned_by(an_entry("helm", {"f:metadata": metadata, "f:data": {"f:color": {}}}))

    patch = msgspec.json.decode(adoption_patch(live, OURS) or b"[]")
    ours, theirs = patch[0]["value"]

    assert ours["manager"] == OURS
    assert ours["fieldsV1"]["f:metadata"] == {
        "f:annotations": {"f:team": {}},
        "f:labels": {".": {}, "f:tier": {}},
    }
    assert theirs["manager"] == "helm"
    assert theirs["fieldsV1"] == {
        "f:metadata": {
            "f:annotations": {
                "f:meta.helm.sh/release-name": {},
                "f:meta.helm.sh/release-namespace": {},
            },
            "f:labels": {"f:app.kubernetes.io/managed-by": {}},
        }
    }
    assert adopted_managers(owned_by(theirs), OURS) == ()

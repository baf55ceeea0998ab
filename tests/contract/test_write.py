"""Promises about replace, patch, generation, status and dry runs."""

from __future__ import annotations

from tests.support.cluster_client import ClusterClient, require_body, require_live
from tests.support.objects import (
    CONFIG_MAP,
    SECRET,
    a_config_map,
    a_deployment,
    a_job,
    a_pod_template,
    a_service,
    an_object,
    at,
    labelled,
)
from tidegate.model.k8s.objects import JsonObject, Ref
from tidegate.world.messages import Cause, Conflict, Invalid, NotFound, Success
from tidegate.world.requests import PatchType

UNKNOWN_FIELD = Cause("spec.replicsa", "unknown", "unknown field")


async def test_replacing_with_a_version_that_is_past_is_a_conflict(client: ClusterClient) -> None:
    created = await client.create(a_config_map(color="blue"))
    await client.apply(a_config_map(color="red"), force=True)

    outcome = await client.replace({**require_body(created), "data": {"color": "green"}})

    assert isinstance(outcome, Conflict)
    assert outcome.owners == ()


async def test_replacing_puts_the_whole_object_in_its_place(client: ClusterClient) -> None:
    created = await client.create(a_config_map(color="blue", size="big"))

    outcome = await client.replace({**require_body(created), "data": {"color": "green"}})

    assert require_body(outcome)["data"] == {"color": "green"}


async def test_replacing_with_what_is_there_keeps_the_version(client: ClusterClient) -> None:
    created = await client.create(a_config_map(color="blue"))

    outcome = await client.replace(require_body(created))

    assert require_live(outcome).resource_version == require_live(created).resource_version


async def test_replacing_a_missing_object_is_not_found(client: ClusterClient) -> None:
    assert isinstance(await client.replace(a_config_map()), NotFound)


async def test_a_merge_patch_changes_what_it_names_and_removes_what_it_nulls(
    client: ClusterClient,
) -> None:
    ref = require_live(await client.create(a_config_map(color="blue", size="big"))).ref

    outcome = await client.patch(ref, {"data": {"color": "red", "size": None}})

    assert require_body(outcome)["data"] == {"color": "red"}


async def test_a_json_patch_does_its_operations(client: ClusterClient) -> None:
    ref = require_live(await client.create(a_config_map(color="blue"))).ref
    operations: list[JsonObject] = [{"op": "replace", "path": "/data/color", "value": "red"}]

    outcome = await client.patch(ref, [*operations], patch_type=PatchType.JSON)

    assert require_body(outcome)["data"] == {"color": "red"}


async def test_a_json_patch_whose_test_fails_changes_nothing(client: ClusterClient) -> None:
    created = require_live(await client.create(a_config_map(color="blue")))
    operations: list[JsonObject] = [
        {"op": "test", "path": "/data/color", "value": "green"},
        {"op": "remove", "path": "/data/color"},
    ]

    outcome = await client.patch(created.ref, [*operations], patch_type=PatchType.JSON)

    assert isinstance(outcome, Invalid)
    assert require_live(await client.get(created.ref)).resource_version == created.resource_version


async def test_patching_a_missing_object_is_not_found(client: ClusterClient) -> None:
    outcome = await client.patch(Ref(CONFIG_MAP, client.namespace, "nobody"), {"data": {"a": "b"}})

    assert isinstance(outcome, NotFound)


async def test_a_patch_with_the_uid_of_another_life_is_a_conflict(client: ClusterClient) -> None:
    created = require_live(await client.create(a_config_map(color="blue")))

    outcome = await client.patch(created.ref, {"data": {"color": "red"}}, uid="another-life")

    assert isinstance(outcome, Conflict)
    assert require_live(await client.get(created.ref)).resource_version == created.resource_version


async def test_generation_starts_at_one_and_increases_with_the_spec(client: ClusterClient) -> None:
    first = require_live(await client.apply(a_deployment(replicas=0)))

    second = require_live(await client.apply(a_deployment(replicas=0, minReadySeconds=5)))

    assert (first.generation, second.generation) == (1, 2)


async def test_generation_does_not_rise_with_labels(client: ClusterClient) -> None:
    first = require_live(await client.apply(a_deployment(replicas=0)))

    second = require_live(await client.apply(labelled(a_deployment(replicas=0), team="blue")))

    assert second.resource_version != first.resource_version
    assert second.generation == first.generation


async def test_generation_does_not_rise_when_nothing_changes(client: ClusterClient) -> None:
    await client.apply(a_deployment(replicas=0))

    again = require_live(await client.apply(a_deployment(replicas=0)))

    assert again.generation == 1


async def test_kinds_without_a_generation_have_zero(client: ClusterClient) -> None:
    assert require_live(await client.apply(a_config_map())).generation == 0
    assert require_live(await client.apply(a_service())).generation == 0


async def test_status_is_written_through_its_own_subresource_and_does_not_raise_generation(
    client: ClusterClient,
) -> None:
    ref = require_live(await client.apply(a_deployment(replicas=0, paused=True))).ref

    outcome = await client.patch(
        ref, {"status": {"replicas": 7}, "spec": {"replicas": 3}}, subresource="status"
    )

    assert at(require_body(outcome), "status", "replicas") == 7
    assert at(require_body(outcome), "spec", "replicas") == 0
    assert require_live(outcome).generation == 1


async def test_status_is_ignored_when_the_object_itself_is_written(client: ClusterClient) -> None:
    claimed: JsonObject = {**a_deployment(replicas=0), "status": {"replicas": 7}}

    outcome = await client.create(claimed)

    assert at(require_body(outcome), "status", "replicas") is None


async def test_a_dry_run_returns_the_result_and_changes_nothing(client: ClusterClient) -> None:
    outcome = await client.apply(a_config_map(color="blue"), dry_run=True)

    assert require_body(outcome)["data"] == {"color": "blue"}
    assert isinstance(await client.get(require_live(outcome).ref), NotFound)


async def test_a_dry_run_of_a_change_keeps_the_live_object(client: ClusterClient) -> None:
    before = require_live(await client.apply(a_config_map(color="blue")))

    outcome = await client.apply(a_config_map(color="red"), dry_run=True)

    assert require_body(outcome)["data"] == {"color": "red"}
    assert require_live(await client.get(before.ref)).resource_version == before.resource_version


async def test_a_dry_run_of_a_deletion_keeps_the_live_object(client: ClusterClient) -> None:
    before = require_live(await client.apply(a_config_map()))

    outcome = await client.delete(before.ref, dry_run=True)

    assert isinstance(outcome, Success)
    assert require_live(await client.get(before.ref)).uid == before.uid


async def test_a_dry_run_sees_what_is_immutable(client: ClusterClient) -> None:
    await client.apply(a_job())

    outcome = await client.apply(a_job(completions=3), dry_run=True)

    assert isinstance(outcome, Invalid)
    assert "spec.completions" in {cause.field for cause in outcome.causes}


async def test_strict_validation_names_an_unknown_field_of_a_creation(
    client: ClusterClient,
) -> None:
    outcome = await client.create(a_deployment(replicsa=3), strict=True)

    assert isinstance(outcome, Invalid)
    assert outcome.causes == (UNKNOWN_FIELD,)


async def test_an_apply_names_an_unknown_field(client: ClusterClient) -> None:
    outcome = await client.apply(a_deployment(replicsa=3), strict=True)

    assert isinstance(outcome, Invalid)
    assert outcome.causes == (UNKNOWN_FIELD,)


async def test_without_strict_validation_an_unknown_field_is_dropped_with_a_warning(
    client: ClusterClient,
) -> None:
    outcome = await client.create(a_deployment(replicas=0, replicsa=3))

    assert isinstance(outcome, Success)
    assert outcome.warnings == ('unknown field "spec.replicsa"',)
    assert at(require_body(outcome), "spec", "replicsa") is None


async def test_a_missing_field_is_named(client: ClusterClient) -> None:
    body = a_deployment(template=a_pod_template({"name": "app"}))

    outcome = await client.apply(body)

    assert isinstance(outcome, Invalid)
    assert [cause.field for cause in outcome.causes] == ["spec.template.spec.containers[0].image"]


async def test_a_value_of_the_wrong_type_is_invalid(client: ClusterClient) -> None:
    outcome = await client.apply({**a_deployment(), "spec": {"replicas": "three"}})

    assert isinstance(outcome, Invalid)


async def test_text_in_a_secret_is_kept_encoded(client: ClusterClient) -> None:
    secret = an_object(SECRET, "web", stringData={"color": "blue"}, data={"size": "Ymln"})

    outcome = await client.apply(secret)
    again = await client.apply(secret)

    assert at(require_body(outcome), "stringData") is None
    assert at(require_body(outcome), "data") == {"color": "Ymx1ZQ==", "size": "Ymln"}
    assert require_live(again).resource_version == require_live(outcome).resource_version


async def test_text_that_a_manager_no_longer_names_stays_in_the_secret(
    client: ClusterClient,
) -> None:
    await client.apply(an_object(SECRET, "web", stringData={"color": "blue"}))

    outcome = await client.apply(an_object(SECRET, "web", stringData={"size": "big"}))

    assert at(require_body(outcome), "data") == {"color": "Ymx1ZQ==", "size": "Ymln"}

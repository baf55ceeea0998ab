from __future__ import annotations

import base64

import pytest

from tests.support.cluster_client import ClusterClient, require_body
from tests.support.live_objects import OURS, a_live, an_entry, applied
from tests.support.objects import (
    SECRET,
    a_config_map,
    a_container,
    a_deployment,
    a_gate,
    a_job,
    a_namespace,
    a_pod_template,
    a_service,
    an_object,
    labelled,
)
from tests.support.worlds import sandbox_world
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.plans.change import MASK, DiffAction, FieldChange
from tidegate.plan.diff.compare import compare
from tidegate.plan.diff.fingerprint import compute_fingerprint, content_digest
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.resilient import ResilientWorld


async def really_applied(body: JsonObject) -> JsonObject:
    """The live body in the sandbox after we applied it."""
    dispatcher = Dispatcher(ResilientWorld(sandbox_world()))
    await ClusterClient(dispatcher).create(a_namespace("shop"))
    return require_body(await ClusterClient(dispatcher, namespace="shop").apply(body, manager=OURS))


def a_workload(**container: Json) -> JsonObject:
    return a_deployment(template=a_pod_template({**a_container("app"), **container}))


def paths(expected: JsonObject, live: JsonObject) -> list[str]:
    return [field.path for field in compare(expected, live, manager=OURS).fields]


def test_a_missing_object_is_created() -> None:
    assert compare(a_config_map(), None, manager=OURS).action is DiffAction.CREATE


async def test_a_change_has_a_path_and_values() -> None:
    live = await really_applied(a_workload())

    difference = compare(a_workload(image="registry.example/app:2"), live, manager=OURS)

    assert difference.action is DiffAction.CHANGE
    assert difference.fields == (
        FieldChange(
            "spec.template.spec.containers[name=app].image",
            "registry.example/app:1",
            "registry.example/app:2",
        ),
    )


@pytest.mark.parametrize(
    ("desired", "live"),
    [("1000m", "1"), (0.5, "500m"), ("1Gi", "1024Mi"), (1, "1"), ("1e3", "1k"), ("0.1", "100m")],
)
def test_equal_quantities_are_no_change(desired: Json, live: Json) -> None:
    result = an_object(Kind("", "v1", "ResourceQuota"), "q", spec={"hard": {"cpu": live}})
    other_object = an_object(Kind("", "v1", "ResourceQuota"), "q", spec={"hard": {"cpu": desired}})

    assert compare(other_object, applied(result), manager=OURS).action is DiffAction.KEEP


def test_a_quantity_is_normalized_only_in_quantity_fields() -> None:
    config_map, other_config_map = a_config_map(cpu="1"), a_config_map(cpu="1000m")
    gate, other = (
        a_gate("example.org", limits={"cpu": "1"}),
        a_gate("example.org", limits={"cpu": 1}),
    )

    assert paths(other_config_map, applied(config_map)) == ["data.cpu"]
    assert paths(other, applied(gate)) == ["spec.limits.cpu"]


def test_a_flag_is_not_a_number() -> None:
    gate, other_gate = a_gate("example.org", size=1), a_gate("example.org", size=True)

    assert paths(other_gate, applied(gate)) == ["spec.size"]
    assert paths(gate, applied(other_gate)) == ["spec.size"]


async def test_defaults_and_fields_of_other_managers_are_no_difference() -> None:
    live = await really_applied(a_service())
    live = {
        **live,
        "metadata": {**get_mapping(live, "metadata"), "annotations": {"by": "other-client"}},
    }

    assert compare(a_service(), live, manager=OURS).action is DiffAction.KEEP


async def test_generated_fields_of_a_job_are_no_difference() -> None:
    live = await really_applied(a_job())
    assert "selector" in get_mapping(live, "spec")

    assert compare(a_job(), live, manager=OURS).action is DiffAction.KEEP


async def test_a_field_that_git_no_longer_has_is_removed() -> None:
    live = await really_applied(labelled(a_config_map(color="red", size="m"), tier="front"))

    difference = compare(a_config_map(color="red"), live, manager=OURS)

    assert difference.fields == (
        FieldChange("data.size", "m", ""),
        FieldChange("metadata.labels.tier", "front", ""),
    )


def test_a_field_with_another_owner_stays() -> None:
    live = applied(
        a_config_map(color="red", size="m"), an_entry("anna", {"f:data": {"f:size": {}}})
    )

    difference = compare(a_config_map(color="red"), live, manager=OURS)

    assert difference.action is DiffAction.CHANGE
    assert difference.fields == ()
    assert difference.changes_ownership


def test_an_equal_field_of_another_manager_is_claimed() -> None:
    live = a_live(a_config_map(color="red"), an_entry("anna", {"f:data": {"f:color": {}}}))

    difference = compare(a_config_map(color="red"), live, manager=OURS)

    assert difference.action is DiffAction.CHANGE
    assert difference.fields == ()
    assert difference.changes_ownership


def test_fields_of_an_adopted_manager_are_ours() -> None:
    entry = an_entry("kubectl-edit", {"f:data": {"f:size": {}}}, operation="Update")
    live = applied(a_config_map(color="red"), entry)
    live["data"] = {"color": "red", "size": "m"}

    difference = compare(a_config_map(color="red"), live, manager=OURS)
    left_alone = compare(a_config_map(color="red"), live, manager=OURS, adopted=frozenset())

    assert difference.fields == (FieldChange("data.size", "m", ""),)
    assert left_alone.action is DiffAction.KEEP


async def test_the_order_of_variables_is_a_difference() -> None:
    env: list[Json] = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    live = await really_applied(a_workload(env=env))

    difference = compare(a_workload(env=env[::-1]), live, manager=OURS)

    assert difference.fields == (
        FieldChange("spec.template.spec.containers[name=app].env", "A, B", "B, A"),
    )


async def test_ports_are_distinguished_by_number_and_protocol() -> None:
    ports: list[Json] = [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]
    live = await really_applied(a_workload(ports=ports))

    difference = compare(a_workload(ports=ports[:1]), live, manager=OURS)

    assert [field.path for field in difference.fields] == [
        "spec.template.spec.containers[name=app].ports[containerPort=53,protocol=UDP]"
    ]


def test_a_key_that_only_its_server_knows_is_found_in_the_live_item() -> None:
    other_gate, gate = a_gate("example.org", map=[{"name": "a"}]), a_gate("example.org")
    item = 'k:{"name":"a","port":80}'
    gate["spec"] = {"color": "red", "map": [{"name": "a", "port": 80}]}
    fields: JsonObject = {"f:color": {}, "f:map": {item: {".": {}, "f:name": {}}}}
    live = a_live(gate, an_entry(OURS, {"f:spec": fields}))

    assert compare(other_gate, live, manager=OURS).action is DiffAction.KEEP


async def test_empty_values_that_the_server_drops_are_no_difference() -> None:
    body = a_deployment(paused=False, minReadySeconds=0)
    body["metadata"] = {"name": "web", "labels": {}, "annotations": None, "creationTimestamp": None}
    live = await really_applied(body)
    metadata = {
        name: part for name, part in get_mapping(live, "metadata").items() if name != "labels"
    }
    spec = {name: part for name, part in get_mapping(live, "spec").items() if name != "paused"}

    difference = compare(body, {**live, "metadata": metadata, "spec": spec}, manager=OURS)

    assert difference.action is DiffAction.KEEP


def test_a_new_empty_value_is_a_change() -> None:
    live = applied(a_deployment())

    difference = compare(a_deployment(progressDeadlineSeconds=0), live, manager=OURS)

    assert FieldChange("spec.progressDeadlineSeconds", "", "0") in difference.fields


def test_a_status_in_git_is_ignored() -> None:
    live = applied(a_deployment())

    assert compare({**a_deployment(), "status": {"replicas": 3}}, live, manager=OURS) == compare(
        a_deployment(), live, manager=OURS
    )


def test_text_in_a_secret_is_compared_with_its_data() -> None:
    stored = an_object(SECRET, "s", data={"a": base64.b64encode(b"x").decode()})
    live = a_live(stored, an_entry(OURS, {"f:stringData": {"f:a": {}}}))

    same = compare(an_object(SECRET, "s", stringData={"a": "x"}), live, manager=OURS)
    other = compare(an_object(SECRET, "s", stringData={"a": "y"}), live, manager=OURS)

    assert same.action is DiffAction.KEEP
    assert other.fields == (FieldChange("data.a", MASK, MASK),)


async def test_null_in_a_map_that_is_one_piece_is_an_empty_text() -> None:
    live = await really_applied(a_service("web", selector={"app": "web", "tier": ""}))

    desired_service = a_service("web", selector={"app": "web", "tier": None})

    assert compare(desired_service, live, manager=OURS).action is DiffAction.KEEP


def test_nothing_of_a_secret_is_shown() -> None:
    canary = "c4n4ry"
    stored = labelled(an_object(SECRET, "s", data={"a": canary}), team=canary)
    expected = labelled(an_object(SECRET, "s", stringData={"b": canary}, type=canary), team="x")

    difference = compare(expected, applied(stored), manager=OURS)

    assert difference.fields
    assert canary not in repr(difference)
    assert base64.b64encode(canary.encode()).decode() not in repr(difference)


def test_an_unbroken_seal_ends_all_doubt() -> None:
    doubtful = a_gate("example.org", size=None)
    live = applied(a_gate("example.org", size=1))

    compared = compare(doubtful, live, manager=OURS)
    sealed = compare(
        doubtful,
        live,
        manager=OURS,
        fingerprint=compute_fingerprint(live, OURS),
        digest=content_digest(doubtful),
    )

    assert compared.action is DiffAction.CHANGE
    assert sealed.action is DiffAction.KEEP


@pytest.mark.parametrize("digest", ["", "other"])
def test_a_fingerprint_does_not_match_another_manifest(digest: str) -> None:
    live = applied(a_config_map(color="red"))

    difference = compare(
        a_config_map(color="blue"),
        live,
        manager=OURS,
        fingerprint=compute_fingerprint(live, OURS),
        digest=digest,
    )

    assert difference.action is DiffAction.CHANGE


def test_an_unbroken_seal_does_not_hide_what_an_adopted_manager_added() -> None:
    desired_config_map = a_config_map(color="red")
    entry = an_entry("kubectl-edit", {"f:data": {"f:size": {}}}, operation="Update")
    live = applied(desired_config_map, entry)

    difference = compare(
        desired_config_map,
        live,
        manager=OURS,
        fingerprint=compute_fingerprint(live, OURS),
        digest=content_digest(desired_config_map),
    )

    assert difference.action is DiffAction.CHANGE


def test_long_texts_are_shown_where_they_part() -> None:
    config_map, other_config_map = (
        a_config_map(page="a" * 500 + "old"),
        a_config_map(page="a" * 500 + "new"),
    )

    (field,) = compare(other_config_map, applied(config_map), manager=OURS).fields

    assert field.before.endswith("aold")
    assert field.after.endswith("anew")
    assert len(field.before) <= 80


def test_control_characters_are_not_shown() -> None:
    other_config_map = a_config_map(page="x\x1b[31m\ny")

    (field,) = compare(other_config_map, applied(a_config_map(page="x")), manager=OURS).fields

    assert field.after == "x [31m y"

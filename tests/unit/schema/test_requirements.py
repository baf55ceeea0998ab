"""What a server requires of built-in objects besides types. The e2e tests compare all of it."""

from __future__ import annotations

import pytest

from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.schema.validation.requirements import find_requirement_problems

DEPLOYMENT = Kind("apps", "v1", "Deployment")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet")
JOB = Kind("batch", "v1", "Job")
CONFIG_MAP = Kind("", "v1", "ConfigMap")
SERVICE = Kind("", "v1", "Service")


def a_workload(label: Json = "web", **pod: Json) -> JsonObject:
    labels: JsonObject = {"app": label}
    spec: JsonObject = {"containers": [{"name": "a", "image": "i"}], **pod}
    return {
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def list_problems(kind: Kind, body: JsonObject) -> list[tuple[str, str]]:
    return [
        (cause.field, cause.reason.removeprefix("FieldValue"))
        for cause in find_requirement_problems(kind, body)
    ]


def test_a_valid_object_has_no_problems() -> None:
    assert find_requirement_problems(DEPLOYMENT, a_workload()) == ()


def test_null_in_a_selector_is_an_empty_text() -> None:
    assert find_requirement_problems(DEPLOYMENT, a_workload(label=None)) == ()


def test_a_container_without_an_image_is_named() -> None:
    body = a_workload(containers=[{"name": "a"}])

    assert list_problems(DEPLOYMENT, body) == [
        ("spec.template.spec.containers[0].image", "Required")
    ]


def test_an_empty_spec_misses_all_required_fields() -> None:
    assert list_problems(DEPLOYMENT, {"metadata": {"name": "web"}}) == [
        ("spec.selector", "Required"),
        ("spec.template.metadata.labels", "Invalid"),
        ("spec.template.spec.containers", "Required"),
    ]


@pytest.mark.parametrize(
    ("operator", "values", "is_found"),
    [
        ("In", ["web", "db"], True),
        ("In", ["db"], False),
        ("NotIn", ["db"], True),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
    ],
)
def test_a_selector_must_find_its_template(
    operator: str,
    values: list[Json],
    is_found: bool,  # noqa: FBT001
) -> None:
    body = a_workload()
    assert isinstance(body["spec"], dict)
    expression: Json = {"key": "app", "operator": operator, "values": values}
    spec: JsonObject = {**body["spec"], "selector": {"matchExpressions": [expression]}}

    problems = list_problems(DEPLOYMENT, {**body, "spec": spec})

    assert problems == ([] if is_found else [("spec.template.metadata.labels", "Invalid")])


def test_a_job_needs_a_restart_policy() -> None:
    field = "spec.template.spec.restartPolicy"

    assert list_problems(JOB, a_workload()) == [(field, "Required")]
    assert list_problems(JOB, a_workload(restartPolicy="Never")) == []


def test_names_are_unique_among_all_containers() -> None:
    body = a_workload(initContainers=[{"name": "a", "image": "i"}])

    assert list_problems(DEPLOYMENT, body) == [
        ("spec.template.spec.initContainers[0].name", "Duplicate")
    ]


def test_a_mount_needs_its_volume_and_a_claim_template_is_one() -> None:
    mount: Json = {"name": "d", "mountPath": "/d"}
    body = a_workload(containers=[{"name": "a", "image": "i", "volumeMounts": [mount]}])
    assert isinstance(body["spec"], dict)
    claim: Json = {
        "metadata": {"name": "d"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    claimed: JsonObject = {**body, "spec": {**body["spec"], "volumeClaimTemplates": [claim]}}

    assert list_problems(STATEFUL_SET, body) == [
        ("spec.template.spec.containers[0].volumeMounts[0].name", "NotFound")
    ]
    assert list_problems(STATEFUL_SET, claimed) == []


def test_ports_of_a_service_need_names_where_there_are_two() -> None:
    body: JsonObject = {
        "metadata": {"name": "web"},
        "spec": {"ports": [{"port": 80}, {"port": 81, "name": "b"}]},
    }

    assert list_problems(SERVICE, body) == [("spec.ports[0].name", "Required")]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({}, "metadata.name"),
        ({"name": "A"}, "metadata.name"),
        ({"name": "x", "labels": {"a b": "c"}}, "metadata.labels"),
        ({"name": "x", "labels": {"a": "c d"}}, "metadata.labels"),
        ({"name": "x", "annotations": {"a/b/c": "d"}}, "metadata.annotations"),
        ({"name": "x", "finalizers": ["hold"]}, "metadata.finalizers[0]"),
    ],
)
def test_names_and_labels_have_a_form(metadata: JsonObject, field: str) -> None:
    assert {path for path, _ in list_problems(CONFIG_MAP, {"metadata": metadata})} == {field}


def test_a_custom_object_needs_a_name_too() -> None:
    assert list_problems(Kind("example.org", "v1", "Gate"), {"metadata": {"name": "A_b"}}) == [
        ("metadata.name", "Invalid")
    ]


def test_a_null_access_mode_is_an_empty_text() -> None:
    claim: JsonObject = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "d"},
        "spec": {"accessModes": [None], "resources": {"requests": {"storage": "1Gi"}}},
    }

    causes = find_requirement_problems(Kind("", "v1", "PersistentVolumeClaim"), claim)

    assert 'Unsupported value: "": ' in " ".join(cause.message for cause in causes)

"""Bodies that cannot be read: the messages of Go's decoder, and those of server-side apply."""

from __future__ import annotations

import pytest

from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.schema.builtin import find_shape, object_meta_shape
from tidegate.schema.shape import Shape
from tidegate.schema.structural import shape_from_schema
from tidegate.schema.types import find_decode_problem, find_typed_problems
from tidegate.world.messages import Cause

UNSTRUCTURED = '&value.valueUnstructured{Value:map[string]interface {}{"a":[]interface {}{1}}}'
CONTAINER = "Container.spec.template.spec.containers"


def deployment() -> Shape:
    shape = find_shape(Kind("apps", "v1", "Deployment"))
    assert shape is not None
    return shape


def with_container(**parts: Json) -> JsonObject:
    return {"template": {"spec": {"containers": [{"name": "a", **parts}]}}}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"replicas": "three"},
            "string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"replicas": 1.5},
            "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"replicas": 2**31},
            "number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        ({"paused": 1}, "number into Go struct field DeploymentSpec.spec.paused of type bool"),
        (
            {"selector": []},
            "array into Go struct field DeploymentSpec.spec.selector of type v1.LabelSelector",
        ),
        (
            with_container(image=5),
            f"number into Go struct field {CONTAINER}.image of type string",
        ),
        (
            with_container(command="a"),
            f"string into Go struct field {CONTAINER}.command of type []string",
        ),
        (
            with_container(env=["A"]),
            f"string into Go struct field {CONTAINER}.env of type v1.EnvVar",
        ),
    ],
)
def test_the_decoder_names_the_type_and_the_field(spec: JsonObject, problem: str) -> None:
    assert find_decode_problem({"spec": spec}, deployment()) == f"json: cannot unmarshal {problem}"


@pytest.mark.parametrize(
    "spec",
    [
        {"replicas": None},
        {"replicsa": "an unknown field is not read"},
        {"strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}},
        with_container(resources={"requests": {"cpu": 1, "memory": "1Gi", "other": 0.5}}),
    ],
)
def test_a_body_that_can_be_decoded_has_no_problem(spec: JsonObject) -> None:
    assert find_decode_problem({"spec": spec}, deployment()) == ""


def test_the_error_of_a_type_with_its_own_decoder_wins() -> None:
    body: JsonObject = {
        "spec": {"replicas": "x", **with_container(resources={"limits": {"cpu": "x"}})}
    }

    assert find_decode_problem(body, deployment()).startswith("quantities must match")


def test_an_unknown_suffix_of_a_quantity_is_refused() -> None:
    body: JsonObject = {"spec": with_container(resources={"limits": {"cpu": "1i"}})}

    assert find_decode_problem(body, deployment()) == "unable to parse quantity's suffix"


def test_text_that_is_no_base64_is_reported_with_its_position() -> None:
    shape = find_shape(Kind("", "v1", "Secret"))
    assert shape is not None

    assert find_decode_problem({"data": {"a": "AAAA"}}, shape) == ""
    assert find_decode_problem({"data": {"a": "AAAA\nAA==\n"}}, shape) == ""
    assert (
        find_decode_problem({"data": {"a": "AA!A"}}, shape) == "illegal base64 data at input byte 2"
    )


def test_metadata_of_a_custom_object_is_read_by_itself() -> None:
    wrong = find_decode_problem({"labels": {"a": 1}}, object_meta_shape())

    assert (
        wrong
        == "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    )
    assert find_decode_problem("x", object_meta_shape()).endswith(
        "into Go value of type v1.ObjectMeta"
    )


@pytest.mark.parametrize(
    ("spec", "field", "problem"),
    [
        ({"replicas": "x"}, "spec.replicas", "expected numeric (int or float), got string"),
        ({"paused": 1}, "spec.paused", "expected boolean, got &{1}"),
        ({"selector": "a"}, "spec.selector", "expected map, got &{a}"),
        (
            with_container(image={"a": [1]}),
            'spec.template.spec.containers[name="a"].image',
            f"expected string, got {UNSTRUCTURED}",
        ),
        (
            with_container(command={"a": 1}),
            'spec.template.spec.containers[name="a"].command',
            "expected list, got &{map[a:1]}",
        ),
        (
            with_container(ports=[{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]),
            'spec.template.spec.containers[name="a"].ports',
            'duplicate entries for key [containerPort=80,protocol="TCP"]',
        ),
        (
            with_container(env=[None]),
            'spec.template.spec.containers[name="a"].env',
            "element 0: associative list with keys may not have a null element",
        ),
        (
            with_container(env=["A"]),
            'spec.template.spec.containers[name="a"].env',
            "element 0: associative list with keys may not have non-map elements",
        ),
    ],
)
def test_an_apply_names_each_field(spec: JsonObject, field: str, problem: str) -> None:
    assert find_typed_problems({"spec": spec}, deployment()) == (Cause(field, "type", problem),)


def test_an_apply_names_unknown_fields() -> None:
    problems = find_typed_problems({"spec": {"replicsa": 1}}, deployment())

    assert problems == (Cause("spec.replicsa", "unknown", "unknown field"),)


def test_an_apply_accepts_what_only_the_decoder_refuses() -> None:
    body: JsonObject = {"metadata": {"creationTimestamp": 5}, "spec": {"replicas": 1.5}}

    assert find_typed_problems(body, deployment()) == ()


def test_an_item_without_any_key_cannot_be_applied() -> None:
    keyed: JsonObject = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    shape = shape_from_schema({"type": "object", "properties": {"f": keyed}})

    (problem,) = find_typed_problems({"f": [{}]}, shape)

    assert problem.message == (
        'element 0: associative list with keys has an element that omits all key fields ["name"] '
        "(and doesn't have default values for any key fields)"
    )

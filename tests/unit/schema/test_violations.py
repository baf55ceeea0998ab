"""Violations of a schema that are found without a server."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.builders import make_config_map, make_deployment, make_job, make_object
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.schema.violations import SchemaViolations, find_schema_violations, read_crd

GATE = Kind("example.org", "v1", "Gate")
TEXT: JsonObject = {"type": "string"}


def a_definition(**fields: Json) -> bytes:
    """A CRD of `Gate` whose `spec` has these fields."""
    spec: JsonObject = {
        "type": "object",
        "required": ["color"],
        "properties": {"color": TEXT, **fields},
    }
    status: JsonObject = {"type": "object", "required": ["phase"], "properties": {"phase": TEXT}}
    schema: JsonObject = {"type": "object", "properties": {"spec": spec, "status": status}}
    return a_definition_of(schema)


def a_definition_of(schema: JsonObject) -> bytes:
    version: JsonObject = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    names: JsonObject = {"kind": "Gate", "plural": "gates"}
    parts: JsonObject = {"group": "example.org", "names": names, "scope": "Namespaced"}
    kind = "apiextensions.k8s.io/v1 CustomResourceDefinition"
    spec: JsonObject = {**parts, "versions": [version, {**version, "name": "v0", "served": False}]}
    return msgspec.json.encode(make_object(kind, "gates.example.org", spec=spec))


def a_gate(spec: JsonObject | None = None) -> JsonObject:
    return make_object("example.org/v1 Gate", "north", spec={**(spec or {})})


def kind_of(body: JsonObject) -> Kind:
    return Kind.of(str(body["apiVersion"]), str(body["kind"]))


def violations_of(
    body: JsonObject, definition: bytes = b"", *, applied: bool = True
) -> SchemaViolations:
    schema_violations = find_schema_violations(kind_of(body), body, crd=definition, applied=applied)
    assert schema_violations is not None
    return schema_violations


def fields(violations: SchemaViolations) -> tuple[list[str], list[str]]:
    return [item.field for item in violations.unreadable], [
        item.field for item in violations.invalid
    ]


def with_spec(body: JsonObject, **spec: Json) -> JsonObject:
    known = body["spec"]
    assert isinstance(known, dict)
    return {**body, "spec": {**known, **spec}}


@pytest.mark.parametrize("body", [make_config_map(), make_deployment(), make_job()])
@pytest.mark.parametrize("applied", [True, False])
def test_a_valid_object_has_no_violations(body: JsonObject, *, applied: bool) -> None:
    assert violations_of(body, applied=applied) == SchemaViolations()


@pytest.mark.parametrize("applied", [True, False])
def test_a_wrong_type_makes_an_object_unreadable(*, applied: bool) -> None:
    violations = violations_of(with_spec(make_deployment(), replicas="three"), applied=applied)

    assert len(violations.unreadable) == 1
    assert "replicas" in str(violations.unreadable)
    assert violations.invalid == ()


@pytest.mark.parametrize("applied", [True, False])
def test_an_unknown_field_makes_an_object_unreadable(*, applied: bool) -> None:
    violations = violations_of(with_spec(make_deployment(), replicsa=3), applied=applied)

    assert fields(violations) == (["spec.replicsa"], [])


def test_a_missing_field_makes_an_object_invalid() -> None:
    violations = violations_of(with_spec(make_deployment(), selector={}))

    assert violations.unreadable == ()
    assert "spec.selector" in fields(violations)[1]


def test_a_definition_is_checked_as_one() -> None:
    body: JsonObject = msgspec.json.decode(a_definition(size={}))

    assert any(field.endswith("[size].type") for field in fields(violations_of(body))[1])


def test_a_kind_without_a_crd_is_unknown() -> None:
    assert find_schema_violations(GATE, a_gate()) is None


def test_a_version_that_is_not_served_is_unknown() -> None:
    older = Kind("example.org", "v0", "Gate")

    assert older not in read_crd(a_definition())
    assert find_schema_violations(older, a_gate(), crd=a_definition()) is None


WRONG: dict[str, tuple[JsonObject, tuple[list[str], list[str]]]] = {
    "nothing": ({"color": "red"}, ([], [])),
    "a type": ({"color": 5}, (["spec.color"], [])),
    "a name": ({"color": "red", "colour": "red"}, (["spec.colour"], [])),
    "a missing field": ({}, ([], ["spec.color"])),
    "a choice": ({"color": "red", "side": "up"}, ([], ["spec.side"])),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_custom_object_is_checked_by_its_definition(name: str) -> None:
    spec, wrong = WRONG[name]
    definition = a_definition(side={"type": "string", "enum": ["left", "right"]})

    assert fields(violations_of(a_gate(spec), definition)) == wrong


def test_a_field_with_a_default_is_not_missing() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {"size": {"type": "integer", "default": 1}},
            }
        },
    }

    assert violations_of(a_gate({}), a_definition_of(schema)) == SchemaViolations()


def test_a_status_is_not_checked_for_missing_fields() -> None:
    gate: JsonObject = {**a_gate({"color": "red"}), "status": {}}

    assert violations_of(gate, a_definition()) == SchemaViolations()


SERVER_CHECKED: dict[str, JsonObject] = {
    "a rule": {"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]},
    "alternatives": {"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "^a"}]},
    "a multiple": {"type": "integer", "multipleOf": 5},
    "a format": {"type": "string", "format": "ipv4"},
    "a pattern that is none of Python's": {"type": "string", "pattern": r"^\p{L}+$"},
    "a rule of items": {"type": "array", "items": {"type": "string", "not": {"pattern": "a"}}},
}
CHECKED_HERE: dict[str, JsonObject] = {
    "a plain text": TEXT,
    "a number or a text": {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
    },
    "a moment": {"type": "string", "format": "date-time"},
    "a field that is called so": {"type": "object", "properties": {"not": TEXT, "allOf": TEXT}},
}


@pytest.mark.parametrize("name", SERVER_CHECKED)
def test_rules_that_only_a_server_checks_make_the_result_incomplete(name: str) -> None:
    violations = violations_of(a_gate({"color": "red"}), a_definition(more=SERVER_CHECKED[name]))

    assert violations == SchemaViolations(is_incomplete=True)
    assert violations.needs_server


@pytest.mark.parametrize("name", CHECKED_HERE)
def test_rules_that_are_checked_here_leave_nothing_to_the_server(name: str) -> None:
    violations = violations_of(a_gate({"color": "red"}), a_definition(more=CHECKED_HERE[name]))

    assert violations == SchemaViolations()
    assert not violations.needs_server

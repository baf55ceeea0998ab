"""Problems of a CRD, with the messages of a server. The e2e tests compare many more."""

from __future__ import annotations

from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.schema.validation.definitions import find_definition_problems
from tidegate.world.messages import Cause

ROOT = "spec.validation.openAPIV3Schema"


def a_definition(**fields: Json) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": {**fields}}
    return with_versions(a_version("v1", schema, storage=True))


def a_version(name: str, schema: JsonObject, *, storage: bool) -> JsonObject:
    return {"name": name, "storage": storage, "schema": {"openAPIV3Schema": schema}}


def with_versions(*versions: JsonObject, **spec: Json) -> JsonObject:
    return {
        "metadata": {"name": "gates.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "gates", "kind": "Gate"},
            "versions": [*versions],
            **spec,
        },
    }


def test_a_good_definition_has_no_problems() -> None:
    assert find_definition_problems(a_definition(spec={"type": "object"})) == ()


def test_a_field_without_a_type_is_named() -> None:
    problems = find_definition_problems(a_definition(spec={}))

    assert problems == (
        Cause(
            f"{ROOT}.properties[spec].type",
            "FieldValueRequired",
            "Required value: must not be empty for specified object fields",
        ),
    )


def test_schemas_that_differ_are_named_by_their_version() -> None:
    good = a_version("v1", {"type": "object"}, storage=True)
    wrong = a_version("v2", {"type": "object", "properties": {"spec": {}}}, storage=False)

    (problem,) = find_definition_problems(with_versions(good, wrong))

    assert problem.field == "spec.versions[1].schema.openAPIV3Schema.properties[spec].type"


def test_structure_is_checked_only_where_the_form_is_valid() -> None:
    (problem,) = find_definition_problems(a_definition(a={"$ref": "#/x"}, b={}))

    assert problem.field == f"{ROOT}.properties[a].$ref"


def test_a_default_must_fit_its_own_schema() -> None:
    inner: JsonObject = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "default": {"a": 5},
    }

    (problem,) = find_definition_problems(a_definition(spec=inner))

    assert problem.field == f"{ROOT}.properties[spec].default.a"
    assert problem.reason == "FieldValueTypeInvalid"


def test_a_key_of_a_list_must_not_be_missing() -> None:
    items: JsonObject = {"type": "object", "properties": {"name": {"type": "string"}}}
    keyed: JsonObject = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": items,
    }

    (problem,) = find_definition_problems(a_definition(spec=keyed))

    assert problem.field == f"{ROOT}.properties[spec].items.properties[name].default"


def test_the_name_must_be_plural_and_group() -> None:
    problems = find_definition_problems(
        {**a_definition(), "metadata": {"name": "others.example.org"}}
    )

    assert [problem.field for problem in problems] == ["metadata.name"]


def test_one_version_must_be_stored() -> None:
    version = a_version("v1", {"type": "object"}, storage=False)

    problems = find_definition_problems(with_versions(version))

    assert [problem.field for problem in problems] == ["spec.versions", "status.storedVersions"]

"""Fields that a schema does not know, nulls and defaults; the input is never changed."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.k8s.objects import JsonObject, Kind
from tidegate.schema.builtin import find_shape
from tidegate.schema.defaulting import drop_nulls, fill_defaults, list_unknown_fields, prune
from tidegate.schema.shape import Shape
from tidegate.schema.structural import shape_from_schema

TEXT: JsonObject = {"type": "string"}
SHAPE = shape_from_schema(
    {
        "type": "object",
        "properties": {
            "any": {"x-kubernetes-preserve-unknown-fields": True},
            "closed": {"type": "object"},
            "deep": {
                "type": "object",
                "default": {"a": "x"},
                "properties": {"a": TEXT, "b": {**TEXT, "default": "y"}},
            },
            "free": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {"known": {"type": "object", "properties": {"a": TEXT}}},
            },
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}},
            "loose": {"type": "object", "additionalProperties": True},
            "map": {"type": "object", "additionalProperties": TEXT},
            "nullable": {**TEXT, "nullable": True},
            "size": {"type": "integer", "default": 1},
            "text": TEXT,
        },
    }
)


def deployment() -> Shape:
    shape = find_shape(Kind("apps", "v1", "Deployment"))
    assert shape is not None
    return shape


def test_unknown_fields_of_a_built_in_object_are_listed_in_the_order_of_the_file() -> None:
    container: JsonObject = {"imag": 5, "env": [{"name": "A", "nome": 1}]}
    spec: JsonObject = {"template": {"spec": {"containers": [container]}}, "replicsa": 1}
    body: JsonObject = {"metadata": {"labelled": {}, "labels": {"a": "b"}}, "spec": spec, "x": 1}

    assert list_unknown_fields(body, deployment()) == (
        "metadata.labelled",
        "spec.template.spec.containers[0].imag",
        "spec.template.spec.containers[0].env[0].nome",
        "spec.replicsa",
        "x",
    )


def test_unknown_fields_are_dropped() -> None:
    body: JsonObject = {
        "closed": {"a": 1},
        "free": {"known": {"a": "b", "z": 1}, "more": {"b": 1}},
        "list": [{"a": "b", "z": 1}],
        "loose": {"a": {"b": 1}, "c": 5},
        "map": {"any": "thing"},
        "zzz": 1,
    }

    assert prune(body, SHAPE) == {
        "closed": {},
        "free": {"known": {"a": "b"}, "more": {"b": 1}},
        "list": [{"a": "b"}],
        "loose": {"a": {}, "c": 5},
        "map": {"any": "thing"},
    }
    assert list_unknown_fields(body, SHAPE) == (
        "closed.a",
        "free.known.z",
        "list[0].z",
        "loose.a.b",
        "zzz",
    )


def test_only_the_parents_of_dropped_fields_are_copied() -> None:
    body: JsonObject = {"free": {"known": {"a": "b"}}, "list": [{"a": "b"}, {"z": 1}], "any": [1]}

    pruned = prune(body, SHAPE)

    assert isinstance(pruned, dict)
    assert pruned["free"] is body["free"]
    assert pruned["any"] is body["any"]
    assert isinstance(pruned["list"], list)
    assert isinstance(body["list"], list)
    assert pruned["list"][0] is body["list"][0]
    assert pruned["list"][1] == {}


def test_defaults_are_filled_in_also_inside_other_defaults() -> None:
    assert fill_defaults({}, SHAPE) == {"deep": {"a": "x", "b": "y"}, "size": 1}
    assert fill_defaults({"deep": {}, "size": 2}, SHAPE) == {"deep": {"b": "y"}, "size": 2}


def test_a_default_replaces_a_null_that_is_not_allowed() -> None:
    filled = fill_defaults({"size": None, "deep": None, "nullable": None}, SHAPE)

    assert filled == {"deep": {"a": "x", "b": "y"}, "nullable": None, "size": 1}


def test_nulls_are_dropped_where_they_are_not_allowed_and_there_is_no_default() -> None:
    body: JsonObject = {
        "text": None,
        "size": None,
        "nullable": None,
        "map": {"a": None},
        "free": {"more": None},
    }

    assert drop_nulls(body, SHAPE) == {
        "size": None,
        "nullable": None,
        "map": {},
        "free": {"more": None},
    }


def test_an_object_that_needs_no_change_is_returned_itself() -> None:
    body: JsonObject = {
        "deep": {"a": "x", "b": "y"},
        "size": 1,
        "map": {"a": "b"},
        "list": [{"a": "c"}],
    }

    assert prune(body, SHAPE) is body
    assert drop_nulls(body, SHAPE) is body
    assert fill_defaults(body, SHAPE) is body


values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("az", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "b", "known", "more"]), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from([*SHAPE.fields, "zzz"]), values, max_size=6)


@given(objects)
def test_nothing_given_is_ever_changed_and_doing_it_again_changes_nothing(body: JsonObject) -> None:
    before = copy.deepcopy(body)

    for change in (prune, drop_nulls, fill_defaults):
        once = change(body, SHAPE)
        assert change(once, SHAPE) is once
    assert body == before


@given(objects)
def test_a_pruned_object_has_no_unknown_fields(body: JsonObject) -> None:
    assert list_unknown_fields(prune(body, SHAPE), SHAPE) == ()
    assert (prune(body, SHAPE) is body) == (list_unknown_fields(body, SHAPE) == ())

"""JSON patch and merge patch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.k8s.objects import Json
from tidegate.sandbox.server.patches import PatchError, apply_json_patch, apply_merge_patch

BODY: Json = {"a": {"b": 1}, "list": ["x", "y"], "odd/key": {"til~de": 2}}

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/a/c", "value": 2}, {"a": {"b": 1, "c": 2}}),
        ({"op": "replace", "path": "/a/b", "value": 2}, {"a": {"b": 2}}),
        ({"op": "replace", "path": "/c", "value": 2}, {"c": 2}),
        ({"op": "remove", "path": "/a/b"}, {"a": {}}),
        ({"op": "add", "path": "/list/-", "value": "z"}, {"list": ["x", "y", "z"]}),
        ({"op": "add", "path": "/list/0", "value": "w"}, {"list": ["w", "x", "y"]}),
        ({"op": "replace", "path": "/list/1", "value": "z"}, {"list": ["x", "z"]}),
        ({"op": "remove", "path": "/list/0"}, {"list": ["y"]}),
        ({"op": "copy", "from": "/a/b", "path": "/c"}, {"c": 1}),
        ({"op": "move", "from": "/a/b", "path": "/c"}, {"a": {}, "c": 1}),
        ({"op": "test", "path": "/a/b", "value": 1}, {}),
        ({"op": "replace", "path": "/odd~1key/til~0de", "value": 3}, {"odd/key": {"til~de": 3}}),
    ],
)
def test_an_operation_changes_its_path(operation: Json, expected: dict[str, Json]) -> None:
    assert isinstance(BODY, dict)

    patched = apply_json_patch(BODY, [operation])

    assert patched == {**BODY, **expected}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a/b", "value": 2},
        {"op": "remove", "path": "/nothing"},
        {"op": "replace", "path": "/list/2", "value": 1},
        {"op": "add", "path": "/nothing/below", "value": 1},
        {"op": "add", "path": "/list/3", "value": 1},
        {"op": "remove", "path": "/list/-"},
        {"op": "add", "path": "no-slash", "value": 1},
        {"op": "explode", "path": "/a"},
        "remove",
    ],
)
def test_an_operation_that_cannot_be_done_is_refused(operation: Json) -> None:
    with pytest.raises(PatchError):
        apply_json_patch(BODY, [operation])


def test_unchanged_parts_are_shared() -> None:
    assert isinstance(BODY, dict)

    patched = apply_json_patch(BODY, [{"op": "add", "path": "/a/c", "value": 2}])
    merged = apply_merge_patch(BODY, {"a": {"c": 2}})

    assert isinstance(patched, dict)
    assert isinstance(merged, dict)
    assert patched["list"] is BODY["list"]
    assert merged["list"] is BODY["list"]
    assert BODY["a"] == {"b": 1}


@given(VALUES, VALUES)
def test_a_merge_patch_sets_what_it_names_and_removes_what_it_nulls(
    target: Json, patch: Json
) -> None:
    merged = apply_merge_patch(target, patch)

    assert apply_merge_patch(merged, patch) == merged
    if isinstance(patch, dict):
        assert isinstance(merged, dict)
        assert all((key in merged) is (value is not None) for key, value in patch.items())

"""Strategic merge patches, as `kubectl` makes them."""

from __future__ import annotations

from typing import cast

import pytest

from tidegate.model.k8s.objects import Json, Kind
from tidegate.sandbox.ownership.layout import get_layout
from tidegate.sandbox.server.patches import PatchError
from tidegate.sandbox.server.strategic_merge import apply_strategic_patch
from tidegate.schema.builtin import find_shape

SHAPE = find_shape(Kind("", "v1", "Pod"))
assert SHAPE is not None
POD = get_layout(SHAPE)
LIVE: Json = {
    "metadata": {"finalizers": ["a/b", "c/d"]},
    "spec": {
        "containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "tolerations": [{"key": "x"}],
    },
}


def patched(patch: Json) -> dict[str, Json]:
    return cast("dict[str, Json]", apply_strategic_patch(LIVE, patch, POD))


def spec(patch: Json) -> dict[str, Json]:
    return cast("dict[str, Json]", patched({"spec": patch})["spec"])


def test_an_item_is_changed_by_its_key_and_new_ones_are_added() -> None:
    changed = spec({"containers": [{"name": "b", "image": "b:2"}, {"name": "c", "image": "c:1"}]})

    assert changed["containers"] == [
        {"name": "a", "image": "a:1"},
        {"name": "b", "image": "b:2"},
        {"name": "c", "image": "c:1"},
    ]


def test_an_item_is_deleted_and_a_list_replaced_by_a_directive() -> None:
    deleted = spec({"containers": [{"name": "a", "$patch": "delete"}]})
    replaced = spec({"containers": [{"name": "z", "image": "z:1"}, {"$patch": "replace"}]})

    assert deleted["containers"] == [{"name": "b", "image": "b:1"}]
    assert replaced["containers"] == [{"name": "z", "image": "z:1"}]


def test_a_list_without_keys_is_atomic() -> None:
    assert spec({"tolerations": [{"key": "y"}]})["tolerations"] == [{"key": "y"}]


def test_the_order_of_a_directive_is_kept() -> None:
    order: Json = [{"name": "c"}, {"name": "b"}, {"name": "a"}]
    changed = spec(
        {"$setElementOrder/containers": order, "containers": [{"name": "c", "image": "c"}]}
    )

    items = cast("list[dict[str, Json]]", changed["containers"])
    assert [item["name"] for item in items] == ["c", "b", "a"]


def test_only_retained_keys_of_a_union_are_kept() -> None:
    change: Json = {"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "m"}}

    assert spec({"volumes": [change]})["volumes"] == [{"name": "v", "configMap": {"name": "m"}}]


def test_values_of_a_primitive_list_are_added_and_removed() -> None:
    changed = patched(
        {"metadata": {"finalizers": ["e/f"], "$deleteFromPrimitiveList/finalizers": ["a/b"]}}
    )

    assert changed["metadata"] == {"finalizers": ["c/d", "e/f"]}


@pytest.mark.parametrize("patch", [{"containers": [{"image": "x"}]}, {"$patch": "mend"}])
def test_an_invalid_patch_is_refused(patch: Json) -> None:
    with pytest.raises(PatchError):
        spec(patch)

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tidegate.model.k8s.objects import Json
from tidegate.plan.diff.defaults import BUILTIN_GROUPS, is_default
from tidegate.plan.diff.owned_fields import KEY_DEFAULTS
from tidegate.plan.diff.values import QUANTITIES, QUANTITY_MAPS
from tidegate.schema.builtin import MergeStrategy, find_merge_strategy, find_shape, served_kinds
from tidegate.schema.shape import Merge, Shape, Type

# Definitions hold schemas, and slices are written by drivers.
LEFT_OUT = {"CustomResourceDefinition", "ResourceSlice"}
# Merged one way in one kind or version and another way in the other: their owners tell.
SET_BY_OWNERS = {("spec", "variables"), ("spec", "scaleTargetRef")}


class Spot(NamedTuple):
    kind: str
    parent: str
    name: str
    shape: Shape
    is_reached: bool
    """It is merged on its own: nothing above it is one piece."""


def every_spot() -> Iterator[Spot]:
    for served in served_kinds():
        shape = find_shape(served.kind)
        if (
            shape is not None
            and {"get", "create"} <= set(served.verbs)
            and served.kind.name not in LEFT_OUT
        ):
            root = Spot(served.kind.name, "", "", shape, is_reached=True)
            yield from _below(root, frozenset())


def _below(field: Spot, above: frozenset[str]) -> Iterator[Spot]:
    shape = field.shape
    if field.name:
        yield field
    if shape.name in above:
        return
    above |= {shape.name} if shape.name else set()
    is_reached = field.is_reached and shape.merge is not Merge.ATOMIC
    if shape.items is not None:
        yield from _fields(field, shape.items(), above, is_reached=is_reached)
    elif field.name or shape.fields:
        yield from _fields(field, shape, above, is_reached=is_reached)


def _fields(
    field: Spot, shape: Shape, above: frozenset[str], *, is_reached: bool
) -> Iterator[Spot]:
    for name, item in shape.fields.items():
        if name != "status":
            yield from _below(Spot(field.kind, field.name, name, item(), is_reached), above)
    if shape.values is not None:
        yield Spot(field.kind, field.name, "*", shape.values(), is_reached)


SPOTS = list(every_spot())


def test_lists_are_merged_as_in_the_schemas() -> None:
    wrong = {
        (field.kind, field.parent, field.name)
        for field in SPOTS
        if field.is_reached
        and (field.parent, field.name) not in SET_BY_OWNERS
        and field.shape.type is Type.ARRAY
        and find_merge_strategy(field.parent, field.name)
        != MergeStrategy(field.shape.keys, is_set=field.shape.merge is Merge.SET)
    }

    assert wrong == set()


def test_an_item_is_known_by_its_keys() -> None:
    assert find_merge_strategy("containers", "ports").keys == ("containerPort", "protocol")
    assert find_merge_strategy("spec", "containers").keys == ("name",)
    assert find_merge_strategy("metadata", "finalizers").is_set
    assert find_merge_strategy("spec", "selector").is_atomic
    assert find_merge_strategy("spec", "variables") == MergeStrategy()
    assert find_merge_strategy("spec", "anything") == MergeStrategy()


def test_mappings_are_atomic_as_in_the_schemas() -> None:
    wrong = {
        (field.kind, field.parent, field.name)
        for field in SPOTS
        if field.is_reached
        and (field.parent, field.name) not in SET_BY_OWNERS
        and field.shape.type is Type.OBJECT
        and field.name != "*"
        and find_merge_strategy(field.parent, field.name)
        != MergeStrategy(is_atomic=field.shape.merge is Merge.ATOMIC)
    }

    assert wrong == set()


def test_quantities_are_known_by_their_place() -> None:
    unknown = {
        (field.kind, field.parent, field.name)
        for field in SPOTS
        if field.shape.format == "quantity"
        and field.name not in QUANTITIES
        and field.parent not in QUANTITY_MAPS
        and (field.parent, field.name) != ("target", "value")
    }

    assert unknown == set()


def test_defaults_of_keys_equal_those_of_the_schemas() -> None:
    messages = {
        (key, default)
        for field in SPOTS
        for key, default in field.shape.key_defaults.items()
        if default not in {"", 0}
    }

    assert messages == set(KEY_DEFAULTS.items())


def test_the_groups_equal_those_of_an_api_server() -> None:
    assert {served.kind.group for served in served_kinds()} <= BUILTIN_GROUPS


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("registry.example:5000/app", "Always"),
        ("registry.example/app:latest", "Always"),
        ("registry.example/app:1", "IfNotPresent"),
        ("registry.example/app@sha256:abc", "IfNotPresent"),
    ],
)
def test_the_default_pull_policy_follows_the_image(image: str, policy: str) -> None:
    other = "Always" if policy != "Always" else "IfNotPresent"
    container: dict[str, Json] = {"image": image}

    assert is_default(policy, name="imagePullPolicy", parent="containers", siblings=container)
    assert not is_default(other, name="imagePullPolicy", parent="containers", siblings=container)


def test_values_of_free_form_mappings_are_no_defaults() -> None:
    assert is_default("TCP", name="protocol", parent="ports", siblings={})
    assert not is_default("TCP", name="protocol", parent="matchLabels", siblings={})

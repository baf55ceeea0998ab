"""Built-in kinds and their shapes, as a real server serves them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tidegate.model.k8s.objects import Json, Kind
from tidegate.schema.builtin import find_shape, kubernetes_release, object_meta_shape, served_kinds
from tidegate.schema.shape import Merge, Shape, Type, find_child_shape

CONFIG_MAP = Kind("", "v1", "ConfigMap")
DEPLOYMENT = Kind("apps", "v1", "Deployment")
SERVICE = Kind("", "v1", "Service")
VOLUME = Kind("", "v1", "PersistentVolume")
DEFINITION = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


def shape_at(kind: Kind, path: str) -> Shape:
    """The shape at a path; `[]` means the items of a list."""
    shape = find_shape(kind)
    for part in path.split("."):
        assert shape is not None
        shape = find_child_shape(shape, part.removesuffix("[]"))
        if part.endswith("[]"):
            assert shape is not None
            assert shape.items is not None
            shape = shape.items()
    assert shape is not None
    return shape


def test_every_served_kind_has_a_shape() -> None:
    kinds = [served.kind for served in served_kinds()]

    assert len(kinds) > 60
    assert [kind for kind in kinds if find_shape(kind) is None] == []


def test_a_kind_has_its_plural_scope_verbs_and_subresources() -> None:
    (served,) = (each for each in served_kinds() if each.kind == DEPLOYMENT)

    assert (served.plural, served.namespaced) == ("deployments", True)
    assert {"create", "list", "patch", "watch"} <= set(served.verbs)
    assert served.subresources == ("scale", "status")


def test_the_preferred_version_of_a_group_is_first() -> None:
    versions = [each.kind.version for each in served_kinds() if each.kind.group == "autoscaling"]

    assert versions == ["v2", "v1"]


def test_a_kind_that_is_not_built_in_has_no_shape() -> None:
    assert find_shape(Kind("example.org", "v1", "Gate")) is None


def test_the_release_is_that_of_the_file() -> None:
    assert kubernetes_release().startswith("v1.36.")


@pytest.mark.parametrize(
    ("kind", "path", "merge"),
    [
        (CONFIG_MAP, "data", Merge.FIELDS),
        (CONFIG_MAP, "metadata.labels", Merge.FIELDS),
        (CONFIG_MAP, "metadata.finalizers", Merge.SET),
        (CONFIG_MAP, "metadata.ownerReferences", Merge.KEYED),
        (CONFIG_MAP, "metadata.ownerReferences[]", Merge.ATOMIC),
        (CONFIG_MAP, "metadata.managedFields", Merge.ATOMIC),
        (DEPLOYMENT, "spec.replicas", Merge.ATOMIC),
        (DEPLOYMENT, "spec.selector", Merge.ATOMIC),
        (DEPLOYMENT, "spec.template.spec.containers", Merge.KEYED),
        (DEPLOYMENT, "spec.template.spec.containers[].command", Merge.ATOMIC),
        (DEPLOYMENT, "spec.template.spec.nodeSelector", Merge.ATOMIC),
        (DEPLOYMENT, "spec.template.spec.tolerations", Merge.ATOMIC),
        (SERVICE, "spec.selector", Merge.ATOMIC),
        (VOLUME, "spec.claimRef", Merge.FIELDS),
    ],
)
def test_fields_are_merged_as_the_server_merges_them(kind: Kind, path: str, merge: Merge) -> None:
    assert shape_at(kind, path).merge is merge


@pytest.mark.parametrize(
    ("kind", "path", "keys", "defaults"),
    [
        (CONFIG_MAP, "metadata.ownerReferences", ("uid",), {"uid": ""}),
        (SERVICE, "spec.ports", ("port", "protocol"), {"port": 0, "protocol": "TCP"}),
        (
            DEPLOYMENT,
            "spec.template.spec.containers[].ports",
            ("containerPort", "protocol"),
            {"containerPort": 0, "protocol": "TCP"},
        ),
        (DEPLOYMENT, "spec.template.spec.containers[].env", ("name",), {"name": ""}),
        (DEPLOYMENT, "spec.template.spec.volumes", ("name",), {"name": ""}),
        (
            DEPLOYMENT,
            "spec.template.spec.containers[].volumeMounts",
            ("mountPath",),
            {"mountPath": ""},
        ),
    ],
)
def test_items_are_distinguished_by_their_keys(
    kind: Kind, path: str, keys: tuple[str, ...], defaults: dict[str, Json]
) -> None:
    shape = shape_at(kind, path)

    assert shape.keys == keys
    assert shape.key_defaults == defaults


@pytest.mark.parametrize(
    ("path", "type_", "format_"),
    [
        ("spec.replicas", Type.INTEGER, "int32"),
        ("spec.paused", Type.BOOLEAN, ""),
        ("spec.strategy.rollingUpdate.maxSurge", Type.INT_OR_STRING, ""),
        ("spec.template.spec.containers[].image", Type.STRING, ""),
        ("spec.template.spec.overhead.cpu", Type.INT_OR_STRING, "quantity"),
        ("metadata.creationTimestamp", Type.STRING, "date-time"),
        ("metadata.generation", Type.INTEGER, "int64"),
    ],
)
def test_scalars_have_a_type_and_a_format(path: str, type_: Type, format_: str) -> None:
    shape = shape_at(DEPLOYMENT, path)

    assert (shape.type, shape.format) == (type_, format_)


def test_a_field_without_a_schema_is_open() -> None:
    fields = shape_at(CONFIG_MAP, "metadata.managedFields[].fieldsV1")
    example = shape_at(DEFINITION, "spec.versions[].schema.openAPIV3Schema.default")

    assert fields.is_open
    assert example.is_open


def test_a_shape_may_contain_itself() -> None:
    path = "spec.versions[].schema.openAPIV3Schema"

    assert shape_at(DEFINITION, f"{path}.properties.any.not") is shape_at(DEFINITION, f"{path}.not")


def test_metadata_is_the_same_for_all_kinds() -> None:
    assert shape_at(DEPLOYMENT, "metadata") is object_meta_shape()
    assert shape_at(CONFIG_MAP, "metadata") is object_meta_shape()


def test_the_file_is_not_read_before_it_is_needed() -> None:
    program = (
        "import tidegate.schema.builtin as b; "
        "print(b._read_file.cache_info().currsize); b.served_kinds(); "
        "print(b._read_file.cache_info().currsize)"
    )

    result = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert result.stdout.split() == ["0", "1"]

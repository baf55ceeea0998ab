"""Secrets never appear in output."""

from __future__ import annotations

import pytest

from tidegate.model.k8s.objects import Json
from tidegate.model.plans.change import MASK
from tidegate.model.redaction import Redactor
from tidegate.report.rendered import mask_secrets

CANARY = "hunter2"


def a_secret(**parts: Json) -> dict[str, Json]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, **parts}


def test_every_value_of_a_secret_is_masked_and_its_keys_are_not() -> None:
    body = a_secret(data={"a": CANARY}, stringData={"b": CANARY})

    shown = mask_secrets(body)

    assert CANARY not in str(shown)
    assert (shown["data"], shown["stringData"]) == ({"a": MASK}, {"b": MASK})


def test_values_of_a_secret_that_are_no_map_are_masked_as_a_whole() -> None:
    shown = mask_secrets(a_secret(data=[CANARY], stringData=CANARY))

    assert (shown["data"], shown["stringData"]) == (MASK, MASK)


def test_the_last_applied_annotation_of_a_secret_is_masked() -> None:
    last = "kubectl.kubernetes.io/last-applied-configuration"
    body = a_secret(metadata={"name": "web", "annotations": {last: CANARY, "team": "shop"}})

    assert CANARY not in str(mask_secrets(body))
    assert "shop" in str(mask_secrets(body))


def test_decrypted_values_are_masked_in_any_kind() -> None:
    body: dict[str, Json] = {"apiVersion": "v1", "kind": "ConfigMap", "items": [{"key": CANARY}]}

    shown = mask_secrets(body, [("items", 0, "key"), ("items", 5, "key"), ("missing",)])

    assert CANARY not in str(shown)


def test_other_objects_are_unchanged() -> None:
    body = a_secret(data={"a": CANARY})
    other: dict[str, Json] = {"apiVersion": "example.org/v1", "kind": "Config", "data": {"a": "x"}}

    mask_secrets(body)

    assert body["data"] == {"a": CANARY}
    assert mask_secrets(other) == other


@pytest.mark.parametrize(
    "body",
    [
        {"apiVersion": "v1", "kind": "Secret", "data": CANARY},
        {"apiVersion": "v1", "kind": "Secret", "data": [CANARY, {"a": CANARY}]},
        {"apiVersion": "v1", "kind": "Secret", "stringdata": {"a": CANARY}},
        {"apiVersion": "v1", "kind": "Secret", "spec": {"data": {"a": CANARY}}},
        {"apiVersion": "v1", "kind": "Secret", "password": CANARY},
        {"apiVersion": "v1", "kind": "Secret", "data": {"a": {"b": [CANARY]}}},
        {"apiVersion": "v1", "kind": "secret", "data": {"a": CANARY}},
        {"apiVersion": "core/v1", "kind": "Secret", "data": {"a": CANARY}},
        {"kind": "Secret", "data": {"a": CANARY}},
        {"apiVersion": "v1", "kind": "Secrets ", "stringData": {"a": CANARY}},
    ],
)
def test_a_malformed_secret_is_masked(body: dict[str, Json]) -> None:
    body["metadata"] = {"name": "login"}

    shown = mask_secrets(body)

    assert CANARY not in str(shown)
    assert shown["metadata"] == {"name": "login"}
    assert Redactor.from_objects([(body, ())]).redact(f"got {CANARY}") == "got ***"

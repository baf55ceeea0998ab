"""Label and field selectors, as kubectl accepts them."""

from __future__ import annotations

import pytest

from tidegate.model.k8s.labels import SelectorError
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.sandbox.server.store import StoredObject
from tidegate.sandbox.server.watches import build_predicate
from tidegate.world.requests import Selection

POD = Kind("", "v1", "Pod")


def a_pod(**labels: str) -> StoredObject:
    body: dict[str, Json] = {
        "metadata": {"name": "web-0", "namespace": "shop", "labels": {**labels}},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running"},
    }
    return StoredObject(Ref(POD, "shop", "web-0"), body, (), 1)


def is_selected(pod: StoredObject, *, labels: str = "", fields: str = "") -> bool:
    belongs = build_predicate(Selection(POD, label_selector=labels, field_selector=fields))
    return belongs is None or belongs(pod)


@pytest.mark.parametrize(
    "labels",
    [
        "",
        "app=web",
        "app==web",
        "app",
        "app!=db",
        "missing!=web",
        "app in (web,db)",
        "app in ( web , db )",
        "app notin (db)",
        "missing notin (web)",
        "!missing",
        "app=web,tier=front",
        "app = web , tier in (front)",
        "app.kubernetes.io/name=shop",
        "empty=",
    ],
)
def test_labels_that_select(labels: str) -> None:
    pod = a_pod(app="web", tier="front", empty="", **{"app.kubernetes.io/name": "shop"})

    assert is_selected(pod, labels=labels)


@pytest.mark.parametrize(
    "labels",
    ["app=db", "!app", "missing", "app!=web", "app in (db)", "app notin (web,db)", "app=web,!tier"],
)
def test_labels_that_do_not_select(labels: str) -> None:
    assert not is_selected(a_pod(app="web", tier="front"), labels=labels)


@pytest.mark.parametrize("labels", ["app in web", "=web", "app=web,,", "app in (web", "a b"])
def test_labels_that_a_server_refuses(labels: str) -> None:
    with pytest.raises(SelectorError):
        build_predicate(Selection(POD, label_selector=labels))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("metadata.name=web-0", True),
        ("metadata.name!=web-0", False),
        ("metadata.namespace=shop,status.phase=Running", True),
        ("status.phase!=Running", False),
        ("spec.nodeName==n1", True),
        ("spec.nodeName=", False),
        ("status.podIP=", True),
    ],
)
def test_fields_select(fields: str, *, expected: bool) -> None:
    assert is_selected(a_pod(), fields=fields) is expected


def test_events_are_selected_by_their_object() -> None:
    kind = Kind("", "v1", "Event")
    body: dict[str, Json] = {"involvedObject": {"kind": "Pod", "uid": "u1"}, "type": "Normal"}
    belongs = build_predicate(Selection(kind, field_selector="involvedObject.uid=u1,type!=Warning"))

    assert belongs is not None
    assert belongs(StoredObject(Ref(kind, "shop", "web-0.1"), body, (), 1))


def test_a_field_that_cannot_be_selected_by_is_refused() -> None:
    with pytest.raises(SelectorError, match=r"field label not supported: spec\.containers"):
        build_predicate(Selection(POD, field_selector="spec.containers=app"))

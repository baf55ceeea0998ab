"""Requests as they go over the wire."""

from __future__ import annotations

import msgspec
import pytest

from tidegate.kube.http_requests import (
    build_get,
    build_list,
    build_logs,
    build_watch,
    build_write,
    object_path,
)
from tidegate.model.k8s.objects import Kind, Propagation, Ref, ServedKind
from tidegate.world.requests import Get, List, Logs, PatchType, Selection, Verb, View, Watch, Write

DEPLOYMENT = Kind("apps", "v1", "Deployment")
DEPLOYMENTS = ServedKind(DEPLOYMENT, "deployments", True, (), ())
NODES = ServedKind(Kind("", "v1", "Node"), "nodes", False, (), ())
WEB = Ref(DEPLOYMENT, "shop", "web")


@pytest.mark.parametrize(
    ("served", "namespace", "name", "path"),
    [
        (DEPLOYMENTS, "shop", "web", "/apis/apps/v1/namespaces/shop/deployments/web"),
        (DEPLOYMENTS, "", "", "/apis/apps/v1/deployments"),
        (NODES, "", "n1", "/api/v1/nodes/n1"),
        (NODES, "", "a/../b?c", "/api/v1/nodes/a%2F..%2Fb%3Fc"),
    ],
)
def test_paths_name_the_kind_and_cannot_be_escaped_from(
    served: ServedKind, namespace: str, name: str, path: str
) -> None:
    assert object_path(served, namespace, name) == path


def test_an_apply_names_its_manager_and_is_sent_as_it_was_encoded() -> None:
    write = Write(verb=Verb.APPLY, ref=WEB, body=b'{"a":1}', manager="tidegate", force=True)

    request = build_write(write, DEPLOYMENTS)

    assert request.method == "PATCH"
    assert request.path.endswith("?fieldManager=tidegate&force=true&fieldValidation=Warn")
    assert request.content_type == "application/apply-patch+yaml"
    assert request.body is write.body


def test_a_dry_run_is_strict_only_if_requested() -> None:
    write = Write(verb=Verb.CREATE, ref=WEB, body=b"{}", dry_run=True, strict=True)

    request = build_write(write, DEPLOYMENTS)

    assert request.method == "POST"
    assert request.path == (
        "/apis/apps/v1/namespaces/shop/deployments?dryRun=All&fieldValidation=Strict"
    )


def test_a_deletion_carries_its_preconditions() -> None:
    write = Write(
        verb=Verb.DELETE,
        ref=WEB,
        uid="u1",
        resource_version="7",
        propagation=Propagation.FOREGROUND,
    )

    options = msgspec.json.decode(build_write(write, DEPLOYMENTS).body)

    assert options["preconditions"] == {"uid": "u1", "resourceVersion": "7"}
    assert options["propagationPolicy"] == "Foreground"
    assert "gracePeriodSeconds" not in options


def test_a_deletion_can_have_a_grace_period() -> None:
    write = Write(verb=Verb.DELETE, ref=WEB, grace_period_seconds=0)

    options = msgspec.json.decode(build_write(write, DEPLOYMENTS).body)

    assert options["gracePeriodSeconds"] == 0


@pytest.mark.parametrize("verb", [Verb.APPLY, Verb.REPLACE, Verb.PATCH])
def test_preconditions_of_other_writes_are_in_the_metadata(verb: Verb) -> None:
    body = b'{"spec":{"big":12345678901234567890},"metadata":{"name":"web"}}'
    write = Write(verb=verb, ref=WEB, body=body, uid="u1", resource_version="7")

    sent = msgspec.json.decode(build_write(write, DEPLOYMENTS).body)

    assert sent["metadata"] == {"name": "web", "uid": "u1", "resourceVersion": "7"}
    assert sent["spec"] == {"big": 12345678901234567890}


def test_a_json_patch_claims_its_preconditions_first() -> None:
    body = b'[{"op":"remove","path":"/data/a"}]'
    write = Write(verb=Verb.PATCH, patch_type=PatchType.JSON, ref=WEB, body=body, uid="u1")

    sent = msgspec.json.decode(build_write(write, DEPLOYMENTS).body)

    assert sent == [
        {"op": "replace", "path": "/metadata/uid", "value": "u1"},
        {"op": "remove", "path": "/data/a"},
    ]


def test_a_metadata_request_excludes_the_rest_of_the_object() -> None:
    seen = Selection(DEPLOYMENT, view=View.METADATA)

    request = [
        build_get(Get(WEB, View.METADATA), DEPLOYMENTS).accept,
        build_watch(Watch(seen), DEPLOYMENTS, seconds=300).accept,
        build_list(List(seen), DEPLOYMENTS).accept,
    ]

    assert ["as=PartialObjectMetadata;" in accept for accept in request] == [True, True, False]
    assert "as=PartialObjectMetadataList;" in request[2]


def test_selectors_are_encoded() -> None:
    seen = Selection(
        DEPLOYMENT, "shop", label_selector="app in (a,b)", field_selector="metadata.name=web"
    )

    path = build_list(List(seen, 500, "tok/en="), DEPLOYMENTS).path

    assert path == (
        "/apis/apps/v1/namespaces/shop/deployments?labelSelector=app+in+%28a%2Cb%29"
        "&fieldSelector=metadata.name%3Dweb&limit=500&continue=tok%2Fen%3D"
    )


def test_logs_ask_for_the_end_of_one_container() -> None:
    pods = ServedKind(Kind("", "v1", "Pod"), "pods", True, (), ())
    logs = Logs(ref=Ref(pods.kind, "shop", "p"), container="app", tail=20, previous=True)

    path = build_logs(logs, pods).path

    assert path == "/api/v1/namespaces/shop/pods/p/log?container=app&tailLines=20&previous=true"

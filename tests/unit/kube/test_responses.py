"""Replies as API servers send them, and the outcomes they stand for."""

from __future__ import annotations

import msgspec
import pytest

from tidegate.kube.http_responses import HttpResponse, read_error, read_list_page, read_object
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.model.times import Ms
from tidegate.world.messages import (
    AlreadyExists,
    Cause,
    Conflict,
    Expired,
    FieldOwner,
    Forbidden,
    Invalid,
    NotFound,
    NotServed,
    ServerError,
    Success,
    TooManyRequests,
)

CONFIG_MAP = Kind("", "v1", "ConfigMap")


def a_refusal(code: int, reason: str, message: str = "no", **details: Json) -> HttpResponse:
    status: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": message,
        "details": details,
        "code": code,
    }
    return HttpResponse(code, msgspec.json.encode(status))


def test_an_object_is_read_no_deeper_than_its_metadata() -> None:
    body = (
        b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"web","namespace":"shop",'
        b'"uid":"u1","resourceVersion":"7","generation":3},"data":{"color":"blue"}}'
    )

    done = read_object(HttpResponse(200, body, warnings=("deprecated",)), CONFIG_MAP)

    assert done.warnings == ("deprecated",)
    assert done.live is not None
    assert done.live.ref == Ref(CONFIG_MAP, "shop", "web")
    assert (done.live.uid, done.live.generation, done.live.resource_version) == ("u1", 3, "7")
    assert done.live.body is body


def test_a_deletion_that_took_effect_leaves_nothing_to_show() -> None:
    body = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}'

    assert read_object(HttpResponse(200, body), CONFIG_MAP) == Success()


def test_items_of_a_page_get_the_requested_kind() -> None:
    body = (
        b'{"kind":"ConfigMapList","metadata":{"resourceVersion":"9","continue":"more"},'
        b'"items":[{"metadata":{"name":"a","namespace":"shop"}}]}'
    )

    page = read_list_page(HttpResponse(200, body), CONFIG_MAP)

    assert [item.ref for item in page.items] == [Ref(CONFIG_MAP, "shop", "a")]
    assert (page.resource_version, page.continue_token) == ("9", "more")


def test_an_empty_page_can_have_null_items() -> None:
    body = b'{"kind":"ConfigMapList","metadata":{"resourceVersion":"9"},"items":null}'

    assert read_list_page(HttpResponse(200, body), CONFIG_MAP).items == ()


def test_a_conflict_names_the_managers_and_their_fields() -> None:
    causes: Json = [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl" with subresource "scale" using apps/v1',
            "field": ".spec.replicas",
        }
    ]

    refusal = read_error(a_refusal(409, "Conflict", causes=causes))

    assert refusal == Conflict("no", (FieldOwner("kubectl", "spec.replicas"),))


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (a_refusal(404, "NotFound", name="web", kind="configmaps"), NotFound("no")),
        (a_refusal(404, "NotFound"), NotServed("no")),
        (HttpResponse(404, b"404 page not found\n"), NotServed("404 page not found")),
        (a_refusal(409, "AlreadyExists", name="web"), AlreadyExists("no")),
        (a_refusal(409, "Conflict", name="web"), Conflict("no")),
        (a_refusal(410, "Expired"), Expired("no")),
        (a_refusal(403, "Forbidden"), Forbidden("no")),
        (a_refusal(401, "Unauthorized"), ServerError(401, "Unauthorized", "no")),
        (a_refusal(429, "TooManyRequests"), TooManyRequests("no", Ms(1_000))),
        (a_refusal(429, "TooManyRequests", retryAfterSeconds=3), TooManyRequests("no", Ms(3_000))),
        (
            a_refusal(504, "Timeout", retryAfterSeconds=2),
            ServerError(504, "Timeout", "no", Ms(2_000)),
        ),
        (HttpResponse(503, b""), ServerError(503, "", "HTTP 503")),
        (HttpResponse(302, b"<a href=login>"), ServerError(302, "", "<a href=login>")),
    ],
)
def test_each_refusal_has_its_own_outcome(reply: HttpResponse, outcome: object) -> None:
    assert read_error(reply) == outcome


def test_retry_after_sets_the_delay() -> None:
    busy = HttpResponse(429, b"Too many requests, please try again later.", retry_after="4")

    assert read_error(busy) == TooManyRequests(
        "Too many requests, please try again later.", Ms(4_000)
    )


def test_an_invalid_object_names_its_fields() -> None:
    causes: Json = [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.selector"}
    ]

    refusal = read_error(a_refusal(422, "Invalid", causes=causes))

    assert refusal == Invalid(
        "no", (Cause("spec.selector", "FieldValueRequired", "Required value"),)
    )


@pytest.mark.parametrize(
    "message",
    [
        'strict decoding error: unknown field "spec.replicsa"',
        (
            "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): "
            ".spec.replicsa: field not declared in schema"
        ),
    ],
)
def test_an_unknown_field_is_named_for_each_message_of_the_server(message: str) -> None:
    refusal = read_error(a_refusal(400, "BadRequest", message))

    assert isinstance(refusal, Invalid)
    assert refusal.causes == (Cause("spec.replicsa", "unknown", "unknown field"),)


def test_a_value_of_the_wrong_type_is_invalid_despite_status_500() -> None:
    message = (
        "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): errors:\n"
        "  .spec.replicas: expected numeric (int or float), got string\n"
        "  .spec.paused: expected boolean, got string\n"
        '  .spec.env[name="a: b"].value: expected string, got 1'
    )

    refusal = read_error(a_refusal(500, "", message))

    assert isinstance(refusal, Invalid)
    assert refusal.causes == (
        Cause('spec.env[name="a: b"].value', "type", "expected string, got 1"),
        Cause("spec.paused", "type", "expected boolean, got string"),
        Cause("spec.replicas", "type", "expected numeric (int or float), got string"),
    )


def test_a_malformed_text_is_invalid_despite_status_500() -> None:
    message = (
        "failed to convert new object (shop/web; apps/v1, Kind=Deployment) to proper version: "
        "unable to convert unstructured object to apps/v1, Kind=Deployment: quantities must match"
    )

    assert read_error(a_refusal(500, "", message)) == Invalid(message)

"""The server of a webhook: it runs, but does not answer until the test allows it."""

from __future__ import annotations

import base64
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from plane import ControlPlane
from tests.support.certificates import issue
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.http_application import served
from tests.support.objects import a_service, an_object
from tidegate.model.k8s.objects import Json, JsonObject, Kind

SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice")
VALIDATING = Kind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class HookServer:
    """How an API server calls it, and how the test sets its answers."""

    client: JsonObject
    start: Callable[[], Awaitable[None]]


async def an_answering_service(client: ClusterClient) -> HookServer:
    """A Service whose pods are there and not ready: no server calls it before they are."""
    require_live(await client.create(a_service("hook")))
    await _set_endpoint(client, is_ready=False)

    async def start() -> None:
        await _set_endpoint(client, is_ready=True)

    service: JsonObject = {"namespace": client.namespace, "name": "hook", "port": 443}
    bundle = base64.b64encode(issue("hook", is_authority=True).certificate).decode()
    return HookServer({"service": service, "caBundle": bundle}, start)


async def _set_endpoint(client: ClusterClient, *, is_ready: bool) -> None:
    endpoint: Json = {"addresses": ["192.0.2.7"], "conditions": {"ready": is_ready}}
    body = an_object(SLICE, "hook-1", addressType="IPv4", endpoints=[endpoint], ports=[])
    labels: JsonObject = {"kubernetes.io/service-name": "hook"}
    labelled: JsonObject = {**body, "metadata": {"name": "hook-1", "labels": labels}}
    require_live(await client.apply(labelled, manager="controller"))


@asynccontextmanager
async def an_answering_port(plane: ControlPlane) -> AsyncIterator[HookServer]:
    """On a real server: a port of this machine that hangs up."""
    answers = False

    async def review(request: web.Request) -> web.Response:
        if not answers:
            assert request.transport is not None
            request.transport.abort()
        requested = await request.json()
        response: Json = {"uid": requested["request"]["uid"], "allowed": True}
        return web.json_response({**requested, "request": None, "response": response})

    async def start() -> None:
        nonlocal answers
        answers = True

    name = f"hook-{next(_numbers)}"
    certificate, key = plane.authority.for_server(name, names=["127.0.0.1"])
    bundle = base64.b64encode(plane.ca.read_bytes()).decode()
    app = web.Application()
    app.router.add_post("/", review)
    async with served(app, certificate=certificate, key=key) as port:
        yield HookServer({"url": f"https://127.0.0.1:{port}/", "caBundle": bundle}, start)


def a_webhook(
    namespace: str, client: JsonObject, *, asks: tuple[str, str] = ("", "configmaps"), **parts: Json
) -> JsonObject:
    """Asks about all objects of a kind in a namespace, given by its group, and fails closed."""
    group, plural = asks
    rule: Json = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [plural],
    }
    hook: JsonObject = {
        "name": "gate.example.org",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 2,
        "clientConfig": client,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [rule],
        **parts,
    }
    return an_object(VALIDATING, namespace, webhooks=[hook])

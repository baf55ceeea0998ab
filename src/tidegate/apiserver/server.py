"""The HTTP server: routes requests to a World and returns the outcomes.

Clients must have the token. There is no authorization, as everywhere in a simulated cluster.
"""

from __future__ import annotations

import asyncio
import hmac
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import msgspec
from aiohttp import web

from tidegate.apiserver import discovery, openapi
from tidegate.apiserver.discovery import ServedKinds
from tidegate.apiserver.errors import build_error_response, build_status
from tidegate.apiserver.real_time_driver import POLL_SECONDS, RealTimeDriver
from tidegate.apiserver.requests import (
    ApiRequest,
    BadRequestError,
    ResourcePath,
    build_deletion,
    build_list,
    build_logs,
    build_selection,
    build_write,
    parse_path,
    watch_seconds,
)
from tidegate.apiserver.responses import ObjectEncoder, ObjectForm, encode_error_event, parse_accept
from tidegate.apiserver.scale import SCALABLE_KINDS, SCALE, build_scale, patch_from_scale
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.kinds import CRD
from tidegate.model.k8s.objects import Json, JsonObject, LiveObject
from tidegate.world import messages
from tidegate.world.requests import Discover, Get, List, Logs, RawGet, Selection, Verb, Watch, Write

HOST = "127.0.0.1"
JSON = "application/json"
HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
NO_RESOURCE = "the server could not find the requested resource"
WRITABLE_SUBRESOURCES = ("", "status", "binding", "finalize")
"""Subresources through which an object can be written; empty for the object itself."""
UNSUPPORTED_SUBRESOURCES = {
    name: f"containers are simulated and run no programs: `{name}` is not supported"
    for name in ("exec", "attach", "portforward", "proxy")
}
MAX_BODY_SIZE = 16 * 1024 * 1024
SHUTDOWN_SECONDS = 0.5
"""Time for pending responses when the server stops; watches do not end by themselves."""
CLIENT_GONE_ERRORS = (ConnectionError, OSError)
"""Errors that are raised when a client has disconnected."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ApiServer:
    """The API of the only cluster of a World."""

    def __init__(self, driver: RealTimeDriver, token: str) -> None:
        self._driver = driver
        self._token = token.encode()
        self._served_kinds: ServedKinds | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Handle any request."""
        token = request.headers.get("Authorization", "").removeprefix("Bearer ").encode()
        if not hmac.compare_digest(token, self._token):
            return _failure_response(401, "Unauthorized", "Unauthorized")
        try:
            return await self._route(request)
        except BadRequestError as error:
            return _failure_response(error.status, error.reason, str(error))

    async def _route(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/") or "/"
        if path in HEALTH_PATHS:
            return web.Response(text="ok")
        if path == "/version":
            return await self._version()
        if path in {"/api", "/apis"} or path.startswith("/openapi"):
            return await self._discover(path, request.headers.get("Accept", ""))
        resource_path = parse_path(path)
        if resource_path is None:
            return _not_found_response()
        if not resource_path.plural:
            served_kinds = await self._refresh_kinds()
            return _json_or_not_found(
                discovery.build_resource_list(
                    served_kinds, resource_path.group, resource_path.version
                )
            )
        return await self._handle_objects(request, resource_path)

    async def _version(self) -> web.StreamResponse:
        outcome = await self._driver.request(RawGet("/version"))
        return (
            _json_response(outcome.body)
            if isinstance(outcome, messages.RawResponse)
            else _not_found_response()
        )

    async def _discover(self, path: str, accept: str) -> web.StreamResponse:
        served_kinds = await self._refresh_kinds()
        if path.startswith("/openapi"):
            _, _, suffix = path.partition("/openapi/v3")
            if not path.startswith("/openapi/v3"):
                return _not_found_response()
            group_path = suffix.strip("/")
            document = (
                openapi.build_document(served_kinds, group_path)
                if group_path
                else openapi.build_index(served_kinds)
            )
            return _json_or_not_found(document)
        for version in discovery.AGGREGATED_VERSIONS:
            if f"v={version}" in accept and "APIGroupDiscoveryList" in accept:
                body = discovery.build_aggregated_discovery(
                    served_kinds, version, core=path == "/api"
                )
                return _json_response(
                    msgspec.json.encode(body), discovery.AGGREGATED_CONTENT_TYPE.format(version)
                )
        versions: JsonObject = {"kind": "APIVersions", "versions": ["v1"]}
        return _json_or_not_found(
            versions if path == "/api" else discovery.build_group_list(served_kinds)
        )

    async def _refresh_kinds(self) -> ServedKinds:
        """Return the kinds that are served now."""
        resources = await self._driver.request(Discover())
        page = await self._driver.request(List(Selection(CRD)))
        definitions = page.items if isinstance(page, messages.ListPage) else ()
        bodies: list[JsonObject] = [
            msgspec.json.decode(definition.body) for definition in definitions
        ]
        served = resources.kinds if isinstance(resources, messages.ApiResources) else ()
        self._served_kinds = ServedKinds.from_definitions(served, bodies)
        return self._served_kinds

    async def _handle_objects(
        self, request: web.Request, resource_path: ResourcePath
    ) -> web.StreamResponse:
        served_kinds = self._served_kinds
        served = served_kinds and served_kinds.find(*resource_path[:3])
        if served_kinds is None or not served:
            served_kinds = await self._refresh_kinds()
            served = served_kinds.find(*resource_path[:3])
        if not served:
            return _not_found_response()
        api_request = ApiRequest(
            served,
            resource_path,
            dict(request.query),
            await request.read(),
            request.content_type,
            request.headers.get("User-Agent", "").partition("/")[0],
        )
        if resource_path.subresource not in WRITABLE_SUBRESOURCES:
            return await self._handle_subresource(request, api_request)
        if request.method != "GET":
            return await self._write(request.method, api_request)
        output_format = parse_accept(
            request.headers.get("Accept", ""), api_request.query.get("includeObject", "")
        )
        if output_format.form is ObjectForm.TABLE and served.kind in served_kinds.columns:
            served_kinds = await self._refresh_kinds()
        encoder = ObjectEncoder(api_request, output_format, served_kinds)
        if api_request.is_set("watch"):
            return await self._watch(request, api_request, encoder)
        return await (
            self._get(api_request, encoder)
            if resource_path.name
            else self._list(api_request, encoder)
        )

    async def _handle_subresource(
        self, request: web.Request, api_request: ApiRequest
    ) -> web.StreamResponse:
        """Handle the subresources `log` and `scale`, and those that are not supported."""
        name = api_request.path.subresource
        if name in UNSUPPORTED_SUBRESOURCES:
            return _failure_response(501, "NotImplemented", UNSUPPORTED_SUBRESOURCES[name])
        if name == SCALE and api_request.served.kind in SCALABLE_KINDS:
            return await self._scale(request.method, api_request)
        if name == "log" and request.method == "GET":
            return await self._log(request, api_request)
        return _not_found_response()

    async def _get(self, api_request: ApiRequest, encoder: ObjectEncoder) -> web.StreamResponse:
        outcome = await self._driver.request(Get(api_request.ref))
        if isinstance(outcome, messages.Success) and outcome.live:
            return _json_response(encoder.encode(outcome.live, self._driver.now()))
        return _error_response(outcome, api_request)

    async def _list(self, api_request: ApiRequest, encoder: ObjectEncoder) -> web.StreamResponse:
        outcome = await self._driver.request(build_list(api_request))
        if not isinstance(outcome, messages.ListPage):
            return _error_response(outcome, api_request)
        now = self._driver.now()
        return _json_response(
            encoder.encode_page(
                outcome.items, outcome.resource_version, outcome.continue_token, now
            )
        )

    async def _log(self, request: web.Request, api_request: ApiRequest) -> web.StreamResponse:
        outcome = await self._driver.request(build_logs(api_request))
        if not isinstance(outcome, messages.RawResponse):
            return _error_response(outcome, api_request)
        if not api_request.is_set("follow"):
            return web.Response(body=outcome.body, content_type="text/plain")
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        with suppress(*CLIENT_GONE_ERRORS):
            await response.prepare(request)
            await response.write(outcome.body)
            await self._follow(response, api_request)
            await response.write_eof()
        return response

    async def _follow(self, response: web.StreamResponse, api_request: ApiRequest) -> None:
        """Stream new log lines until the container has ended."""
        full_log = msgspec.structs.replace(build_logs(api_request), tail=0)
        previous = await self._driver.request(full_log)
        sent_size = len(previous.body) if isinstance(previous, messages.RawResponse) else 0
        while True:
            outcome = await self._driver.request(Get(api_request.ref))
            is_running = (
                isinstance(outcome, messages.Success)
                and outcome.live
                and _may_print_more(outcome.live, full_log)
            )
            log = await self._driver.request(full_log)
            if isinstance(log, messages.RawResponse) and len(log.body) > sent_size:
                await response.write(log.body[sent_size:])
                sent_size = len(log.body)
            if not is_running:
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _scale(self, method: str, api_request: ApiRequest) -> web.StreamResponse:
        """Read or change the number of replicas."""
        if method == "GET":
            outcome = await self._driver.request(Get(api_request.ref))
        else:
            body, resource_version = patch_from_scale(api_request.body)
            manager = api_request.query.get("fieldManager") or api_request.user_agent
            dry_run = "All" in api_request.query.get("dryRun", "")
            patch = Write(
                verb=Verb.PATCH,
                ref=api_request.ref,
                body=body,
                manager=manager,
                dry_run=dry_run,
                resource_version=resource_version,
            )
            outcome = await self._driver.request(patch)
        if isinstance(outcome, messages.Success) and outcome.live:
            return _json_response(build_scale(outcome.live))
        return _error_response(outcome, api_request)

    async def _write(self, method: str, api_request: ApiRequest) -> web.StreamResponse:
        if method == "DELETE" and not api_request.path.name:
            return await self._delete_all(api_request)
        write = build_write(method, api_request)
        outcome = await self._driver.request(write)
        if not isinstance(outcome, messages.Success):
            return _error_response(outcome, api_request)
        body = outcome.live.body if outcome.live else _success_status(api_request)
        status = 201 if write.verb is Verb.CREATE else 200
        return _json_response(body, status=status, warnings=outcome.warnings)

    async def _delete_all(self, api_request: ApiRequest) -> web.StreamResponse:
        """Delete all selected objects, one by one."""
        page = await self._driver.request(build_list(api_request))
        if not isinstance(page, messages.ListPage):
            return _error_response(page, api_request)
        for live in page.items:
            await self._driver.request(
                build_deletion(api_request, live.ref.name, live.ref.namespace)
            )
        return _json_response(_success_status(api_request))

    async def _watch(
        self, request: web.Request, api_request: ApiRequest, encoder: ObjectEncoder
    ) -> web.StreamResponse:
        """Stream the existing objects, if requested, and then every change until the watch ends."""
        resource_version, initial_objects = (
            api_request.query.get("resourceVersion", ""),
            tuple[LiveObject, ...](),
        )
        if resource_version in {"", "0"} or api_request.is_set("sendInitialEvents"):
            page = await self._driver.request(List(build_selection(api_request)))
            if not isinstance(page, messages.ListPage):
                return _error_response(page, api_request)
            resource_version, initial_objects = page.resource_version, page.items
        response = web.StreamResponse(headers={"Content-Type": JSON})
        timeout = self._driver.to_world_time(watch_seconds(api_request))
        async with self._driver.watch(
            Watch(build_selection(api_request), resource_version=resource_version, timeout=timeout)
        ) as stream:
            with suppress(*CLIENT_GONE_ERRORS):
                await response.prepare(request)
                for live in initial_objects:
                    await response.write(encoder.encode_event("ADDED", live, self._driver.now()))
                if api_request.is_set("sendInitialEvents"):
                    await response.write(
                        encoder.encode_bookmark(resource_version, ends_initial_events=True)
                    )
                async for message in stream():
                    line = self._encode_message(message, api_request, encoder)
                    if line:
                        await response.write(line)
                await response.write_eof()
        return response

    def _encode_message(
        self,
        message: messages.WatchEvent | messages.Bookmark | messages.WatchEnded,
        api_request: ApiRequest,
        encoder: ObjectEncoder,
    ) -> bytes:
        match message:
            case messages.WatchEvent():
                return encoder.encode_event(message.type.name, message.live, self._driver.now())
            case messages.Bookmark():
                wants_bookmarks = api_request.is_set("allowWatchBookmarks")
                return encoder.encode_bookmark(message.resource_version) if wants_bookmarks else b""
            case messages.WatchEnded():
                return (
                    encode_error_event(build_error_response(message.outcome).body)
                    if message.outcome
                    else b""
                )


def _may_print_more(live: LiveObject, request: Logs) -> bool:
    """Return whether a container may print more: it is running, or has not started yet."""
    pod: dict[str, Json] = msgspec.json.decode(live.body)
    statuses = (
        *get_mappings(pod, "status", "initContainerStatuses"),
        *get_mappings(pod, "status", "containerStatuses"),
    )
    selected = [
        status for status in statuses if request.container in {"", get_text(status, "name")}
    ]
    if not selected:
        return get_text(pod, "status", "phase", default="Pending") == "Pending"
    return any(
        get_mapping(status, "state", "running")
        or not (
            get_mapping(status, "state", "terminated")
            or get_mapping(status, "lastState", "terminated")
        )
        for status in selected
    )


def _success_status(api_request: ApiRequest) -> bytes:
    """Return the `Status` for a deleted object."""
    details: JsonObject = {"name": api_request.path.name, "kind": api_request.served.plural}
    header: JsonObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return msgspec.json.encode({**header, "details": details})


def _error_response(outcome: messages.Outcome, api_request: ApiRequest) -> web.Response:
    if not messages.is_error(outcome):
        raise TypeError(outcome)
    details: JsonObject = {
        "name": api_request.path.name,
        "group": api_request.served.kind.group,
        "kind": api_request.served.plural,
    }
    response = build_error_response(outcome, **details)
    headers = {"Retry-After": str(response.retry_after)} if response.retry_after else None
    body = msgspec.json.encode(response.body)
    return web.Response(body=body, status=response.status, content_type=JSON, headers=headers)


def _json_response(
    body: bytes,
    content_type: str = JSON,
    *,
    status: int = 200,
    warnings: tuple[str, ...] = (),
) -> web.Response:
    response = web.Response(body=body, status=status, headers={"Content-Type": content_type})
    for warning in warnings:
        quoted = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{quoted}"')
    return response


def _failure_response(status: int, reason: str, message: str) -> web.Response:
    body = msgspec.json.encode(build_status(status, reason, message))
    return web.Response(body=body, status=status, content_type=JSON)


def _not_found_response() -> web.Response:
    return _failure_response(404, "NotFound", NO_RESOURCE)


def _json_or_not_found(body: JsonObject | None) -> web.Response:
    return _json_response(msgspec.json.encode(body)) if body is not None else _not_found_response()


@asynccontextmanager
async def serve_http(handler: Handler, *, port: int, tls: ssl.SSLContext) -> AsyncIterator[int]:
    """Listen on the local interface. Yields the port."""
    application = web.Application(client_max_size=MAX_BODY_SIZE)
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(
        application, handler_cancellation=True, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, port, ssl_context=tls)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()

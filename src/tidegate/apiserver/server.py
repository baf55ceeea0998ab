"""A world's API over HTTP: requests in, calls to the world, and what comes of them.

Who calls must have the token; what a caller may do is not asked, as nowhere in a simulated cluster.
"""

from __future__ import annotations

import asyncio
import hmac
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import msgspec
from aiohttp import web

from tidegate.apiserver import catalogue, openapi
from tidegate.apiserver.catalogue import Body, Serving
from tidegate.apiserver.replies import Teller, TellingForm, error_event, wanted_of
from tidegate.apiserver.requests import (
    BadRequestError,
    HttpAsked,
    PathSpot,
    deletion_of,
    lasting_of,
    list_of,
    logs_of,
    selection_of,
    spot_of,
    write_of,
)
from tidegate.apiserver.scaling import SCALE, SCALED, change_of, scale_of
from tidegate.apiserver.statuses import refused, status_of
from tidegate.apiserver.switchboard import BEAT, Switchboard
from tidegate.model.objects import Json, Kind, Live
from tidegate.model.reading import mapping, mappings, text
from tidegate.world import facts
from tidegate.world.calls import Get, Http, Kinds, List, Logs, Selection, Verb, Watch, Write

HOST = "127.0.0.1"
JSON = "application/json"
DEFINITIONS = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
WELL = ("/healthz", "/livez", "/readyz")
NO_RESOURCE = "the server could not find the requested resource"
THROUGH = ("", "status", "binding", "finalize")
"""What can be written of an object: itself, or one of these parts of it."""
NOT_PLAYED = {
    name: f"containers are simulated here, and nothing runs in them: `{name}` is not served"
    for name in ("exec", "attach", "portforward", "proxy")
}
LARGEST = 16 * 1024 * 1024
PARTING = 0.5
"""Seconds that answers under way have when the server ends; watches have no end of their own."""
GONE = (ConnectionError, OSError)
"""What is raised where a client has left."""

Answerer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ApiServer:
    """Answers requests for the one cluster of a world."""

    def __init__(self, board: Switchboard, token: str) -> None:
        self._board = board
        self._token = token.encode()
        self._serving: Serving | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request, whatever it is."""
        given = request.headers.get("Authorization", "").removeprefix("Bearer ").encode()
        if not hmac.compare_digest(given, self._token):
            return _failure(401, "Unauthorized", "Unauthorized")
        try:
            return await self._answer(request)
        except BadRequestError as error:
            return _failure(error.status, error.reason, str(error))

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/") or "/"
        if path in WELL:
            return web.Response(text="ok")
        if path == "/version":
            return await self._version()
        if path in {"/api", "/apis"} or path.startswith("/openapi"):
            return await self._discover(path, request.headers.get("Accept", ""))
        spot = spot_of(path)
        if spot is None:
            return _not_found()
        if not spot.plural:
            serving = await self._look()
            return _or_missing(catalogue.resource_list(serving, spot.group, spot.version))
        return await self._of_objects(request, spot)

    async def _version(self) -> web.StreamResponse:
        outcome = await self._board.ask(Http("/version"))
        return _json(outcome.body) if isinstance(outcome, facts.Said) else _not_found()

    async def _discover(self, path: str, accept: str) -> web.StreamResponse:
        serving = await self._look()
        if path.startswith("/openapi"):
            _, _, place = path.partition("/openapi/v3")
            if not path.startswith("/openapi/v3"):
                return _not_found()
            inside = place.strip("/")
            found = openapi.document(serving, inside) if inside else openapi.index(serving)
            return _or_missing(found)
        for form in catalogue.FORMS:
            if f"v={form}" in accept and "APIGroupDiscoveryList" in accept:
                body = catalogue.aggregated(serving, form, core=path == "/api")
                return _json(msgspec.json.encode(body), catalogue.AGGREGATED.format(form))
        versions: Body = {"kind": "APIVersions", "versions": ["v1"]}
        return _or_missing(versions if path == "/api" else catalogue.group_list(serving))

    async def _look(self) -> Serving:
        """What is served now."""
        kinds = await self._board.ask(Kinds())
        listed = await self._board.ask(List(Selection(DEFINITIONS)))
        found = listed.items if isinstance(listed, facts.Listed) else ()
        bodies: list[Body] = [msgspec.json.decode(one.body) for one in found]
        served = kinds.kinds if isinstance(kinds, facts.Catalogue) else ()
        self._serving = Serving.of(served, bodies)
        return self._serving

    async def _of_objects(self, request: web.Request, spot: PathSpot) -> web.StreamResponse:
        serving = self._serving
        found = serving and serving.find(*spot[:3])
        if serving is None or not found:
            serving = await self._look()
            found = serving.find(*spot[:3])
        if not found:
            return _not_found()
        asked = HttpAsked(
            found,
            spot,
            dict(request.query),
            await request.read(),
            request.content_type,
            request.headers.get("User-Agent", "").partition("/")[0],
        )
        if spot.subresource not in THROUGH:
            return await self._part(request, asked)
        if request.method != "GET":
            return await self._write(request.method, asked)
        wanted = wanted_of(request.headers.get("Accept", ""), asked.query.get("includeObject", ""))
        if wanted.form is TellingForm.TABLE and found.kind in serving.columns:
            serving = await self._look()
        teller = Teller(asked, wanted, serving)
        if asked.is_said("watch"):
            return await self._watch(request, asked, teller)
        return await (self._get(asked, teller) if spot.name else self._list(asked, teller))

    async def _part(self, request: web.Request, asked: HttpAsked) -> web.StreamResponse:
        """What an object has besides its text: its log, its scale, its containers."""
        name = asked.spot.subresource
        if name in NOT_PLAYED:
            return _failure(501, "NotImplemented", NOT_PLAYED[name])
        if name == SCALE and asked.served.kind in SCALED:
            return await self._scale(request.method, asked)
        if name == "log" and request.method == "GET":
            return await self._log(request, asked)
        return _not_found()

    async def _get(self, asked: HttpAsked, teller: Teller) -> web.StreamResponse:
        outcome = await self._board.ask(Get(asked.ref))
        if isinstance(outcome, facts.Done) and outcome.live:
            return _json(teller.one(outcome.live, self._board.now()))
        return _refusal(outcome, asked)

    async def _list(self, asked: HttpAsked, teller: Teller) -> web.StreamResponse:
        outcome = await self._board.ask(list_of(asked))
        if not isinstance(outcome, facts.Listed):
            return _refusal(outcome, asked)
        now = self._board.now()
        return _json(teller.page(outcome.items, outcome.version, outcome.resume, now))

    async def _log(self, request: web.Request, asked: HttpAsked) -> web.StreamResponse:
        outcome = await self._board.ask(logs_of(asked))
        if not isinstance(outcome, facts.Said):
            return _refusal(outcome, asked)
        if not asked.is_said("follow"):
            return web.Response(body=outcome.body, content_type="text/plain")
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        with suppress(*GONE):
            await response.prepare(request)
            await response.write(outcome.body)
            await self._follow(response, asked)
            await response.write_eof()
        return response

    async def _follow(self, response: web.StreamResponse, asked: HttpAsked) -> None:
        """What a container prints from now on, until it has ended."""
        whole = msgspec.structs.replace(logs_of(asked), tail=0)
        before = await self._board.ask(whole)
        told = len(before.body) if isinstance(before, facts.Said) else 0
        while True:
            found = await self._board.ask(Get(asked.ref))
            is_running = isinstance(found, facts.Done) and found.live and _runs(found.live, whole)
            printed = await self._board.ask(whole)
            if isinstance(printed, facts.Said) and len(printed.body) > told:
                await response.write(printed.body[told:])
                told = len(printed.body)
            if not is_running:
                return
            await asyncio.sleep(BEAT)

    async def _scale(self, method: str, asked: HttpAsked) -> web.StreamResponse:
        """Only how many replicas there shall be is changed."""
        if method == "GET":
            outcome = await self._board.ask(Get(asked.ref))
        else:
            body, version = change_of(asked.body)
            agent = asked.query.get("fieldManager") or asked.agent
            dry = "All" in asked.query.get("dryRun", "")
            patch = Write(
                verb=Verb.PATCH,
                ref=asked.ref,
                body=body,
                manager=agent,
                dry_run=dry,
                version=version,
            )
            outcome = await self._board.ask(patch)
        if isinstance(outcome, facts.Done) and outcome.live:
            return _json(scale_of(outcome.live))
        return _refusal(outcome, asked)

    async def _write(self, method: str, asked: HttpAsked) -> web.StreamResponse:
        if method == "DELETE" and not asked.spot.name:
            return await self._delete_all(asked)
        write = write_of(method, asked)
        outcome = await self._board.ask(write)
        if not isinstance(outcome, facts.Done):
            return _refusal(outcome, asked)
        body = outcome.live.body if outcome.live else _success(asked)
        status = 201 if write.verb is Verb.CREATE else 200
        return _json(body, status=status, warnings=outcome.warnings)

    async def _delete_all(self, asked: HttpAsked) -> web.StreamResponse:
        """Every object that is selected, one after another."""
        listed = await self._board.ask(list_of(asked))
        if not isinstance(listed, facts.Listed):
            return _refusal(listed, asked)
        for one in listed.items:
            await self._board.ask(deletion_of(asked, one.ref.name, one.ref.namespace))
        return _json(_success(asked))

    async def _watch(
        self, request: web.Request, asked: HttpAsked, teller: Teller
    ) -> web.StreamResponse:
        """What is there, where that is asked for; then every change, until it is time to end."""
        since, first = asked.query.get("resourceVersion", ""), tuple[Live, ...]()
        if since in {"", "0"} or asked.is_said("sendInitialEvents"):
            listed = await self._board.ask(List(selection_of(asked)))
            if not isinstance(listed, facts.Listed):
                return _refusal(listed, asked)
            since, first = listed.version, listed.items
        response = web.StreamResponse(headers={"Content-Type": JSON})
        lasting = self._board.lasting(lasting_of(asked))
        async with self._board.watch(
            Watch(selection_of(asked), since=since, lasting=lasting)
        ) as told:
            with suppress(*GONE):
                await response.prepare(request)
                for one in first:
                    await response.write(teller.event("ADDED", one, self._board.now()))
                if asked.is_said("sendInitialEvents"):
                    await response.write(teller.bookmark(since, ends_beginning=True))
                async for fact in told():
                    line = self._line(fact, asked, teller)
                    if line:
                        await response.write(line)
                await response.write_eof()
        return response

    def _line(
        self, fact: facts.Changed | facts.Bookmark | facts.Ended, asked: HttpAsked, teller: Teller
    ) -> bytes:
        match fact:
            case facts.Changed():
                return teller.event(fact.change.name, fact.live, self._board.now())
            case facts.Bookmark():
                wants = asked.is_said("allowWatchBookmarks")
                return teller.bookmark(fact.version) if wants else b""
            case facts.Ended():
                return error_event(refused(fact.outcome).body) if fact.outcome else b""


def _runs(live: Live, wanted: Logs) -> bool:
    """Whether the container that is meant may print more: it runs, or has not begun yet."""
    pod: dict[str, Json] = msgspec.json.decode(live.body)
    statuses = (
        *mappings(pod, "status", "initContainerStatuses"),
        *mappings(pod, "status", "containerStatuses"),
    )
    meant = [one for one in statuses if wanted.container in {"", text(one, "name")}]
    if not meant:
        return text(pod, "status", "phase", default="Pending") == "Pending"
    return any(
        mapping(one, "state", "running")
        or not (mapping(one, "state", "terminated") or mapping(one, "lastState", "terminated"))
        for one in meant
    )


def _success(asked: HttpAsked) -> bytes:
    """What is said of an object that is gone."""
    details: Body = {"name": asked.spot.name, "kind": asked.served.plural}
    head: Body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return msgspec.json.encode({**head, "details": details})


def _refusal(outcome: facts.Outcome, asked: HttpAsked) -> web.Response:
    if not facts.is_refusal(outcome):
        raise TypeError(outcome)
    about: Body = {
        "name": asked.spot.name,
        "group": asked.served.kind.group,
        "kind": asked.served.plural,
    }
    told = refused(outcome, **about)
    headers = {"Retry-After": str(told.retry_after)} if told.retry_after else None
    body = msgspec.json.encode(told.body)
    return web.Response(body=body, status=told.status, content_type=JSON, headers=headers)


def _json(
    body: bytes,
    form: str = JSON,
    *,
    status: int = 200,
    warnings: tuple[str, ...] = (),
) -> web.Response:
    response = web.Response(body=body, status=status, headers={"Content-Type": form})
    for one in warnings:
        quoted = one.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{quoted}"')
    return response


def _failure(status: int, reason: str, message: str) -> web.Response:
    body = msgspec.json.encode(status_of(status, reason, message))
    return web.Response(body=body, status=status, content_type=JSON)


def _not_found() -> web.Response:
    return _failure(404, "NotFound", NO_RESOURCE)


def _or_missing(body: Body | None) -> web.Response:
    return _json(msgspec.json.encode(body)) if body is not None else _not_found()


@asynccontextmanager
async def listening(answer: Answerer, *, port: int, tls: ssl.SSLContext) -> AsyncIterator[int]:
    """Listen on this machine alone; gives the port."""
    application = web.Application(client_max_size=LARGEST)
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(
        application, handler_cancellation=True, access_log=None, shutdown_timeout=PARTING
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, port, ssl_context=tls)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()

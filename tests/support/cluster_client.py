"""A small client of a World: the verbs of the API, and waits for watch events.

    async with real_world(kubeconfig=path) as world:
        client = Desk(Dispatcher(ResilientWorld(world)), namespace="shop")
        outcome = await client.apply({"apiVersion": "v1", "kind": "ConfigMap", ...})

It works on every World. Bodies are plain dicts; the default namespace is that of the client.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypedDict, Unpack

import msgspec

from tidegate.model.k8s.objects import Json, JsonObject, Kind, LiveObject, Propagation, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.world import messages, requests
from tidegate.world.dispatcher import Dispatcher

WAIT_TIMEOUT = Ms(30 * SECOND)
RESPONSE_TIMEOUT = Ms(60 * SECOND)
ASK_AGAIN = Ms(50)


class WriteOptions(TypedDict, total=False):
    """Options of a write besides its verb and body."""

    manager: str
    force: bool
    dry_run: bool
    strict: bool
    subresource: str
    uid: str
    resource_version: str
    patch_type: requests.PatchType
    propagation: Propagation


class ClusterClient:
    """One caller of a world, with a namespace and the rights of `identity`."""

    def __init__(
        self,
        world: Dispatcher,
        *,
        namespace: str = "default",
        identity: ImpersonatedUser | None = None,
    ) -> None:
        self.world = world
        self._client = world.client()
        self.namespace = namespace
        self._identity = identity
        self._scopes: dict[Kind, bool] = {}
        self._inbox: deque[messages.Message] = deque()

    async def ask(self, *requests: requests.Request) -> tuple[messages.Outcome, ...]:
        """Return the outcomes of these calls; events of watches are kept for `until`."""
        waiting = {self._submit(request): place for place, request in enumerate(requests)}
        outcomes: dict[int, messages.Outcome] = {}
        deadline = Ms(self.world.now() + RESPONSE_TIMEOUT)
        while waiting:
            if self.world.now() >= deadline:
                raise AssertionError(
                    f"no answer to {len(waiting)} calls within {RESPONSE_TIMEOUT} ms"
                )
            for received in await self._client.wait(deadline):
                if isinstance(received, messages.Response) and received.request_id in waiting:
                    outcomes[waiting.pop(received.request_id)] = received.outcome
                else:
                    self._inbox.append(received)
        return tuple(outcomes[place] for place in range(len(requests)))

    async def apply(self, body: JsonObject, **options: Unpack[WriteOptions]) -> messages.Outcome:
        return await self._write(requests.Verb.APPLY, body, {"manager": "tidegate", **options})

    async def create(self, body: JsonObject, **options: Unpack[WriteOptions]) -> messages.Outcome:
        return await self._write(requests.Verb.CREATE, body, options)

    async def replace(self, body: JsonObject, **options: Unpack[WriteOptions]) -> messages.Outcome:
        return await self._write(requests.Verb.REPLACE, body, options)

    async def patch(
        self, ref: Ref, patch: JsonObject | list[Json], **options: Unpack[WriteOptions]
    ) -> messages.Outcome:
        write = requests.Write(
            verb=requests.Verb.PATCH, ref=ref, body=msgspec.json.encode(patch), **options
        )
        return (await self.ask(write))[0]

    async def delete(self, ref: Ref, **options: Unpack[WriteOptions]) -> messages.Outcome:
        return (await self.ask(requests.Write(verb=requests.Verb.DELETE, ref=ref, **options)))[0]

    async def get(self, ref: Ref, *, view: requests.View = requests.View.FULL) -> messages.Outcome:
        return (await self.ask(requests.Get(ref, view)))[0]

    async def page(
        self, selection: requests.Selection, *, limit: int = 0, resume: str = ""
    ) -> messages.Outcome:
        return (await self.ask(requests.List(selection, limit, resume)))[0]

    async def ref(self, body: JsonObject) -> Ref:
        """Which object a body speaks of, in the client's namespace unless it names another."""
        kind = Kind.of(str(body["apiVersion"]), str(body["kind"]))
        metadata = read_metadata(body)
        inside = self.namespace if await self._is_namespaced(kind) else ""
        return Ref(kind, str(metadata.get("namespace", inside)), str(metadata.get("name", "")))

    def watch(
        self, selection: requests.Selection, *, since: str = "", within: tuple[str, ...] = ()
    ) -> requests.RequestId:
        """Start a watch; `until` returns its events, `cancel` ends it."""
        return self._submit(requests.Watch(selection, since, within))

    def cancel(self, request_id: requests.RequestId) -> bool:
        """Cancel a call or end a watch; events so far are kept for `until`."""
        return self._client.cancel(request_id)

    async def rest(self, until: Ms) -> None:
        """Let time pass; events of watches are kept for `until`."""
        while self.world.now() < until:
            self._inbox.extend(await self._client.wait(until))

    async def until(
        self, is_last: Callable[[messages.Message], bool], *, within: Ms = WAIT_TIMEOUT
    ) -> list[messages.Message]:
        """All facts up to the first one that is `heard`; an AssertionError if it does not come."""
        deadline = Ms(self.world.now() + within)
        result: list[messages.Message] = []
        while True:
            while self._inbox:
                result.append(self._inbox.popleft())
                if is_last(result[-1]):
                    return result
            if self.world.now() >= deadline:
                last = ", ".join(map(_brief, result[-5:])) or "nothing"
                raise AssertionError(f"nothing matched within {within} ms; last message: {last}")
            self._inbox.extend(await self._client.wait(deadline))

    async def settled(
        self, ref: Ref, holds: Callable[[LiveObject | None], bool], *, within: Ms = WAIT_TIMEOUT
    ) -> LiveObject | None:
        """Return the object as soon as a condition holds; None if the object does not exist.

        Needs a `ResilientWorld`, whose watches start with the existing objects.
        """
        selection = requests.Selection(
            ref.kind, ref.namespace, field_selector=f"metadata.name={ref.name}"
        )
        request_id = self.watch(selection)
        seen: LiveObject | None = None
        whole = False

        def is_last(received: messages.Message) -> bool:
            nonlocal seen, whole
            match received:
                case messages.WatchEvent(request_id=answered_id) if answered_id == request_id:
                    seen = (
                        None if received.type is messages.WatchEventType.DELETED else received.live
                    )
                case messages.Response(request_id=answered_id) if answered_id == request_id:
                    whole = True
            return whole and holds(seen)

        await self.until(is_last, within=within)
        self.cancel(request_id)
        return seen

    async def eventually(
        self,
        attempt: Callable[[], Awaitable[messages.Outcome]],
        holds: Callable[[messages.Outcome], bool],
        *,
        within: Ms = WAIT_TIMEOUT,
    ) -> messages.Outcome:
        """The first outcome that fulfils a condition; the request is repeated."""
        deadline = Ms(self.world.now() + within)
        while not holds(outcome := await attempt()):
            pause = Ms(self.world.now() + ASK_AGAIN)
            if pause > deadline:
                raise AssertionError(f"still {_outcome_words(outcome)} after {within} ms")
            await self.rest(pause)
        return outcome

    def _submit(self, request: requests.Request) -> requests.RequestId:
        return self._client.submit(request, identity=self._identity)

    async def _write(
        self, verb: requests.Verb, body: JsonObject, options: WriteOptions
    ) -> messages.Outcome:
        ref = await self.ref(body)
        metadata = read_metadata(body) | ({"namespace": ref.namespace} if ref.namespace else {})
        encoded = msgspec.json.encode({**body, "metadata": metadata})
        return (await self.ask(requests.Write(verb=verb, ref=ref, body=encoded, **options)))[0]

    async def _is_namespaced(self, kind: Kind) -> bool:
        if kind not in self._scopes:
            (catalogue,) = await self.ask(requests.Discover())
            if isinstance(catalogue, messages.ApiResources):
                self._scopes = {served.kind: served.namespaced for served in catalogue.kinds}
        return self._scopes.get(kind, True)


def _brief(received: messages.Message) -> str:
    """A fact without its body, which may be long and may hold secrets."""
    if isinstance(received, messages.WatchEvent):
        return f"{received.live.ref} {received.type} at version {received.live.resource_version}"
    return type(received).__name__


def _outcome_words(outcome: messages.Outcome) -> str:
    """An outcome without the objects in it."""
    words = type(outcome).__name__
    return f"{words}: {outcome.message}" if messages.is_error(outcome) else words


def read_metadata(body: JsonObject) -> JsonObject:
    metadata = body["metadata"]
    if not isinstance(metadata, dict):
        raise TypeError(metadata)
    return metadata


def require_live(outcome: messages.Outcome) -> LiveObject:
    """The object of an outcome that must have one."""
    if not isinstance(outcome, messages.Success) or outcome.live is None:
        raise AssertionError(f"expected an object, got {_outcome_words(outcome)}")
    return outcome.live


def require_body(outcome: messages.Outcome) -> JsonObject:
    """That object, read."""
    body: JsonObject = msgspec.json.decode(require_live(outcome).body)
    return body


def require_items(outcome: messages.Outcome) -> tuple[LiveObject, ...]:
    """The objects of a page that must have come."""
    match outcome:
        case messages.ListPage():
            return outcome.items
        case _:
            raise AssertionError(f"expected a list, got {_outcome_words(outcome)}")

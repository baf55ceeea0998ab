"""Many independent clients of one World.

    dispatcher = Dispatcher(ResilientWorld(world))
    client = dispatcher.client()
    request_id = client.submit(Get(ref))
    messages = await client.wait(until)

The dispatcher assigns request ids and routes each message to the client with its id. Only one
caller may wait for a World: the first client that waits polls for all clients, and hands over
when it has work itself. No client polls while a notified client has not run yet, so that virtual
time never runs ahead of a client.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable

from tidegate.model.times import Ms
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.world.messages import Message, TimerFired, WatchEnded
from tidegate.world.protocol import World
from tidegate.world.requests import Call, Request, RequestId, Watch


class Dispatcher:
    """The shared connection of all clients to one World."""

    def __init__(self, world: World) -> None:
        self.now = world.now
        self._world = world
        self._last_id = 0
        self._request_clients: dict[RequestId, Client] = {}
        self._watch_clients: dict[RequestId, Client] = {}
        self._waiting: dict[Client, None] = {}
        self._notified: set[Client] = set()
        self._poller: Client | None = None
        self._poll_until: Ms | None = None
        self._timers: list[tuple[Ms, int, Client]] = []
        self._timer_count = 0
        self._active_work = 0
        self._work_clients: set[Client] = set()

    def client(self) -> Client:
        """Return a new client, with its own request ids, messages and timer."""
        client = Client(self)
        if self._active_work:
            self._work_clients.add(client)
        return client

    def start_work(self) -> None:
        """Stop virtual time while the caller does work outside the World, such as reading files.

        Time continues only for clients that are created meanwhile.
        """
        self._active_work += 1
        self._world.wake()

    def finish_work(self) -> None:
        """Let virtual time continue, once all work has finished."""
        self._active_work -= 1
        if not self._active_work:
            self._work_clients.clear()
            self._hand_over()

    def _may_poll(self, client: Client) -> bool:
        return not self._active_work or client in self._work_clients

    def _hand_over(self) -> None:
        """Let the client that has waited longest poll next, once all notified clients have run."""
        if self._poller is None and not self._notified:
            candidates = (candidate for candidate in self._waiting if self._may_poll(candidate))
            successor = next(candidates, None)
            if successor is not None:
                self._notify(successor)

    def next_request_id(self) -> RequestId:
        """Return a new request id."""
        self._last_id += 1
        return RequestId(self._last_id)

    def send(self, client: Client, call: Call) -> None:
        """Send a call of a client, which receives the messages about it."""
        clients = self._watch_clients if isinstance(call.request, Watch) else self._request_clients
        clients[call.request_id] = client
        self._world.submit(call)

    def cancel(self, request_id: RequestId) -> bool:
        """Cancel a call. Returns True if it was certainly not sent."""
        self._request_clients.pop(request_id, None)
        self._watch_clients.pop(request_id, None)
        return self._world.cancel(request_id)

    async def wait_for_client(self, client: Client) -> None:
        """Return when a client has a message, a wake-up or a passed deadline."""
        self._waiting[client] = None
        # Deadlines without a waiting client stay until they pass; each is stored once.
        if client.until is not None and client.until != client.timer:
            client.timer = client.until
            self._timer_count += 1
            heapq.heappush(self._timers, (client.until, self._timer_count, client))
        try:
            while not client.is_due(self.now()):
                is_free = self._poller is None and not self._notified
                if is_free and self._may_poll(client):
                    await self._poll(client)
                    continue
                self._hand_over()  # a client may have started to work meanwhile
                await self._sleep(client)
        finally:
            del self._waiting[client]
            self._hand_over()

    def wake(self, client: Client) -> None:
        """End the wait of a client now."""
        if self._poller is client:
            self._world.wake()
        else:
            self._notify(client)

    async def _poll(self, client: Client) -> None:
        """Wait for the World once, on behalf of all clients."""
        self._poller, self._poll_until = client, self._next_deadline()
        try:
            messages = await self._world.wait(self._poll_until)
        finally:
            self._poller = None
        self._route(messages)
        now = self.now()
        while (deadline := self._next_deadline()) is not None and deadline <= now:
            self._notify(self._pop_timer())

    async def _sleep(self, client: Client) -> None:
        """Sleep while another client polls. Wake the World if this deadline is the earliest."""
        until = client.until
        if (
            self._poller
            and until is not None
            and (self._poll_until is None or until < self._poll_until)
        ):
            self._world.wake()
        client.wakeup = asyncio.get_running_loop().create_future()
        try:
            await client.wakeup
        finally:
            client.wakeup = None
            self._notified.discard(client)

    def _route(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if isinstance(message, TimerFired):
                continue
            client = self._watch_clients.get(message.request_id)
            if client is None:
                client = self._request_clients.pop(message.request_id, None)
            elif isinstance(message, WatchEnded):
                del self._watch_clients[message.request_id]
            if client is not None:
                client.inbox.append(message)
                self._notify(client)

    def _notify(self, client: Client) -> None:
        if client.wakeup is not None and not client.wakeup.done():
            client.wakeup.set_result(None)
            self._notified.add(client)

    def _next_deadline(self) -> Ms | None:
        """Return the earliest deadline of a waiting client. Returns None if there is none."""
        while self._timers:
            deadline, _, client = self._timers[0]
            if client.until == deadline and client in self._waiting:
                return deadline
            self._pop_timer()
        return None

    def _pop_timer(self) -> Client:
        deadline, _, client = heapq.heappop(self._timers)
        if client.timer == deadline:
            client.timer = None
        return client


class Client:
    """One caller of a World. Its attributes belong to the dispatcher."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.inbox: list[Message] = []
        self.until: Ms | None = None
        self.timer: Ms | None = None
        self.wakeup: asyncio.Future[None] | None = None
        self.is_woken = False
        self.now = dispatcher.now
        self._dispatcher = dispatcher

    def submit(
        self,
        request: Request,
        *,
        cluster: str = "",
        identity: ImpersonatedUser | None = None,
        urgent: bool = False,
        deadline: Ms | None = None,
    ) -> RequestId:
        """Send a request. Return the id that the messages about it carry."""
        request_id = self._dispatcher.next_request_id()
        call = Call(
            request_id=request_id,
            request=request,
            cluster=cluster,
            identity=identity,
            urgent=urgent,
            deadline=deadline,
        )
        self._dispatcher.send(self, call)
        return request_id

    def cancel(self, request_id: RequestId) -> bool:
        """Cancel a request or a watch: no message about it follows.

        Returns True if it was certainly not sent.
        """
        if self.inbox:
            self.inbox = [
                message
                for message in self.inbox
                if isinstance(message, TimerFired) or message.request_id != request_id
            ]
        return self._dispatcher.cancel(request_id)

    async def wait(self, until: Ms | None) -> tuple[Message, ...]:
        """Return messages as soon as there are any; none if `until` passes or `wake` is called
        first.
        """
        if not self.inbox:
            self.until, self.is_woken = until, False
            await self._dispatcher.wait_for_client(self)
        messages, self.inbox = tuple(self.inbox), []
        return messages

    def wake(self) -> None:
        """End a pending wait now."""
        self.is_woken = True
        self._dispatcher.wake(self)

    def is_due(self, now: Ms) -> bool:
        """Return whether the client has a message, a wake-up or a passed deadline."""
        return bool(self.inbox) or self.is_woken or (self.until is not None and self.until <= now)

"""Many callers of one world: each gets its own answers, none waits for another."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.scripted_world import CONFIG_MAP, ScriptedWorld, a_live, a_ref
from tidegate.model.times import SECOND, Ms
from tidegate.world.dispatcher import Client, Dispatcher
from tidegate.world.messages import (
    ListPage,
    Message,
    Response,
    Success,
    WatchEnded,
    WatchEvent,
    WatchEventType,
)
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import Get, RequestId, Selection, Watch

GET = Get(a_ref())
WATCH = Watch(Selection(CONFIG_MAP))


class HeldWorld(ScriptedWorld):
    """A wait ends with facts or a wake; no moment comes but those up to `comes`."""

    def __init__(self, comes: Ms = Ms(0)) -> None:
        super().__init__()
        self.waits: list[Ms | None] = []
        self._comes = comes
        self._news = asyncio.Event()

    async def wait(self, until: Ms | None) -> tuple[Message, ...]:
        self.waits.append(until)
        if until is not None and until <= self._comes:
            return await super().wait(until)
        self._news.clear()
        if not self._facts:
            await self._news.wait()
        return await super().wait(self.time)

    def deliver(self, *messages: Message) -> None:
        super().deliver(*messages)
        self._news.set()

    def wake(self) -> None:
        self._news.set()


async def waits_of(client: Client, log: list[str], name: str, *, until: Ms | None = None) -> None:
    """Wait once, and say so."""
    messages = await client.wait(until)
    log.append(f"{name}: {len(messages)}")


async def test_a_message_is_delivered_to_its_caller() -> None:
    world = ScriptedWorld()
    item, other = (dispatcher := Dispatcher(world)).client(), dispatcher.client()
    first, second = item.submit(GET), other.submit(GET)
    world.deliver(Response(second, Success()), Response(first, Success(a_live())))

    messages = await item.wait(None)
    elsewhere = await other.wait(None)

    assert first != second
    assert messages == (Response(first, Success(a_live())),)
    assert elsewhere == (Response(second, Success()),)


async def test_a_watch_reports_to_its_caller_until_it_has_ended() -> None:
    world = ScriptedWorld()
    client = Dispatcher(world).client()
    request_id = client.submit(WATCH)
    change = WatchEvent(request_id, WatchEventType.ADDED, a_live())
    world.deliver(Response(request_id, ListPage((), "1")), change, WatchEnded(request_id), change)

    messages = await client.wait(None)

    assert messages == (Response(request_id, ListPage((), "1")), change, WatchEnded(request_id))


async def test_answers_without_a_request_are_dropped() -> None:
    world = ScriptedWorld()
    client = Dispatcher(world).client()
    world.deliver(Response(RequestId(99), Success()))

    messages = await client.wait(Ms(world.now() + SECOND))

    assert messages == ()


async def test_the_response_of_a_cancelled_call_is_dropped() -> None:
    world = ScriptedWorld()
    dispatcher = Dispatcher(world)
    item, other = dispatcher.client(), dispatcher.client()
    cancelled, kept, theirs = item.submit(GET), item.submit(GET), other.submit(GET)
    world.deliver(*(Response(request_id, Success()) for request_id in (theirs, cancelled, kept)))
    await other.wait(None)

    item.cancel(cancelled)
    messages = await item.wait(None)

    assert world.cancelled == [cancelled]
    assert messages == (Response(kept, Success()),)


async def test_a_wait_that_is_woken_ends_without_facts() -> None:
    world = HeldWorld()
    client = Dispatcher(world).client()
    asyncio.get_running_loop().call_soon(client.wake)

    assert await client.wait(None) == ()


@pytest.mark.parametrize("place", [0, 1])
async def test_waking_one_caller_does_not_wake_the_others(place: int) -> None:
    """Whether it is the one that listens for all or not."""
    world, log = HeldWorld(), list[str]()
    clients = (dispatcher := Dispatcher(world)).client(), dispatcher.client()
    answer = Response(clients[1 - place].submit(GET), Success())

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(waits_of(client, log, f"{number}"))
            for number, client in enumerate(clients)
        ]
        asyncio.get_running_loop().call_soon(clients[place].wake)
        tasks[place].add_done_callback(lambda _: world.deliver(answer))

    assert log == [f"{place}: 0", f"{1 - place}: 1"]


async def test_when_the_listening_caller_is_done_another_one_listens() -> None:
    world, log = HeldWorld(), list[str]()
    dispatcher = Dispatcher(world)
    first, second = dispatcher.client(), dispatcher.client()
    early, later = first.submit(GET), second.submit(GET)

    async with asyncio.TaskGroup() as group:
        listening = group.create_task(waits_of(first, log, "first"))
        group.create_task(waits_of(second, log, "second"))
        asyncio.get_running_loop().call_soon(world.deliver, Response(early, Success()))
        listening.add_done_callback(lambda _: world.deliver(Response(later, Success())))

    assert log == ["first: 1", "second: 1"]


async def test_when_the_listening_caller_is_cancelled_another_one_listens() -> None:
    world, log = HeldWorld(), list[str]()
    dispatcher = Dispatcher(world)
    first, second = dispatcher.client(), dispatcher.client()
    request_id = second.submit(GET)

    async with asyncio.TaskGroup() as group:
        listening = group.create_task(waits_of(first, log, "first"))
        group.create_task(waits_of(second, log, "second"))
        asyncio.get_running_loop().call_soon(listening.cancel)
        asyncio.get_running_loop().call_soon(world.deliver, Response(request_id, Success()))

    assert log == ["second: 1"]


async def test_a_timer_earlier_than_that_of_the_listening_caller_is_kept() -> None:
    now = ScriptedWorld().now()
    soon, later = Ms(now + SECOND), Ms(now + 60 * SECOND)
    world, log = HeldWorld(comes=soon), list[str]()
    dispatcher = Dispatcher(world)
    first, second = dispatcher.client(), dispatcher.client()

    async with asyncio.TaskGroup() as group:
        patient = group.create_task(waits_of(first, log, "first", until=later))
        hasty = group.create_task(waits_of(second, log, "second", until=soon))
        hasty.add_done_callback(lambda _: patient.cancel())

    assert world.waits[:2] == [later, soon]
    assert log == ["second: 0"]


async def test_a_request_of_a_cancelled_caller_is_withdrawn() -> None:
    world = HeldWorld()
    dispatcher = Dispatcher(world)

    async with asyncio.TaskGroup() as group:
        asking = group.create_task(send_requests(dispatcher, GET))
        asyncio.get_running_loop().call_soon(asking.cancel)

    assert world.cancelled == [world.sent[-1].request_id]


async def test_while_a_caller_works_outside_only_new_callers_listen() -> None:
    world = HeldWorld()
    dispatcher, log = Dispatcher(world), list[str]()
    patient = dispatcher.client()
    dispatcher.start_work()
    async with asyncio.TaskGroup() as group:
        group.create_task(waits_of(patient, log, "patient"))
        await asyncio.sleep(0)  # noqa: TID251 - the task gets its turn
        assert world.waits == []

        world.deliver(Response(RequestId(1), Success()))
        assert await send_requests(dispatcher, GET) == (Success(),)
        await asyncio.sleep(0)  # noqa: TID251
        assert len(world.waits) == 1

        dispatcher.finish_work()
        await asyncio.sleep(0)  # noqa: TID251
        assert len(world.waits) == 2
        patient.wake()
    assert log == ["patient: 0"]


async def test_a_notified_caller_passes_listening_to_a_waiting_caller() -> None:
    world = HeldWorld()
    dispatcher, log = Dispatcher(world), list[str]()
    patient = dispatcher.client()
    dispatcher.start_work()
    async with asyncio.TaskGroup() as group:
        group.create_task(waits_of(patient, log, "patient"))
        await asyncio.sleep(0)  # noqa: TID251 - the task gets its turn
        dispatcher.finish_work()
        dispatcher.start_work()

        world.deliver(Response(RequestId(1), Success()))
        assert await send_requests(dispatcher, GET) == (Success(),)
        dispatcher.finish_work()
        patient.wake()
    assert log == ["patient: 0"]

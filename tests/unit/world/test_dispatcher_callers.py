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

    def tell(self, *facts: Message) -> None:
        super().tell(*facts)
        self._news.set()

    def wake(self) -> None:
        self._news.set()


async def waits_of(party: Client, log: list[str], name: str, *, until: Ms | None = None) -> None:
    """Wait once, and say so."""
    facts = await party.wait(until)
    log.append(f"{name}: {len(facts)}")


async def test_a_fact_goes_to_whoever_asked() -> None:
    world = ScriptedWorld()
    item, other = (exchange := Dispatcher(world)).client(), exchange.client()
    first, second = item.submit(GET), other.submit(GET)
    world.tell(Response(second, Success()), Response(first, Success(a_live())))

    heard = await item.wait(None)
    elsewhere = await other.wait(None)

    assert first != second
    assert heard == (Response(first, Success(a_live())),)
    assert elsewhere == (Response(second, Success()),)


async def test_a_watch_reports_to_its_caller_until_it_has_ended() -> None:
    world = ScriptedWorld()
    party = Dispatcher(world).client()
    ticket = party.submit(WATCH)
    change = WatchEvent(ticket, WatchEventType.ADDED, a_live())
    world.tell(Response(ticket, ListPage((), "1")), change, WatchEnded(ticket), change)

    facts = await party.wait(None)

    assert facts == (Response(ticket, ListPage((), "1")), change, WatchEnded(ticket))


async def test_answers_without_a_request_are_dropped() -> None:
    world = ScriptedWorld()
    party = Dispatcher(world).client()
    world.tell(Response(RequestId(99), Success()))

    facts = await party.wait(Ms(world.now() + SECOND))

    assert facts == ()


async def test_of_a_call_that_is_cancelled_nothing_is_heard_though_its_answer_was_there() -> None:
    world = ScriptedWorld()
    exchange = Dispatcher(world)
    item, other = exchange.client(), exchange.client()
    cancelled, kept, theirs = item.submit(GET), item.submit(GET), other.submit(GET)
    world.tell(*(Response(ticket, Success()) for ticket in (theirs, cancelled, kept)))
    await other.wait(None)

    item.cancel(cancelled)
    facts = await item.wait(None)

    assert world.cancelled == [cancelled]
    assert facts == (Response(kept, Success()),)


async def test_a_wait_that_is_woken_ends_without_facts() -> None:
    world = HeldWorld()
    party = Dispatcher(world).client()
    asyncio.get_running_loop().call_soon(party.wake)

    assert await party.wait(None) == ()


@pytest.mark.parametrize("place", [0, 1])
async def test_waking_one_does_not_wake_the_others(place: int) -> None:
    """Whether it is the one that listens for all or not."""
    world, log = HeldWorld(), list[str]()
    parties = (exchange := Dispatcher(world)).client(), exchange.client()
    answer = Response(parties[1 - place].submit(GET), Success())

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(waits_of(party, log, f"{number}"))
            for number, party in enumerate(parties)
        ]
        asyncio.get_running_loop().call_soon(parties[place].wake)
        tasks[place].add_done_callback(lambda _: world.tell(answer))

    assert log == [f"{place}: 0", f"{1 - place}: 1"]


async def test_when_the_one_that_listens_is_done_another_listens() -> None:
    world, log = HeldWorld(), list[str]()
    exchange = Dispatcher(world)
    first, second = exchange.client(), exchange.client()
    early, late = first.submit(GET), second.submit(GET)

    async with asyncio.TaskGroup() as group:
        listening = group.create_task(waits_of(first, log, "first"))
        group.create_task(waits_of(second, log, "second"))
        asyncio.get_running_loop().call_soon(world.tell, Response(early, Success()))
        listening.add_done_callback(lambda _: world.tell(Response(late, Success())))

    assert log == ["first: 1", "second: 1"]


async def test_when_the_one_that_listens_is_cancelled_another_listens() -> None:
    world, log = HeldWorld(), list[str]()
    exchange = Dispatcher(world)
    first, second = exchange.client(), exchange.client()
    ticket = second.submit(GET)

    async with asyncio.TaskGroup() as group:
        listening = group.create_task(waits_of(first, log, "first"))
        group.create_task(waits_of(second, log, "second"))
        asyncio.get_running_loop().call_soon(listening.cancel)
        asyncio.get_running_loop().call_soon(world.tell, Response(ticket, Success()))

    assert log == ["second: 1"]


async def test_an_earlier_alarm_than_that_of_the_one_who_listens_is_kept() -> None:
    now = ScriptedWorld().now()
    soon, later = Ms(now + SECOND), Ms(now + 60 * SECOND)
    world, log = HeldWorld(comes=soon), list[str]()
    exchange = Dispatcher(world)
    first, second = exchange.client(), exchange.client()

    async with asyncio.TaskGroup() as group:
        patient = group.create_task(waits_of(first, log, "first", until=later))
        hasty = group.create_task(waits_of(second, log, "second", until=soon))
        hasty.add_done_callback(lambda _: patient.cancel())

    assert world.waits[:2] == [later, soon]
    assert log == ["second: 0"]


async def test_a_question_whose_asker_is_cancelled_is_withdrawn() -> None:
    world = HeldWorld()
    exchange = Dispatcher(world)

    async with asyncio.TaskGroup() as group:
        asking = group.create_task(send_requests(exchange, GET))
        asyncio.get_running_loop().call_soon(asking.cancel)

    assert world.cancelled == [world.sent[-1].request_id]


async def test_while_a_caller_works_outside_only_new_callers_listen() -> None:
    world = HeldWorld()
    exchange, log = Dispatcher(world), list[str]()
    patient = exchange.client()
    exchange.start_work()
    async with asyncio.TaskGroup() as group:
        group.create_task(waits_of(patient, log, "patient"))
        await asyncio.sleep(0)  # noqa: TID251 - the task gets its turn
        assert world.waits == []

        world.tell(Response(RequestId(1), Success()))
        assert await send_requests(exchange, GET) == (Success(),)
        await asyncio.sleep(0)  # noqa: TID251
        assert len(world.waits) == 1

        exchange.finish_work()
        await asyncio.sleep(0)  # noqa: TID251
        assert len(world.waits) == 2
        patient.wake()
    assert log == ["patient: 0"]


async def test_a_notified_caller_leaves_the_listening_to_the_caller_that_asks() -> None:
    world = HeldWorld()
    exchange, log = Dispatcher(world), list[str]()
    patient = exchange.client()
    exchange.start_work()
    async with asyncio.TaskGroup() as group:
        group.create_task(waits_of(patient, log, "patient"))
        await asyncio.sleep(0)  # noqa: TID251 - the task gets its turn
        exchange.finish_work()
        exchange.start_work()

        world.tell(Response(RequestId(1), Success()))
        assert await send_requests(exchange, GET) == (Success(),)
        exchange.finish_work()
        patient.wake()
    assert log == ["patient: 0"]

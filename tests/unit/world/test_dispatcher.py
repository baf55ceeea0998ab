"""A dispatcher has the methods of a world, and guarantees more."""

from __future__ import annotations

from msgspec import structs

from tests.support.scripted_world import CONFIG_MAP, ScriptedWorld, a_get, a_live, a_write
from tidegate.model.times import MINUTE, Ms
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import (
    Delivery,
    Expired,
    Forbidden,
    ListPage,
    LossReason,
    NoResponse,
    NotServed,
    Response,
    Success,
    TimerFired,
    WatchEnded,
    WatchEvent,
    WatchEventType,
)
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import Call, Get, List, RequestId, Selection, Verb, Watch
from tidegate.world.resilient import ResilientWorld

LOST = NoResponse(Delivery.MAYBE_SENT, LossReason.DISCONNECTED, "connection reset")
TICKET = RequestId(5)


def watching(*within: str, since: str = "") -> Call:
    return Call(request_id=TICKET, request=Watch(Selection(CONFIG_MAP), since, within))


async def a_whole_view(world: ScriptedWorld, *names: str) -> ResilientWorld:
    """A line with a watch that has listed these, as of version 10."""
    line = ResilientWorld(world)
    line.submit(watching())
    world.answer(ListPage(tuple(a_live(name) for name in names), "10"))
    await line.wait(None)
    return line


async def test_a_call_is_sent_at_once_and_its_answer_handed_over() -> None:
    world = ScriptedWorld()
    line = ResilientWorld(world)

    line.submit(a_get())
    world.answer(Success())

    assert world.sent == [a_get()]
    assert await line.wait(None) == (Response(RequestId(1), Success()),)


async def test_a_repaired_loss_is_not_reported_to_the_caller() -> None:
    world = ScriptedWorld()
    line = ResilientWorld(world)
    line.submit(a_write())
    world.answer(LOST)

    assert await line.wait(Ms(world.now() + 50)) == (TimerFired(),)
    assert await line.wait(Ms(world.now() + 500)) == (TimerFired(),)
    world.answer(Success())

    assert await line.wait(None) == (Response(RequestId(1), Success()),)
    assert world.sent == [a_write(), a_write()]


async def test_a_late_response_is_delivered_to_its_caller() -> None:
    world = ScriptedWorld()
    line = ResilientWorld(world)

    line.submit(structs.replace(a_write(), deadline=world.now()))

    (answer,) = await line.wait(None)
    assert isinstance(answer, Response)
    assert isinstance(answer.outcome, NoResponse)
    assert (answer.outcome.delivery, answer.outcome.reason) == (
        Delivery.NOT_SENT,
        LossReason.DEADLINE_PASSED,
    )
    assert world.sent == []


async def test_a_watch_reports_the_existing_objects_and_then_its_answer() -> None:
    world = ScriptedWorld()
    line = ResilientWorld(world)

    line.submit(watching())
    world.answer(ListPage((a_live("a"),), "10", continue_token="more"))
    first = await line.wait(None)
    world.answer(ListPage((a_live("b"),), "10"))
    last = await line.wait(None)

    assert first == (WatchEvent(TICKET, WatchEventType.ADDED, a_live("a")),)
    assert last == (
        WatchEvent(TICKET, WatchEventType.ADDED, a_live("b")),
        Response(TICKET, ListPage((), "10")),
    )


async def test_an_expired_watch_is_restarted_transparently() -> None:
    world = ScriptedWorld()
    line = await a_whole_view(world, "a")
    world.deliver(WatchEnded(world.sent[-1].request_id, Expired("too old")))
    await line.wait(world.now())

    world.answer(ListPage((a_live("a", version=11),), "30"))

    assert await line.wait(None) == (
        WatchEvent(TICKET, WatchEventType.MODIFIED, a_live("a", version=11)),
    )
    assert world.sent[-1].request == Watch(Selection(CONFIG_MAP), "30")


async def test_a_silent_watch_is_replaced_and_late_events_are_ignored() -> None:
    world = ScriptedWorld()
    line = await a_whole_view(world, "a")
    silent = world.sent[-1].request_id

    await line.wait(Ms(world.now() + 3 * MINUTE))
    world.deliver(WatchEvent(silent, WatchEventType.MODIFIED, a_live("a", version=99)))

    assert world.cancelled == [silent]
    assert world.sent[-1].request_id != silent
    assert await line.wait(Ms(world.now() + 1)) == (TimerFired(),)


async def test_without_cluster_wide_permission_namespaces_are_watched_separately() -> None:
    world = ScriptedWorld()
    line = ResilientWorld(world)
    line.submit(watching("shop", "mail"))
    world.answer(Forbidden("not cluster-wide"))
    await line.wait(world.now())
    lists = world.sent[-2:]

    for call in lists:
        world.deliver(Response(call.request_id, ListPage((), "10")))
    messages = await line.wait(None)

    assert [call.request for call in lists] == [
        List(structs.replace(Selection(CONFIG_MAP), namespace=name), 500)
        for name in ("shop", "mail")
    ]
    assert messages == (Response(TICKET, ListPage((), "10")),)


async def test_a_refused_watch_is_reported_once() -> None:
    world = ScriptedWorld()
    line = ResilientWorld(world)
    line.submit(watching())

    world.answer(NotServed("no such kind"))

    assert await line.wait(None) == (WatchEnded(TICKET, NotServed("no such kind")),)


async def test_a_watch_from_a_version_is_whole_from_the_start() -> None:
    world = ScriptedWorld()
    line = ResilientWorld(world)

    line.submit(watching(since="7"))

    assert await line.wait(None) == (Response(TICKET, ListPage((), "7")),)
    assert world.sent[-1].request == Watch(Selection(CONFIG_MAP), "7")


async def test_a_cancelled_watch_ends_its_stream() -> None:
    world = ScriptedWorld()
    line = await a_whole_view(world, "a")
    stream = world.sent[-1].request_id

    line.cancel(TICKET)
    world.deliver(WatchEvent(stream, WatchEventType.MODIFIED, a_live("a", version=99)))

    assert world.cancelled == [stream]
    assert await line.wait(Ms(world.now() + 1)) == (TimerFired(),)


async def test_a_call_that_waits_for_its_turn_can_be_cancelled_as_certainly_not_sent() -> None:
    world = ScriptedWorld()
    line = ResilientWorld(world)
    for request_id in range(1, 30):
        line.submit(a_get(request_id))

    assert line.cancel(RequestId(29)) is True
    assert line.cancel(RequestId(1)) is False


async def test_a_call_that_may_have_been_sent_before_its_rest_is_not_certainly_unsent() -> None:
    world = ScriptedWorld()
    line = ResilientWorld(world)
    line.submit(a_write(verb=Verb.APPLY))
    world.answer(LOST)
    await line.wait(Ms(world.now() + 1))

    assert line.cancel(RequestId(1)) is False


async def test_questions_without_an_answer_in_time_count_as_lost() -> None:
    world = ScriptedWorld()

    outcomes = await send_requests(
        Dispatcher(ResilientWorld(world)), Get(a_live().ref), timeout=MINUTE
    )

    (outcome,) = outcomes
    assert isinstance(outcome, NoResponse)
    assert (outcome.delivery, outcome.reason) == (Delivery.MAYBE_SENT, LossReason.CANCELLED)

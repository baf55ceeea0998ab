"""The sandbox as a world: its clock, its one waiter, its clusters, its faults."""

from __future__ import annotations

import asyncio
import threading

import msgspec
import pytest

from tests.support.cluster_client import ClusterClient, require_items, require_live
from tests.support.objects import (
    CONFIG_MAP,
    NAMESPACE,
    a_config_map,
    a_definition,
    a_gate,
    a_namespace,
)
from tests.support.recorded_wording import RecordedWording
from tidegate.errors import ScenarioError
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.sandbox.cluster import ServerTiming
from tidegate.sandbox.faults import (
    DISCONNECTED,
    ERROR,
    UNREACHABLE,
    CallFault,
    Compaction,
    Delay,
    Fault,
    FaultSelector,
    Frequency,
    Outage,
    Rejection,
    ResponseLoss,
    StreamDrop,
    StreamSilence,
    TimedFault,
)
from tidegate.sandbox.world import START, Sandbox
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import (
    Bookmark,
    Expired,
    Message,
    NotFound,
    NotServed,
    RawResponse,
    Response,
    ServerError,
    Success,
    TimerFired,
    WatchEnded,
    WatchEvent,
    WatchEventType,
)
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import Call, Get, RequestId, RunWorker, Selection, Verb, Watch, Write

WATCHED = Selection(CONFIG_MAP, "default", label_selector="watched=yes")
WEB = Ref(CONFIG_MAP, "default", "web")


def a_creation(name: str = "web") -> Write:
    body: dict[str, Json] = {**a_config_map(name)}
    body["metadata"] = {"name": name, "namespace": "default", "labels": {"watched": "yes"}}
    return Write(
        verb=Verb.CREATE, ref=Ref(CONFIG_MAP, "default", name), body=msgspec.json.encode(body)
    )


async def a_sandbox(*faults: Fault, watching: Ms = Ms(5 * MINUTE)) -> Sandbox:
    """One with a namespace `default`."""
    sandbox = Sandbox(faults=faults, timing=ServerTiming(watch_timeout=watching))
    require_live(await ClusterClient(Dispatcher(sandbox)).create(a_namespace("default")))
    return sandbox


def watch(sandbox: Sandbox, *, since: str, request_id: int = 1) -> RequestId:
    sandbox.submit(Call(request_id=RequestId(request_id), request=Watch(WATCHED, since)))
    return RequestId(request_id)


def a_fault(
    effect: Rejection | Delay | ResponseLoss | StreamDrop | StreamSilence, verb: str, times: int = 1
) -> CallFault:
    return CallFault(effect, FaultSelector(verbs=(verb,)), Frequency(times=times))


async def messages_until(sandbox: Sandbox, moment: Ms) -> list[Message]:
    messages: list[Message] = []
    while sandbox.now() < moment:
        messages += await sandbox.wait(moment)
    return [message for message in messages if not isinstance(message, TimerFired)]


async def test_time_only_advances_in_a_wait() -> None:
    sandbox = Sandbox()
    sandbox.submit(Call(request_id=RequestId(1), request=Get(WEB)))

    before = sandbox.now()
    messages = await sandbox.wait(None)
    after = sandbox.now()
    due = await sandbox.wait(Ms(after + 3_600 * SECOND))

    assert before == START
    assert isinstance(messages[0], Response)
    assert before < after < before + 100
    assert due == (TimerFired(),)
    assert sandbox.now() == after + 3_600 * SECOND


async def test_a_world_has_one_waiter(wording: RecordedWording) -> None:
    release = threading.Event()

    def slow(argument: bytes) -> bytes:
        release.wait()
        return argument

    sandbox = Sandbox(workers={"slow": slow})
    sandbox.submit(Call(request_id=RequestId(1), request=RunWorker("slow")))

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(sandbox.wait(None))
        await asyncio.wait([waiting], timeout=0)
        with pytest.raises(RuntimeError) as refusal:
            await sandbox.wait(None)
        release.set()
    wording(str(refusal.value))


async def test_a_wait_that_can_never_end_is_an_error(wording: RecordedWording) -> None:
    with pytest.raises(RuntimeError) as refusal:
        await Sandbox().wait(None)

    wording(str(refusal.value))


async def test_the_clock_does_not_move_while_local_work_is_outstanding() -> None:
    release = threading.Event()

    def render(argument: bytes) -> bytes:
        release.wait()
        return argument.upper()

    sandbox = Sandbox(workers={"render": render})
    sandbox.submit(Call(request_id=RequestId(1), request=Get(WEB)))
    sandbox.submit(Call(request_id=RequestId(2), request=RunWorker("render", b"web")))
    before = sandbox.now()

    release.set()
    messages = await sandbox.wait(None)

    assert messages == (Response(RequestId(2), RawResponse(b"WEB")),)
    assert sandbox.now() == before


async def test_the_result_of_local_work_is_kept_if_the_wait_was_cancelled() -> None:
    release = threading.Event()

    def slow(argument: bytes) -> bytes:
        release.wait()
        return argument

    sandbox = Sandbox(workers={"slow": slow})
    sandbox.submit(Call(request_id=RequestId(1), request=RunWorker("slow", b"web")))

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(sandbox.wait(None))
        await asyncio.wait([waiting], timeout=0)
        waiting.cancel()
    release.set()
    messages = await sandbox.wait(None)

    assert messages == (Response(RequestId(1), RawResponse(b"web")),)


async def test_local_work_that_fails_or_has_no_worker_is_an_outcome() -> None:
    def fail(_: bytes) -> bytes:
        raise ValueError("no chart")

    sandbox = Sandbox(workers={"render": fail})

    outcomes = await send_requests(Dispatcher(sandbox), RunWorker("render"), RunWorker("lua"))

    assert outcomes[0] == ServerError(0, "ValueError", "no chart")
    assert isinstance(outcomes[1], NotServed)


async def test_clusters_share_one_clock_and_nothing_else() -> None:
    sandbox = Sandbox(["east", "west"])
    body = msgspec.json.encode(a_namespace("shop"))
    creation = Write(verb=Verb.CREATE, ref=Ref(NAMESPACE, "", "shop"), body=body)

    await send_requests(Dispatcher(sandbox), creation, cluster="east")
    east = await send_requests(Dispatcher(sandbox), Get(creation.ref), cluster="east")
    west = await send_requests(Dispatcher(sandbox), Get(creation.ref), cluster="west")

    assert isinstance(east[0], Success)
    assert isinstance(west[0], NotFound)


async def test_a_call_that_is_cancelled_before_it_arrives_was_certainly_not_sent() -> None:
    sandbox = await a_sandbox()
    sandbox.submit(Call(request_id=RequestId(1), request=a_creation()))

    unsent = sandbox.cancel(RequestId(1))
    messages = await messages_until(sandbox, Ms(sandbox.now() + SECOND))

    assert unsent
    assert messages == []
    assert isinstance((await send_requests(Dispatcher(sandbox), Get(WEB)))[0], NotFound)


async def test_bookmarks_are_sent_every_minute_and_before_the_end() -> None:
    sandbox = await a_sandbox(watching=Ms(150 * SECOND))
    request_id = watch(sandbox, since="1", request_id=77)
    other = a_creation("unseen")
    start = sandbox.now()
    await send_requests(
        Dispatcher(sandbox), msgspec.structs.replace(other, body=other.body.replace(b"yes", b"no"))
    )

    messages = await messages_until(sandbox, Ms(start + 200 * SECOND))

    assert isinstance(messages[0], Bookmark)
    assert messages[-1] == WatchEnded(request_id)
    assert len(messages) == 2


@pytest.mark.parametrize(
    ("effect", "outcome", "is_there"),
    [
        (Rejection(ERROR), ERROR, False),
        (ResponseLoss(is_performed=False), DISCONNECTED, False),
        (ResponseLoss(is_performed=True), DISCONNECTED, True),
    ],
)
async def test_a_fault_determines_whether_a_call_is_performed(
    effect: Rejection | ResponseLoss, outcome: object, *, is_there: bool
) -> None:
    sandbox = await a_sandbox(
        CallFault(effect, FaultSelector(verbs=("create",), kind="ConfigMap"), Frequency(times=1))
    )

    answers = await send_requests(Dispatcher(sandbox), a_creation())
    result = await send_requests(Dispatcher(sandbox), Get(WEB))

    assert answers == (outcome,)
    assert isinstance(result[0], Success) is is_there


async def test_a_slow_response_is_delayed() -> None:
    sandbox = await a_sandbox(a_fault(Delay(Ms(7_000)), "get"))
    start = sandbox.now()

    await send_requests(Dispatcher(sandbox), Get(WEB))

    assert sandbox.now() - start == 7_002


async def test_a_dropped_watch_ends_as_lost() -> None:
    sandbox = await a_sandbox(a_fault(StreamDrop(after=Ms(100)), "watch"))
    request_id = watch(sandbox, since="1")

    messages = await sandbox.wait(None)

    assert messages == (WatchEnded(request_id, DISCONNECTED),)


async def test_a_silent_watch_sends_delayed_events_when_the_silence_is_over() -> None:
    sandbox = await a_sandbox(a_fault(StreamSilence(duration=Ms(10 * SECOND)), "watch"))
    watch(sandbox, since="1", request_id=77)
    start = sandbox.now()
    await messages_until(sandbox, Ms(start + 10))
    await send_requests(Dispatcher(sandbox), a_creation())

    messages = await sandbox.wait(None)

    assert [message.type for message in messages if isinstance(message, WatchEvent)] == [
        WatchEventType.ADDED
    ]
    assert sandbox.now() >= start + 10 * SECOND


async def test_a_watch_that_is_silent_for_good_sends_nothing() -> None:
    sandbox = await a_sandbox(a_fault(StreamSilence(), "watch"), watching=Ms(MINUTE))
    request_id = watch(sandbox, since="1", request_id=77)
    await messages_until(sandbox, Ms(sandbox.now() + 10))
    await send_requests(Dispatcher(sandbox), a_creation())

    messages = await messages_until(sandbox, Ms(sandbox.now() + 2 * MINUTE))

    assert messages == [WatchEnded(request_id)]


async def test_history_that_is_compacted_expires_versions_and_unfinished_lists() -> None:
    sandbox = await a_sandbox(TimedFault(Ms(10 * SECOND), Compaction()))
    await send_requests(Dispatcher(sandbox), a_creation("a"), a_creation("b"))
    client = ClusterClient(Dispatcher(sandbox))
    page = await client.page(WATCHED, limit=1)
    assert require_items(page)
    await messages_until(sandbox, Ms(START + 20 * SECOND))

    client.watch(WATCHED, since="1")
    ended = await client.until(lambda message: isinstance(message, WatchEnded))
    rest = await client.page(WATCHED, limit=1, resume=getattr(page, "continue_token", ""))

    last = ended[-1]
    assert isinstance(last, WatchEnded)
    assert isinstance(last.outcome, Expired)
    assert isinstance(rest, Expired)


async def test_a_server_that_is_down_answers_no_call_until_it_is_up_again() -> None:
    sandbox = await a_sandbox(TimedFault(Ms(10 * SECOND), Outage(until=Ms(20 * SECOND))))
    request_id = watch(sandbox, since="1")
    lost = await messages_until(sandbox, Ms(START + 15 * SECOND))

    down = await send_requests(Dispatcher(sandbox), Get(WEB))
    await messages_until(sandbox, Ms(START + 21 * SECOND))
    up = await send_requests(Dispatcher(sandbox), Get(WEB))

    assert lost == [WatchEnded(request_id, DISCONNECTED)]
    assert down == (UNREACHABLE,)
    assert isinstance(up[0], NotFound)


async def test_preloaded_objects_exist_before_anything_else() -> None:
    sandbox = Sandbox()
    definition = a_definition("example.org")
    gate = a_gate("example.org")
    gate["metadata"] = {"name": "north", "namespace": "shop"}

    sandbox.preload([a_namespace("shop"), definition, gate])
    result = await send_requests(
        Dispatcher(sandbox), Get(Ref(Kind("example.org", "v1", "Gate"), "shop", "north"))
    )

    assert isinstance(result[0], Success)


async def test_an_object_that_cannot_be_preloaded_is_a_clear_error() -> None:
    with pytest.raises(ScenarioError, match="nowhere"):
        Sandbox().preload([{**a_config_map(), "metadata": {"name": "web", "namespace": "nowhere"}}])

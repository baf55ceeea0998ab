"""Which call goes when, and which goes again."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.support.scripted_world import a_get, a_write
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.world.messages import (
    Conflict,
    Delivery,
    Forbidden,
    LossReason,
    NoResponse,
    Outcome,
    ServerError,
    Success,
    TooManyRequests,
)
from tidegate.world.requests import Call, RequestId, Verb
from tidegate.world.scheduler import RequestScheduler

NOW = Ms(1_000_000)
NOT_SENT = NoResponse(Delivery.NOT_SENT, LossReason.CONNECTION_REFUSED, "connection refused")
MAYBE_SENT = NoResponse(Delivery.MAYBE_SENT, LossReason.DISCONNECTED, "connection reset")
BROKEN = ServerError(500, "InternalError", "etcd has a bad day")


def sent_once(call: Call, *, seed: int = 0) -> RequestScheduler:
    scheduler = RequestScheduler(seed=seed)
    scheduler.add(call, NOW)
    assert scheduler.pop_ready(NOW) == [call]
    return scheduler


def goes_again(call: Call, outcome: Outcome) -> bool:
    """Whether the courier keeps the outcome to itself and sends the call once more."""
    scheduler = sent_once(call)
    if scheduler.handle_outcome(call.request_id, outcome, NOW) is not None:
        return False
    alarm = scheduler.next_retry()
    return alarm is not None and scheduler.pop_ready(alarm) == [call]


@pytest.mark.parametrize("outcome", [Success(), Conflict("theirs"), Forbidden("no")])
def test_an_answer_is_handed_to_the_caller(outcome: Outcome) -> None:
    scheduler = sent_once(a_write())

    assert scheduler.handle_outcome(RequestId(1), outcome, NOW) == outcome


@pytest.mark.parametrize("verb", list(Verb))
@pytest.mark.parametrize("outcome", [NOT_SENT, TooManyRequests("busy", SECOND)])
def test_a_call_that_the_server_did_not_process_is_repeated(verb: Verb, outcome: Outcome) -> None:
    assert goes_again(a_write(verb=verb), outcome)


@pytest.mark.parametrize("outcome", [MAYBE_SENT, BROKEN])
def test_a_call_that_may_have_taken_effect_is_repeated_only_if_idempotent(
    outcome: Outcome,
) -> None:
    assert goes_again(a_get(), outcome)
    assert goes_again(a_write(verb=Verb.APPLY), outcome)
    assert goes_again(a_write(verb=Verb.DELETE, uid="u1"), outcome)
    assert not goes_again(a_write(verb=Verb.DELETE), outcome)
    assert not goes_again(a_write(verb=Verb.CREATE), outcome)
    assert not goes_again(a_write(verb=Verb.REPLACE), outcome)
    assert not goes_again(a_write(verb=Verb.PATCH), outcome)


@pytest.mark.parametrize("reason", [LossReason.UNTRUSTED, LossReason.CREDENTIALS])
def test_permanent_errors_are_not_retried(reason: LossReason) -> None:
    assert not goes_again(
        a_get(), NoResponse(Delivery.NOT_SENT, reason, "certificate signed by nobody")
    )


def test_a_throttled_call_waits_for_retry_after() -> None:
    scheduler = sent_once(a_get())

    scheduler.handle_outcome(RequestId(1), TooManyRequests("busy", Ms(7_000)), NOW)

    alarm = scheduler.next_retry()
    assert alarm is not None
    assert NOW + 7_000 <= alarm <= NOW + 8_400
    assert scheduler.pop_ready(Ms(alarm - 1)) == []


def test_delays_grow_and_differ_by_object_but_not_by_request() -> None:
    def delays(name: str, *, seed: int, request_id: int = 1) -> list[int]:
        scheduler = sent_once(a_get(request_id, name), seed=seed)
        now, result = NOW, []
        for _ in range(5):
            scheduler.handle_outcome(RequestId(request_id), NOT_SENT, now)
            retry_at = scheduler.next_retry()
            assert retry_at is not None
            result.append(retry_at - now)
            now = retry_at
            scheduler.pop_ready(now)
        return result

    assert delays("a", seed=7) == delays("a", seed=7, request_id=2)
    assert delays("a", seed=7) != delays("b", seed=7)
    assert delays("a", seed=7) != delays("a", seed=8)
    assert delays("a", seed=7) == sorted(delays("a", seed=7))


def test_after_the_retry_limit_the_caller_learns_whether_the_call_was_sent() -> None:
    scheduler = sent_once(a_write())
    scheduler.handle_outcome(RequestId(1), MAYBE_SENT, NOW)
    alarm = scheduler.next_retry()
    assert alarm is not None
    scheduler.pop_ready(alarm)

    outcome = scheduler.handle_outcome(RequestId(1), NOT_SENT, Ms(NOW + 2 * MINUTE))

    assert outcome == NoResponse(
        Delivery.MAYBE_SENT, LossReason.CONNECTION_REFUSED, "connection refused"
    )


def test_a_persistent_server_error_is_returned_after_five_attempts() -> None:
    scheduler = sent_once(a_get())
    now, tries = NOW, 1
    while scheduler.handle_outcome(RequestId(1), BROKEN, now) is None:
        alarm = scheduler.next_retry()
        assert alarm is not None
        now = alarm
        scheduler.pop_ready(now)
        tries += 1

    assert tries == 5


def test_the_concurrency_window_limits_calls_in_flight() -> None:
    scheduler = RequestScheduler()
    for request_id in range(1, 101):
        scheduler.add(a_get(request_id), NOW)

    first = scheduler.pop_ready(NOW)
    scheduler.handle_outcome(first[0].request_id, Success(), NOW)

    assert len(first) == 16
    assert len(scheduler.pop_ready(NOW)) == 1


def test_an_urgent_call_passes_a_full_window_and_all_that_wait_before_it() -> None:
    scheduler = RequestScheduler()
    for request_id in range(1, 101):
        scheduler.add(a_get(request_id), NOW)
    scheduler.pop_ready(NOW)
    urgent = a_get(200, urgent=True)

    scheduler.add(urgent, NOW)

    assert scheduler.pop_ready(NOW) == [urgent]


def test_a_throttling_cluster_gets_fewer_at_a_time_and_its_neighbour_does_not() -> None:
    scheduler = RequestScheduler()
    for request_id in range(1, 41):
        scheduler.add(a_get(request_id, cluster="slow"), NOW)
        scheduler.add(a_get(request_id + 100, cluster="fine"), NOW)
    flying = scheduler.pop_ready(NOW)

    for call in flying:
        outcome = TooManyRequests("busy", MINUTE) if call.cluster == "slow" else Success()
        scheduler.handle_outcome(call.request_id, outcome, NOW)
    again = [call.cluster for call in scheduler.pop_ready(NOW)]

    assert again.count("slow") == 8
    assert again.count("fine") >= 16


def test_slow_responses_shrink_the_concurrency_window() -> None:
    scheduler = RequestScheduler()
    now = NOW
    for latency in [20] * 200 + [2_000] * 20:
        scheduler.add(a_get(), now)
        scheduler.pop_ready(now)
        now = Ms(now + latency)
        scheduler.handle_outcome(RequestId(1), Success(), now)
    for request_id in range(1, 101):
        scheduler.add(a_get(request_id), now)

    flying = len(scheduler.pop_ready(now))

    assert flying < 16


def test_a_withdrawn_call_is_not_sent_and_its_answer_is_dropped() -> None:
    scheduler = RequestScheduler()
    for request_id in range(1, 18):
        scheduler.add(a_get(request_id), NOW)
    scheduler.pop_ready(NOW)

    with_world = scheduler.cancel(RequestId(1))
    queued = scheduler.cancel(RequestId(17))

    assert with_world == (True, False)
    assert queued == (False, False)
    assert scheduler.handle_outcome(RequestId(1), Success(), NOW) is None
    assert scheduler.pop_ready(NOW) == []


def test_an_expired_call_is_not_sent() -> None:
    scheduler, call = RequestScheduler(), structs.replace(a_write(), deadline=Ms(NOW + 10))
    scheduler.add(call, NOW)

    assert scheduler.pop_ready(Ms(NOW + 10)) == []
    ((request_id, lost),) = scheduler.pop_expired()
    assert request_id == call.request_id
    assert isinstance(lost, NoResponse)
    assert (lost.delivery, lost.reason) == (Delivery.NOT_SENT, LossReason.DEADLINE_PASSED)
    assert scheduler.pop_expired() == []


def test_an_expired_call_that_may_have_been_sent_is_reported_as_such() -> None:
    call = structs.replace(a_write(verb=Verb.APPLY), deadline=Ms(NOW + 10))
    scheduler = sent_once(call)
    scheduler.handle_outcome(call.request_id, MAYBE_SENT, NOW)

    assert scheduler.pop_ready(Ms(NOW + MINUTE)) == []
    ((request_id, lost),) = scheduler.pop_expired()
    assert request_id == call.request_id
    assert isinstance(lost, NoResponse)
    assert (lost.delivery, lost.reason) == (Delivery.MAYBE_SENT, LossReason.DEADLINE_PASSED)

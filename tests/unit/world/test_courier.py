"""Which call goes when, and which goes again."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.fakes.script import a_get, a_write
from tidegate.model.moment import MINUTE, SECOND, Ms
from tidegate.world.calls import Call, Ticket, Verb
from tidegate.world.courier import Courier
from tidegate.world.facts import (
    Conflict,
    Done,
    Failed,
    Forbidden,
    Loss,
    Lost,
    Outcome,
    Sent,
    Throttled,
)

NOW = Ms(1_000_000)
NOT_SENT = Lost(Sent.NO, Loss.REFUSED, "connection refused")
MAYBE_SENT = Lost(Sent.MAYBE, Loss.DISCONNECTED, "connection reset")
LATE = Lost(Sent.NO, Loss.LATE, "its time was up before it was sent")
BROKEN = Failed(500, "InternalError", "etcd has a bad day")


def sent_once(call: Call, *, seed: int = 0) -> Courier:
    courier = Courier(seed=seed)
    courier.accept(call, NOW)
    assert courier.release(NOW) == [call]
    return courier


def goes_again(call: Call, outcome: Outcome) -> bool:
    """Whether the courier keeps the outcome to itself and sends the call once more."""
    courier = sent_once(call)
    if courier.answered(call.ticket, outcome, NOW) is not None:
        return False
    alarm = courier.alarm()
    return alarm is not None and courier.release(alarm) == [call]


@pytest.mark.parametrize("outcome", [Done(), Conflict("theirs"), Forbidden("no")])
def test_an_answer_is_handed_to_the_caller(outcome: Outcome) -> None:
    courier = sent_once(a_write())

    assert courier.answered(Ticket(1), outcome, NOW) == outcome


@pytest.mark.parametrize("verb", list(Verb))
@pytest.mark.parametrize("outcome", [NOT_SENT, Throttled("busy", SECOND)])
def test_what_the_server_never_looked_at_goes_again_whatever_it_is(
    verb: Verb, outcome: Outcome
) -> None:
    assert goes_again(a_write(verb=verb), outcome)


@pytest.mark.parametrize("outcome", [MAYBE_SENT, BROKEN])
def test_what_may_have_taken_effect_goes_again_only_where_twice_is_as_good_as_once(
    outcome: Outcome,
) -> None:
    assert goes_again(a_get(), outcome)
    assert goes_again(a_write(verb=Verb.APPLY), outcome)
    assert goes_again(a_write(verb=Verb.DELETE, uid="u1"), outcome)
    assert not goes_again(a_write(verb=Verb.DELETE), outcome)
    assert not goes_again(a_write(verb=Verb.CREATE), outcome)
    assert not goes_again(a_write(verb=Verb.REPLACE), outcome)
    assert not goes_again(a_write(verb=Verb.PATCH), outcome)


@pytest.mark.parametrize("reason", [Loss.UNTRUSTED, Loss.CREDENTIALS])
def test_what_time_will_not_mend_is_not_tried_again(reason: Loss) -> None:
    assert not goes_again(a_get(), Lost(Sent.NO, reason, "certificate signed by nobody"))


def test_a_throttled_call_rests_as_long_as_the_server_asks() -> None:
    courier = sent_once(a_get())

    courier.answered(Ticket(1), Throttled("busy", Ms(7_000)), NOW)

    alarm = courier.alarm()
    assert alarm is not None
    assert NOW + 7_000 <= alarm <= NOW + 8_400
    assert courier.release(Ms(alarm - 1)) == []


def test_rests_grow_and_differ_by_ticket_but_not_by_run() -> None:
    def rests(ticket: int, seed: int) -> list[int]:
        courier = sent_once(a_get(ticket), seed=seed)
        now, found = NOW, []
        for _ in range(5):
            courier.answered(Ticket(ticket), NOT_SENT, now)
            alarm = courier.alarm()
            assert alarm is not None
            found.append(alarm - now)
            now = alarm
            courier.release(now)
        return found

    assert rests(1, seed=7) == rests(1, seed=7)
    assert rests(1, seed=7) != rests(2, seed=7)
    assert rests(1, seed=7) != rests(1, seed=8)
    assert rests(1, seed=7) == sorted(rests(1, seed=7))


def test_patience_ends_and_the_caller_hears_whether_it_may_have_been_sent() -> None:
    courier = sent_once(a_write())
    courier.answered(Ticket(1), MAYBE_SENT, NOW)
    alarm = courier.alarm()
    assert alarm is not None
    courier.release(alarm)

    outcome = courier.answered(Ticket(1), NOT_SENT, Ms(NOW + 2 * MINUTE))

    assert outcome == Lost(Sent.MAYBE, Loss.REFUSED, "connection refused")


def test_a_server_that_goes_on_failing_is_believed_after_five_times() -> None:
    courier = sent_once(a_get())
    now, tries = NOW, 1
    while courier.answered(Ticket(1), BROKEN, now) is None:
        alarm = courier.alarm()
        assert alarm is not None
        now = alarm
        courier.release(now)
        tries += 1

    assert tries == 5


def test_no_more_calls_fly_than_the_window_holds_and_each_answer_makes_room() -> None:
    courier = Courier()
    for ticket in range(1, 101):
        courier.accept(a_get(ticket), NOW)

    first = courier.release(NOW)
    courier.answered(first[0].ticket, Done(), NOW)

    assert len(first) == 16
    assert len(courier.release(NOW)) == 1


def test_an_urgent_call_passes_a_full_window_and_all_that_wait_before_it() -> None:
    courier = Courier()
    for ticket in range(1, 101):
        courier.accept(a_get(ticket), NOW)
    courier.release(NOW)
    urgent = a_get(200, urgent=True)

    courier.accept(urgent, NOW)

    assert courier.release(NOW) == [urgent]


def test_a_throttling_cluster_gets_fewer_at_a_time_and_its_neighbour_does_not() -> None:
    courier = Courier()
    for ticket in range(1, 41):
        courier.accept(a_get(ticket, cluster="slow"), NOW)
        courier.accept(a_get(ticket + 100, cluster="fine"), NOW)
    flying = courier.release(NOW)

    for call in flying:
        outcome = Throttled("busy", MINUTE) if call.cluster == "slow" else Done()
        courier.answered(call.ticket, outcome, NOW)
    again = [call.cluster for call in courier.release(NOW)]

    assert again.count("slow") == 8
    assert again.count("fine") >= 16


def test_answers_that_come_much_later_than_usual_narrow_the_window() -> None:
    courier = Courier()
    now = NOW
    for latency in [20] * 200 + [2_000] * 20:
        courier.accept(a_get(), now)
        courier.release(now)
        now = Ms(now + latency)
        courier.answered(Ticket(1), Done(), now)
    for ticket in range(1, 101):
        courier.accept(a_get(ticket), now)

    flying = len(courier.release(now))

    assert flying < 16


def test_a_withdrawn_call_is_not_sent_and_its_answer_is_nobodys() -> None:
    courier = Courier()
    for ticket in range(1, 18):
        courier.accept(a_get(ticket), NOW)
    courier.release(NOW)

    with_world = courier.withdraw(Ticket(1))
    queued = courier.withdraw(Ticket(17))

    assert with_world == (True, False)
    assert queued == (False, False)
    assert courier.answered(Ticket(1), Done(), NOW) is None
    assert courier.release(NOW) == []


def test_what_is_late_is_not_sent_any_more() -> None:
    courier, call = Courier(), structs.replace(a_write(), until=Ms(NOW + 10))
    courier.accept(call, NOW)

    assert courier.release(Ms(NOW + 10)) == []
    assert courier.late() == [(call.ticket, LATE)]
    assert courier.late() == []


def test_what_may_have_been_sent_before_it_was_late_may_have_been_sent() -> None:
    call = structs.replace(a_write(verb=Verb.APPLY), until=Ms(NOW + 10))
    courier = sent_once(call)
    courier.answered(call.ticket, MAYBE_SENT, NOW)

    assert courier.release(Ms(NOW + MINUTE)) == []
    assert courier.late() == [(call.ticket, structs.replace(LATE, sent=Sent.MAYBE))]

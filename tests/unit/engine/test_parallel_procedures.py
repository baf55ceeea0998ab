"""Several procedures as one, and writes that must not be late."""

from __future__ import annotations

import pytest

from tests.support.scripted_world import ScriptedWorld, a_write
from tidegate.engine.cluster.procedures import ApiCall, Pause, Procedure, ProcedureRunner, gather
from tidegate.model.times import Ms
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import Delivery, LossReason, NoResponse, NotFound, Outcome, Success

ASK = ApiCall("", a_write().request)
LATE = NoResponse(
    Delivery.NOT_SENT, LossReason.DEADLINE_PASSED, "its time was up before it was sent"
)


def asks(times: int) -> Procedure[list[Outcome]]:
    outcomes: list[Outcome] = []
    for _ in range(times):
        outcomes += yield (ASK,)
    return outcomes


def pauses(until: int) -> Procedure[list[Outcome]]:
    yield Pause(Ms(until))
    return []


def test_concurrent_requests_are_sent_at_once() -> None:
    procedure = gather([asks(2), asks(1), asks(0)])

    first = next(procedure)
    second = procedure.send((Success(), NotFound("")))

    with pytest.raises(StopIteration) as end:
        procedure.send((Success(),))

    assert (first, second) == ((ASK, ASK), (ASK,))
    assert end.value.value == [[Success(), Success()], [NotFound("")], []]


def test_pauses_end_one_after_another() -> None:
    procedure = gather([pauses(7), pauses(5), asks(1)])

    calls = [next(procedure), procedure.send((Success(),)), procedure.send(())]

    assert calls == [(ASK,), Pause(Ms(5)), Pause(Ms(7))]


def test_a_late_write_is_repeated_if_its_deadline_moved() -> None:
    world, outcomes = ScriptedWorld(), list[list[Outcome]]()
    moments = iter([world.now(), Ms(world.now() + 1), Ms(world.now() + 1), world.now()])
    errands = ProcedureRunner(Dispatcher(world).client(), write_deadline=lambda _: next(moments))

    errands.run(asks(1), outcomes.append)
    errands.deliver(world.sent[0].request_id, LATE)
    again = [call.deadline for call in world.sent]
    errands.deliver(world.sent[1].request_id, LATE)

    assert again == [world.now(), world.now() + 1]
    assert outcomes == [[LATE]]

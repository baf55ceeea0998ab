"""Several errands as one, and writes that must not be late."""

from __future__ import annotations

import pytest

from tests.fakes.script import ScriptedWorld, a_write
from tidegate.engine.reach.errands import Ask, Errand, Errands, Pause, together
from tidegate.model.moment import Ms
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Done, Loss, Lost, Missing, Outcome, Sent

ASK = Ask("", a_write().request)
LATE = Lost(Sent.NO, Loss.LATE, "its time was up before it was sent")


def asks(times: int) -> Errand[list[Outcome]]:
    heard: list[Outcome] = []
    for _ in range(times):
        heard += yield (ASK,)
    return heard


def pauses(until: int) -> Errand[list[Outcome]]:
    yield Pause(Ms(until))
    return []


def test_what_is_asked_at_the_same_time_is_asked_at_once() -> None:
    errand = together([asks(2), asks(1), asks(0)])

    first = next(errand)
    second = errand.send((Done(), Missing("")))

    with pytest.raises(StopIteration) as end:
        errand.send((Done(),))

    assert (first, second) == ((ASK, ASK), (ASK,))
    assert end.value.value == [[Done(), Done()], [Missing("")], []]


def test_pauses_end_one_after_another() -> None:
    errand = together([pauses(7), pauses(5), asks(1)])

    wishes = [next(errand), errand.send((Done(),)), errand.send(())]

    assert wishes == [(ASK,), Pause(Ms(5)), Pause(Ms(7))]


def test_a_write_that_was_late_goes_again_if_its_moment_has_moved() -> None:
    world, heard = ScriptedWorld(), list[list[Outcome]]()
    moments = iter([world.now(), Ms(world.now() + 1), Ms(world.now() + 1), world.now()])
    errands = Errands(Exchange(world).party(), until=lambda _: next(moments))

    errands.run(asks(1), heard.append)
    errands.answered(world.sent[0].ticket, LATE)
    again = [call.until for call in world.sent]
    errands.answered(world.sent[1].ticket, LATE)

    assert again == [world.now(), world.now() + 1]
    assert heard == [[LATE]]

"""Pairs of steps: what a record shows of them, and what whole seconds of a cluster can decide."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.recorded_wording import RecordedWording
from tidegate.model.k8s.objects import ClusterRef, Kind, Ref
from tidegate.model.plans.plan import Edge, ItemAction
from tidegate.model.plans.verification import ObservedObject, OrderPair, PairState
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.rollouts.run import RunHead, RunObject, RunStep, RunUnit
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.unit import UnitId
from tidegate.plan.order.observed import ObservedOrder, OrderInputs
from tidegate.plan.order.recorded import read_step_times
from tidegate.plan.order.verification import prove_order

UNIT = UnitId.plain("shop", "web")
KIND = Kind("", "v1", "ConfigMap")
KEPT, BROKEN = PairState.RESPECTED, PairState.VIOLATED
UNPROVEN, IDLE = PairState.UNPROVEN, PairState.IDLE


def ref(name: str) -> Ref:
    return Ref(KIND, "shop", name)


def step(name: str, *objects: str, action: ItemAction = ItemAction.APPLY) -> RunStep:
    return RunStep(
        id=name, unit=UNIT, objects=tuple(RunObject(ref(item), action) for item in objects)
    )


def head(*steps: RunStep, edges: tuple[tuple[str, str], ...] = (("one", "two"),)) -> RunHead:
    made = tuple(Edge(before, after) for before, after in edges)
    return RunHead(units=(RunUnit(id=UNIT, manager="tidegate"),), steps=steps, edges=made)


PLAIN = head(step("one", "a"), step("two", "b"))
JOINED = head(
    step("one", "a"), step("joint"), step("two", "b"), edges=(("one", "joint"), ("joint", "two"))
)


def ms(moment: float) -> Ms:
    return Ms(int(moment * SECOND))


def seen(
    order: RunHead,
    sightings: Mapping[str, ObservedObject],
    *,
    begun: float | None = 0,
    passed: Mapping[str, float] | None = None,
) -> OrderPair:
    opened = None if passed is None else {name: ms(at) for name, at in passed.items()}
    lookout = OrderInputs(
        observed_objects={ClusterRef("", ref(name)): item for name, item in sightings.items()},
        started_at=lambda _: None if begun is None else ms(begun),
        passed_at=opened,
    )
    (pair,) = prove_order(order, None, ObservedOrder(order, lookout))
    return pair


def made(at: float, **more: object) -> ObservedObject:
    return ObservedObject(ms(at), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("order", [PLAIN, JOINED], ids=["edge", "joint"])
@pytest.mark.parametrize(("a", "b", "state"), [(5, 6, KEPT), (5, 5, UNPROVEN), (6, 5, BROKEN)])
def test_two_objects_that_only_are_there(order: RunHead, a: int, b: int, state: PairState) -> None:
    pair = seen(order, {"a": made(a), "b": made(b)})

    assert pair.observed is state
    assert pair.before_evidence is not None
    assert pair.after_evidence is not None
    assert (pair.before_evidence.at, pair.after_evidence.at) == (ms(a), ms(b))


def test_an_order_violation_needs_a_record_if_readiness_can_change(
    wording: RecordedWording,
) -> None:
    final = {"a": made(1, ready_at=ms(9), is_final=True), "b": made(5)}
    turning = {"a": made(1, ready_at=ms(9)), "b": made(5)}

    assert seen(PLAIN, final).observed is BROKEN
    assert seen(PLAIN, turning).observed is UNPROVEN
    wording(seen(PLAIN, turning).explanation)
    assert seen(PLAIN, turning, passed={"one": 9.4}).observed is BROKEN
    assert seen(PLAIN, turning, passed={"one": 4.2}).observed is UNPROVEN
    wording(seen(PLAIN, turning, passed={"one": 4.2}).explanation)


def test_an_object_that_was_there_before_counts_by_what_its_manager_wrote() -> None:
    a = made(1, written_at=ms(12), ready_at=ms(14))

    untouched = seen(PLAIN, {"a": a, "b": made(1, written_at=ms(2))}, begun=10)
    later = seen(PLAIN, {"a": a, "b": made(1, written_at=ms(15))}, begun=10)

    assert (untouched.observed, later.observed) == (IDLE, KEPT)


def test_without_a_common_rollout_nothing_is_a_violation() -> None:
    pair = seen(PLAIN, {"a": made(6), "b": made(5)}, begun=None)

    assert pair.observed is UNPROVEN
    assert pair.before_evidence is not None


def test_an_object_of_several_steps_counts_in_the_first() -> None:
    """A namespace of two units was not written out of turn by the second."""
    order = head(step("one", "shared", "a"), step("two", "shared", "b"))

    pair = seen(order, {"shared": made(1), "a": made(3), "b": made(5)})

    assert pair.observed is KEPT


@pytest.mark.parametrize("gone", ["a", "b"])
def test_a_deleted_object_proves_nothing(gone: str) -> None:
    there = {name: made(1) for name in ("a", "b") if name != gone}

    assert seen(PLAIN, there).observed is UNPROVEN


def test_a_step_without_writes_and_one_without_waits_are_no_pairs() -> None:
    awaits = head(step("one", "a"), step("two", "b", action=ItemAction.AWAIT))
    alone = head(step("one"), step("two", "b"))

    assert prove_order(awaits, None, None) == prove_order(alone, None, None) == ()


def event(at: int, result: EventType, name: str) -> Event:
    return Event(Ms(at), result, step=name)


def ran(name: str, begins: int, ends: int) -> list[Event]:
    return [
        event(begins, EventType.STEP_APPLYING, name),
        event(begins, EventType.OBJECT_WRITTEN, name),
        event(ends, EventType.STEP_PASSED, name),
    ]


def recorded(order: RunHead, events: list[Event]) -> PairState | None:
    (pair,) = prove_order(order, read_step_times(order, events), None)
    return pair.recorded


@pytest.mark.parametrize("order", [PLAIN, JOINED], ids=["edge", "joint"])
def test_a_record_shows_whether_a_step_passed(order: RunHead) -> None:
    item, two = ran("one", 1, 5), ran("two", 6, 9)

    assert recorded(order, [*item, *two]) is KEPT
    assert recorded(order, item) is IDLE
    assert recorded(order, [*item[:2], *two]) is BROKEN
    assert recorded(order, [*two, *item]) is BROKEN


def test_a_step_without_changes_is_no_evidence_and_is_not_missed() -> None:
    order = head(step("one", "a", action=ItemAction.CREATE), step("two", "b"))

    assert recorded(order, ran("two", 6, 9)) is KEPT
    assert recorded(order, [event(5, EventType.STEP_APPLYING, "one"), *ran("two", 6, 9)]) is BROKEN


def test_a_restarted_step_is_awaited_again() -> None:
    once = [*ran("one", 1, 2), *ran("two", 3, 4)]
    again = event(5, EventType.STEP_APPLYING, "one")

    early = recorded(JOINED, [*once, again, *ran("two", 6, 7)])
    later = recorded(
        JOINED, [*once, again, event(6, EventType.STEP_PASSED, "one"), *ran("two", 7, 8)]
    )

    assert (early, later) == (BROKEN, KEPT)


SECONDS = st.integers(0, 4)


@given(a=SECONDS, ready=SECONDS, b=SECONDS, within=st.tuples(*[st.integers(0, 999)] * 3))
def test_verdicts_do_not_depend_on_milliseconds(
    a: int, ready: int, b: int, within: tuple[int, int, int]
) -> None:
    """Rounding times to seconds must not make the result of a pair better or worse."""
    times = [second * SECOND + part for second, part in zip((a, a + ready, b), within, strict=True)]
    truth = times[2] >= max(times[:2])

    pair = seen(PLAIN, {"a": made(a, ready_at=ms(a + ready), is_final=True), "b": made(b)})

    if pair.observed is KEPT:
        assert truth
    if pair.observed is BROKEN:
        assert not truth


def test_a_contradiction_outweighs_a_proof() -> None:
    pair = OrderPair(before="one", after="two", reason=PLAIN.edges[0].reason)

    def together(record: PairState, cluster: PairState) -> PairState:
        return msgspec.structs.replace(pair, recorded=record, observed=cluster).state

    assert together(KEPT, UNPROVEN) is KEPT
    assert together(KEPT, BROKEN) is BROKEN
    assert together(IDLE, UNPROVEN) is UNPROVEN
    assert together(IDLE, IDLE) is IDLE

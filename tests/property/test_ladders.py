"""A set of twelve units in four steps, under faults and kills: limits, the hold, and a failure.

What was under way when is read from the cluster's own record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tests.support.builders import make_object, make_unit_id
from tests.support.cluster_history import Record, is_ready
from tests.support.killable_processes import Happening
from tests.support.rollout_cases import (
    FAULTS,
    Case,
    Shape,
    fast_by,
    no_budget,
    shared_by,
    some_turns,
)
from tests.support.rollout_stages import PATIENCE, ProcessOptions, Stage
from tidegate.engine.records.markers import build_approval
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import Ms
from tidegate.model.units.unit import RollingSyncStep
from tidegate.plan.build.build import build_plan
from tidegate.sandbox.faults import ERROR, CallFault, FaultSelector, Frequency, Rejection
from tidegate.sandbox.world import START

pytestmark = pytest.mark.timeout(PATIENCE)

STEPS = ((0, 1, 2), (3, 4, 5, 6), (7, 8), (9, 10, 11))
LIMITS = (1, 2, 0, 3)
HELD = STEPS[2]
SET = "ApplicationSet/argocd/shop"


@dataclass(frozen=True)
class LadderTimes:
    """How long each unit takes, which of them never becomes healthy, and when units are approved.

    The second wave of a unit takes time. An approval in second 0 exists before the rollout starts.
    """

    case: Case
    approved: tuple[int, int]

    def stage(self) -> Stage:
        stage = Stage(self.case)
        stage.realm.preload([make_object("v1 Namespace", "tidegate-system", namespace="")])
        return stage

    @cache  # noqa: B019 - a value that exists for one example only
    def plan(self, *, first: int = 0) -> Plan:
        expected = list(self.case.unit_manifests())
        for number, (members, limit) in enumerate(zip(STEPS, LIMITS, strict=True), 1):
            for member in members:
                unit = structs.replace(
                    expected[member].unit,
                    concurrency_group=f"{SET} step {number}",
                    generated_by=SET,
                    rolling_sync_step=RollingSyncStep(number=number, limit=limit),
                )
                expected[member] = structs.replace(expected[member], unit=unit)
        return build_plan(expected[first:], readiness_timeout=no_budget)

    def approvals(self, stage: Stage) -> list[Happening]:
        digests = {unit.id: unit.digest for unit in self.plan().units}

        def approving(number: int) -> Happening:
            name = make_unit_id(f"unit-{HELD[number]}")

            def approve() -> None:
                write = build_approval(name.tracking_id, digests[name], "other-client")
                stage.realm.clusters[""].server.perform(write)

            return Ms(START + self.approved[number]), approve

        return [approving(number) for number in range(len(HELD))]


def rungs(fates: st.SearchStrategy[int | None], *, faulty: bool) -> st.SearchStrategy[LadderTimes]:
    def made(afters: list[int], bad: int | None, faults: tuple, approved: list[int]) -> LadderTimes:  # type: ignore[type-arg]
        units = tuple(
            ((Shape("Deployment", 0, 0, "well"),) * (at % 2 + 1), (last_of(at, after, bad),))
            for at, after in enumerate(afters)
        )
        case = Case(units, ((),) * len(units), faults)
        return LadderTimes(case, (approved[0], approved[1]))

    times = st.lists(st.sampled_from([0, 20, 900, 4_000]), min_size=12, max_size=12)
    moments = st.lists(st.integers(0, 90_000), min_size=2, max_size=2)
    return st.builds(made, times, fates, FAULTS if faulty else st.just(()), moments)


def last_of(at: int, after: int, bad: int | None) -> Shape:
    return Shape("Deployment", after, 0, "dies" if at == bad else "well")


well = rungs(st.none(), faulty=False)
rough = rungs(st.none(), faulty=True)
failing = rungs(st.integers(0, 11), faulty=True)


def numbered(name: str) -> int:
    return int(name.partition("-")[0][1:])


@dataclass(frozen=True)
class UnitTimes:
    """When units started and became healthy, by the number of the change."""

    begun: dict[int, int]
    well: dict[int, int]
    never: int

    @classmethod
    def from_record(cls, record: Record) -> UnitTimes:
        begun, well = dict[int, int](), dict[int, int]()
        for at, event in enumerate(record.changes):
            name = event.stored.ref.name
            if event.stored.ref.kind.name == "Deployment" and name.startswith("u"):
                begun.setdefault(numbered(name), at)
                if "-w1-" in name and is_ready(event.stored):
                    well.setdefault(numbered(name), at)
        return cls(begun, well, len(record.changes))

    def keeps_steps(self) -> bool:
        """No unit starts before all units of the previous step are healthy."""
        return all(
            self.well.get(early, self.never) <= self.begun.get(later, self.never)
            for before, after in pairwise(STEPS)
            for early in before
            for later in after
        )

    def keeps_limits(self) -> bool:
        """No more are under way than may be."""
        return all(
            len(self._busy(members, self.begun[member])) <= (limit or len(HELD))
            for members, limit in zip(STEPS, LIMITS, strict=True)
            for member in members
            if member in self.begun
        )

    def _busy(self, members: tuple[int, ...], at: int) -> list[int]:
        never = self.never
        begun = (member for member in members if self.begun.get(member, never) <= at)
        return [item for item in begun if at < self.well.get(item, never)]


def keeps_all(record: Record) -> bool:
    seen = UnitTimes.from_record(record)
    return seen.keeps_steps() and seen.keeps_limits()


@shared_by(4)
@given(rough)
def test_under_faults_limits_are_kept_and_the_hold_holds(ladder: LadderTimes) -> None:
    stage = ladder.stage()

    run = stage.roll_out(ladder.plan(), happenings=ladder.approvals(stage)).run

    assert run.result == "passed"
    assert keeps_all(stage.record)
    for number, moment in zip(HELD, ladder.approved, strict=True):
        events = [event for event in run.events if event.unit == make_unit_id(f"unit-{number}")]
        begins = [event.at for event in events if event.type is EventType.STEP_CHECKING]
        assert min(begins) >= START + moment


@shared_by(4)
@given(failing)
def test_a_unit_that_fails_keeps_all_later_steps_from_beginning(ladder: LadderTimes) -> None:
    stage = ladder.stage()

    run = stage.roll_out(ladder.plan(), happenings=ladder.approvals(stage)).run

    assert run.result == "failed"
    assert keeps_all(stage.record)


@shared_by(40)
@given(well, st.integers(0, 7), fast_by)
def test_a_killed_rolling_sync_keeps_its_limits_and_approvals(
    ladder: LadderTimes, variant: int, fast: int
) -> None:
    stage = ladder.stage()
    turns = stage.roll_out(ladder.plan(), happenings=ladder.approvals(stage)).life.turns

    for turn in list(some_turns(turns, variant))[:: 1 + turns // 40]:
        stage = ladder.stage()
        happenings = ladder.approvals(stage)
        dies = ProcessOptions(dies_at=turn, lands=turn % 4)
        stage.play(stage.actor(ladder.plan(), dies), happenings=happenings)
        later = replace(ladder, approved=(0, 0)).approvals(stage)
        run = stage.roll_out(ladder.plan(), ProcessOptions(holder="two", fast=fast), later).run

        assert run.result == "passed", turn
        assert keeps_all(stage.record)


def test_new_units_wait_for_units_started_by_the_killed_rollout() -> None:
    """Also if the first wave is healthy, and the second is rejected for a while."""
    refused = CallFault(Rejection(ERROR), FaultSelector(name="u1-w1-0"), Frequency(until=Ms(8_000)))
    shape = Shape("Deployment", 20, 0, "well")
    units = (((shape,), (shape,)),) * 12
    ladder = LadderTimes(Case(units, ((),) * len(units), (refused,)), (0, 0))
    stage = ladder.stage()
    turns = stage.roll_out(ladder.plan(first=1), happenings=ladder.approvals(stage)).life.turns

    for turn in range(1, turns, 1 + turns // 120):
        stage = ladder.stage()
        dies = ProcessOptions(dies_at=turn, lands=turn % 4)
        stage.play(stage.actor(ladder.plan(first=1), dies), happenings=ladder.approvals(stage))
        run = stage.roll_out(
            ladder.plan(), ProcessOptions(holder="two"), ladder.approvals(stage)
        ).run

        assert run.result == "passed", turn
        assert UnitTimes.from_record(stage.record).keeps_limits(), turn

"""Several units in one rollout: clusters, slots, external objects, late units, other clients."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cluster_history import Record, assert_counted, assert_record_in_order, is_ready
from tests.support.gate_assertions import assert_gates_open_for_our_text
from tests.support.killable_processes import Absence
from tests.support.random_fleets import (
    GROUP,
    Fleet,
    ObjectEdit,
    UnitTraits,
    fleets,
    hook_runs,
    meddlings,
)
from tests.support.rollout_cases import (
    MOSTLY_WELL,
    Case,
    Shape,
    fast_by,
    in_full,
    shared_by,
    some_turns,
)
from tests.support.rollout_runs import Run
from tests.support.rollout_stages import (
    PATIENCE,
    ProcessOptions,
    Stage,
    assert_two_blocks,
    finished,
    replayed,
)
from tidegate.model.plans.plan import Plan, step_items
from tidegate.model.rollouts.event import FINAL_STATES, EventType
from tidegate.model.units.unit import UnitId
from tidegate.world.messages import WatchEventType

pytestmark = pytest.mark.timeout(PATIENCE)
calm = fleets()
rough = fleets(fates=MOSTLY_WELL, faulty=True)
some_units = st.frozensets(st.integers(0, 3), min_size=1, max_size=3)
absences = st.builds(
    Absence, st.integers(100, 15_000), st.integers(1, 40), st.sampled_from(["cut", "frozen"])
)


@shared_by(4)
@given(rough)
def test_every_fleet_finishes_in_order(fleet: Fleet) -> None:
    stage = fleet.stage()

    actor = stage.roll_out(fleet.plan(), happenings=fleet.strangers(stage))

    run = actor.run
    assert all(state in FINAL_STATES for state in run.states.values())
    assert run.result in ("passed", "failed")
    assert_record_in_order(fleet.whole(), stage.record)
    assert_counted(stage.record)
    assert_slots_kept(fleet, run)
    assert replayed(actor.script) == actor.script


@shared_by(4)
@given(calm)
def test_a_healthy_fleet_finishes_within_its_concurrency_limits(fleet: Fleet) -> None:
    stage, whole = fleet.stage(), fleet.whole()

    run = stage.roll_out(fleet.plan(), happenings=fleet.strangers(stage)).run

    assert run.result == "passed"
    assert_finished(stage, whole)
    assert_slots_kept(fleet, run)
    assert most_under_way(whole, stage.record) <= fleet.limit
    assert set(hook_runs(stage.record).values()) <= {1}


@shared_by(10)
@given(rough)
def test_the_same_seed_gives_the_same_events_of_a_fleet(fleet: Fleet) -> None:
    stages = [fleet.stage(seed=7) for _ in range(2)]

    item, other = (
        stage.roll_out(fleet.plan(), happenings=fleet.strangers(stage)).run for stage in stages
    )

    assert msgspec.json.encode(item.events) == msgspec.json.encode(other.events)


@shared_by(60)
@given(calm, st.integers(0, 7))
def test_a_fleet_killed_at_any_turn_has_the_same_result(fleet: Fleet, variant: int) -> None:
    stage, whole = fleet.stage(), fleet.whole()
    turns = stage.roll_out(fleet.plan(), happenings=fleet.strangers(stage)).life.turns

    for turn in some_turns(turns, variant):
        stage = fleet.stage()
        strangers = fleet.strangers(stage)
        dies = ProcessOptions(dies_at=turn, lands=(turn + variant // 2) % 4)
        stage.play(stage.actor(fleet.plan(), dies), happenings=strangers)
        fast = (0, 16_000, -3_600_000)[turn % 3]
        heir = ProcessOptions(holder="one" if (turn + variant) % 2 else "two", fast=fast)
        run = stage.roll_out(fleet.plan(), heir, strangers).run

        assert run.result == "passed", turn
        assert_finished(stage, whole)
        assert_record_in_order(whole, stage.record)
        assert_counted(stage.record)
        assert_slots_kept(fleet, run)
        assert set(hook_runs(stage.record).values()) <= {1}, turn


@shared_by(5)
@given(calm, st.integers(100, 15_000), st.tuples(fast_by, fast_by))
def test_two_rollouts_of_a_fleet_never_write_at_once(
    fleet: Fleet, begins: int, clocks: tuple[int, int]
) -> None:
    stage = fleet.stage()

    play_two(fleet, stage, begins, clocks)

    assert set(hook_runs(stage.record).values()) <= {1}


@shared_by(5)
@given(calm, st.integers(100, 15_000), absences, st.tuples(fast_by, fast_by))
def test_two_rollouts_do_not_conflict_while_one_is_disconnected(
    fleet: Fleet, begins: int, absence: Absence, clocks: tuple[int, int]
) -> None:
    stage = fleet.stage()

    play_two(fleet, stage, begins, clocks, absence)

    assert set(hook_runs(stage.record).values()) <= {1}


def play_two(
    fleet: Fleet,
    stage: Stage,
    begins: int,
    clocks: tuple[int, int],
    absence: Absence | None = None,
) -> None:
    """Two rollouts of one plan, of which the second comes later; what is true of both."""
    first = stage.actor(fleet.plan(), ProcessOptions(fast=clocks[0]))
    second = stage.actor(fleet.plan(), ProcessOptions(holder="two", begins=begins, fast=clocks[1]))
    away = absence.happenings(first.life) if absence else []

    stage.play(first, second, happenings=[*fleet.strangers(stage), *away])

    assert (first.run.result, second.run.result) == ("passed", "passed")
    assert_two_blocks(stage)
    assert_finished(stage, fleet.whole())
    assert_record_in_order(fleet.whole(), stage.record)


@shared_by(5)
@given(calm, st.integers(0, 3))
def test_one_error_prevents_all_writes_of_a_fleet(fleet: Fleet, bad: int) -> None:
    fleet = replace(fleet, joins_later=False)
    stage = fleet.stage()

    run = stage.roll_out(fleet.plan(bad=bad % len(fleet.traits))).run

    assert run.result == "invalid"
    assert stage.realm.landed == []


@shared_by(5)
@given(calm, st.integers(0, 3))
def test_skip_broken_skips_the_invalid_unit_and_its_dependents(fleet: Fleet, bad: int) -> None:
    fleet, bad = replace(fleet, joins_later=False), bad % len(fleet.traits)
    stage, plan = fleet.stage(), fleet.plan(bad=bad)

    part = ProcessOptions(keeps_going=True)
    run = stage.roll_out(plan, part, fleet.strangers(stage)).run

    left = dependent_steps(plan, plan.units[bad].id)
    rest = msgspec.structs.replace(plan, steps=tuple(s for s in plan.steps if s.id not in left))
    assert run.result == "failed"
    assert_finished(stage, rest)
    names = {item.ref.name for step in plan.steps if step.id in left for item in step_items(step)}
    names -= {item.ref.name for step in rest.steps for item in step_items(step)}
    planned = {item.ref.name for item in stage.planned() if item.ref.namespace == "default"}
    awaited = {name for name in names if name.startswith("u-nobody")}
    assert not planned & (names - awaited)


@in_full(4)
@given(calm, meddlings)
def test_no_gate_opens_for_a_spec_that_is_not_live(
    fleet: Fleet, meddlers: list[ObjectEdit]
) -> None:
    stage = fleet.stage()
    happenings = [
        *fleet.strangers(stage),
        *(meddler.happening(fleet, stage) for meddler in meddlers),
    ]

    actor = stage.roll_out(fleet.plan(), happenings=happenings)

    assert all(state in FINAL_STATES for state in actor.run.states.values())
    assert actor.run.result in ("passed", "failed")
    assert_gates_open_for_our_text(actor.script, stage.record)
    assert replayed(actor.script) == actor.script
    assert set(hook_runs(stage.record).values()) <= {1}


def test_no_gate_opens_when_an_object_is_edited_deleted_and_reverted_at_once() -> None:
    plain = UnitTraits(place="", awaits="", grouped=False, hooked=False)
    settings, web = Shape("ConfigMap", 0, 0, "well"), Shape("Deployment", 0, 4_000, "well")
    case = Case((((settings,),), ((settings, web),), ((settings,),)), ((), (0,), (0, 1)), ())
    fleet = Fleet(case, (plain, plain, plain), limit=1, joins_later=False, comes=10)
    meddlers = [
        ObjectEdit(50, 2, "edits"),
        ObjectEdit(50, 2, "deletes"),
        ObjectEdit(59, 2, "reverts"),
    ]
    stage = fleet.stage()
    happenings = [
        *fleet.strangers(stage),
        *(meddler.happening(fleet, stage) for meddler in meddlers),
    ]

    actor = stage.roll_out(fleet.plan(), happenings=happenings)

    assert_gates_open_for_our_text(actor.script, stage.record)


def test_no_gate_opens_for_replicas_that_another_client_sets_to_zero() -> None:
    settings, web = Shape("ConfigMap", 0, 0, "well"), Shape("Elastic", 0, 4_000, "well")
    case = Case((((web,), (settings,)),), ((),), ())
    plain = UnitTraits(place="", awaits="", grouped=False, hooked=False)
    fleet = Fleet(case, (plain,), limit=1, joins_later=False, comes=10)
    stage = fleet.stage()

    actor = stage.roll_out(
        fleet.plan(), happenings=[ObjectEdit(1_000, 0, "idles").happening(fleet, stage)]
    )

    assert actor.run.result == "failed"
    assert_gates_open_for_our_text(actor.script, stage.record)


@shared_by(10)
@given(calm, meddlings, st.integers(1, 60), fast_by)
def test_nor_when_its_process_is_killed_meanwhile(
    fleet: Fleet, meddlers: list[ObjectEdit], turn: int, fast: int
) -> None:
    stage = fleet.stage()
    happenings = [
        *fleet.strangers(stage),
        *(meddler.happening(fleet, stage) for meddler in meddlers),
    ]
    dying = stage.actor(fleet.plan(), ProcessOptions(dies_at=turn, lands=turn % 3))
    stage.play(dying, happenings=happenings)

    heir = stage.roll_out(fleet.plan(), ProcessOptions(holder="two", fast=fast), happenings)

    assert heir.run.result in ("passed", "failed")
    for actor in (dying, heir):
        assert_gates_open_for_our_text(actor.script, stage.record)


@shared_by(4)
@given(calm, some_units, st.integers(1, 60))
def test_a_newer_plan_for_some_units_takes_over_at_any_turn(
    fleet: Fleet, units: frozenset[int], turn: int
) -> None:
    fleet = replace(fleet, joins_later=False)
    stage, newer, came = fleet.stage(), fleet.newer(units), list[bool]()
    part = ProcessOptions(calls={turn: lambda driver: came.append(driver.supersede(newer))})

    actor = stage.roll_out(fleet.plan(), part, fleet.strangers(stage))

    assert actor.run.result == "passed"
    assert_finished(stage, newer if came == [True] else fleet.plan())
    assert replayed(actor.script) == actor.script
    runs = hook_runs(stage.record)
    renewed = {f"u{number}-hook" for number in units} if came == [True] else set[str]()
    assert all(count <= 1 + (name in renewed) for name, count in runs.items())


@shared_by(4)
@given(calm, some_units, st.integers(100, 9_000), st.tuples(fast_by, fast_by))
def test_a_newer_plan_of_another_process_takes_its_units_and_leaves_the_rest_running(
    fleet: Fleet, units: frozenset[int], begins: int, clocks: tuple[int, int]
) -> None:
    fleet = replace(fleet, joins_later=False)
    plan = fleet.plan()
    units = frozenset(number % len(fleet.traits) for number in units)
    stage, newer = fleet.stage(), fleet.part(units)
    first = stage.actor(plan, ProcessOptions(fast=clocks[0]))
    second = stage.actor(newer, ProcessOptions(holder="two", begins=begins, fast=clocks[1]))

    stage.play(first, second, happenings=fleet.strangers(stage))

    assert first.run.result in ("passed", "stopped")
    assert second.run.result == "passed"
    assert_finished(stage, newer)
    assert_two_blocks(stage)
    ends = {event.unit: event.reason for event in first.run.events_of(EventType.UNIT_FINISHED)}
    taken = {unit.id for unit in newer.units}
    left = set[str]().union(*(dependent_steps(plan, unit) for unit in taken))
    alone = {step.unit for step in plan.steps} - {s.unit for s in plan.steps if s.id in left}
    assert {ends[unit] for unit in alone} <= {"passed"}


def assert_finished(stage: Stage, plan: Plan) -> None:
    there, expected = stage.objects(), finished(plan)
    assert {ref: there.get(ref) for ref in expected} == expected


def assert_slots_kept(fleet: Fleet, run: Run) -> None:
    """By events: a unit of the group is in progress from its first step to its end."""
    grouped = {unit.id for unit in fleet.whole().units if unit.group == GROUP}
    under_way: set[UnitId] = set()
    for event in run.events:
        if event.unit in grouped and event.unit is not None:
            if event.type is EventType.STEP_CHECKING:
                under_way.add(event.unit)
            if event.type is EventType.UNIT_FINISHED:
                under_way.discard(event.unit)
        assert len(under_way) <= fleet.limit


def most_under_way(plan: Plan, record: Record) -> int:
    """By the clusters: how many units of the group were between first object and last ready."""
    units = {unit.id: unit.group for unit in plan.units}
    left: dict[UnitId, set[str]] = {}
    for step in plan.steps:
        if units[step.unit] == GROUP:
            kept = (item.ref.name for item in step_items(step) if item.body and item.hook is None)
            left.setdefault(step.unit, set()).update(kept)
    most, begun = 0, set[UnitId]()
    for event in record.changes:
        stored = event.stored
        for unit, names in left.items():
            if stored.ref.name in names:
                begun.add(unit)
                if is_ready(stored) or event.change is WatchEventType.DELETED:
                    names.discard(stored.ref.name)
        most = max(most, sum(bool(left[unit]) for unit in begun))
    return most


def dependent_steps(plan: Plan, unit: UnitId) -> set[str]:
    """The steps of a unit, and all that wait for them."""
    result: set[str] = set()
    ahead = [step.id for step in plan.steps if step.unit == unit]
    while ahead:
        name = ahead.pop()
        if name not in result:
            result.add(name)
            ahead += [edge.after for edge in plan.edges if edge.before == name]
    return result

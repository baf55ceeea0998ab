"""Objects removed from Git, and deleted units, are deleted in order and once despite kills."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cluster_history import is_ready, remembered
from tests.support.rollout_cases import no_budget, shared_by, some_turns
from tests.support.rollout_hooks import (
    BEFORE,
    HookCase,
    assert_gone_in_reverse,
    assert_let_go,
    faulty_named,
    faulty_unhooked,
    named_hooked,
    runs_of,
    unhooked,
)
from tests.support.rollout_runs import PolicyChanges
from tests.support.rollout_stages import PATIENCE, ProcessOptions, Stage
from tidegate.model.plans.plan import HookPolicy, Plan
from tidegate.plan.changes.delete_unit import build_deletion
from tidegate.plan.changes.prune import PruneCandidate
from tidegate.sandbox.server.store import StoreEvent
from tidegate.world.messages import WatchEventType

pytestmark = pytest.mark.timeout(PATIENCE)
PRUNES: PolicyChanges = {"prune": True}


@shared_by(50)
@given(unhooked, st.integers(0, 1), st.integers(0, 7))
def test_a_prune_killed_at_any_turn_continues_in_order(
    case: HookCase, waves: int, variant: int
) -> None:
    plan = case.plan(image="app:2", waves=waves)
    stage = _deployed(case)
    turns = stage.roll_out(plan, ProcessOptions(changes=PRUNES)).life.turns

    for turn in some_turns(turns, variant):
        stage = _deployed(case)
        since = len(stage.record.changes)
        lands = (turn + variant // 2) % 4
        stage.play(stage.actor(plan, ProcessOptions(dies_at=turn, lands=lands, changes=PRUNES)))
        heir = ProcessOptions(holder="one" if (turn + variant) % 2 else "two", changes=PRUNES)
        run = stage.roll_out(plan, heir).run

        assert run.result == "passed", turn
        assert_pruned(case, stage, waves, since)


@shared_by(8)
@given(faulty_unhooked, st.integers(0, 1))
def test_faults_change_nothing_about_the_order_of_a_prune(case: HookCase, waves: int) -> None:
    stage = _deployed(case)
    since = len(stage.record.changes)

    run = stage.roll_out(case.plan(image="app:2", waves=waves), ProcessOptions(changes=PRUNES)).run

    assert run.result == "passed"
    assert_pruned(case, stage, waves, since)


def _deployed(case: HookCase) -> Stage:
    stage = Stage(case)
    assert stage.roll_out(case.plan()).run.result == "passed"
    return stage


def assert_pruned(case: HookCase, stage: Stage, waves: int, since: int) -> None:
    going = case.waves_of(range(waves, len(case.waves)))
    changes = stage.record.changes[since:]
    assert_gone_in_reverse(going, changes)
    assert not remembered(stage.record) & set(going)
    kept = case.waves_of(range(min(waves, len(case.waves))))
    first = next(
        (place for place, change in enumerate(changes) if _goes(change, going)), len(changes)
    )
    ready = {change.stored.ref.name for change in changes[:first] if is_ready(change.stored)}
    assert not going or set(kept) <= ready


def _goes(event: StoreEvent, going: dict[str, int]) -> bool:
    leaves = event.change is WatchEventType.DELETED or event.stored.is_deleting
    return leaves and event.stored.ref.name in going


@shared_by(50)
@given(named_hooked, st.integers(0, 7))
def test_a_deletion_killed_at_any_turn_continues_in_order(case: HookCase, variant: int) -> None:
    stage = _deployed_without_hooks(case)
    turns = stage.roll_out(_end(case, stage)).life.turns

    for turn in some_turns(turns, variant):
        stage = _deployed_without_hooks(case)
        since = len(stage.record.changes)
        lands = (turn + variant // 2) % 4
        stage.play(stage.actor(_end(case, stage), ProcessOptions(dies_at=turn, lands=lands)))
        heir = ProcessOptions(holder="one" if (turn + variant) % 2 else "two")
        run = stage.roll_out(_end(case, stage), heir).run

        assert run.result == "passed", turn
        assert_ended(case, stage, since)


@shared_by(8)
@given(faulty_named)
def test_faults_change_nothing_about_the_order_of_a_deletion(case: HookCase) -> None:
    stage = _deployed_without_hooks(case)
    since = len(stage.record.changes)

    run = stage.roll_out(_end(case, stage)).run

    assert run.result == "passed"
    assert_ended(case, stage, since)


def _deployed_without_hooks(case: HookCase) -> Stage:
    """A unit whose hooks are all of its end."""
    return _deployed(replace(case, hooks=()))


def _end(case: HookCase, stage: Stage) -> Plan:
    """Delete the remaining objects, with what a new process finds in the cluster."""
    expected = case.ending()
    there = {item.ref for item in stage.planned()}
    named = {
        manifest.ref: manifest.wave for manifest in (*expected.manifests, *expected.before_deletion)
    }
    candidates = [PruneCandidate(ref, wave) for ref, wave in named.items() if ref in there]
    return build_deletion(expected, candidates, readiness_timeout=no_budget)


def assert_ended(case: HookCase, stage: Stage, since: int) -> None:
    changes = stage.record.changes[since:]
    assert_gone_in_reverse(case.waves_of(range(len(case.waves))), changes)
    runs = runs_of(case, changes)
    assert runs == dict.fromkeys(range(len(case.hooks)), 1)
    assert_let_go(stage.planned())
    stay = {item.ref.name for item in stage.planned() if not item.is_deleting}
    for number, hook in enumerate(case.hooks):
        if hook.phase in BEFORE or HookPolicy.SUCCEEDED in hook.policies:
            assert f"u0-h{number}" not in stay

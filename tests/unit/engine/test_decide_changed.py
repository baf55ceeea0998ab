"""Objects that another client changes while a gate waits for them, by each engine's rules."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.support.builders import make_deployment, make_plan_from
from tests.support.decision_run import DecisionRun
from tidegate.engine.messages import Apply, Failure, HealthChanged, Verify, VerifyFinished
from tidegate.model.k8s.objects import ClusterRef
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.rollouts.event import EventType, StepState
from tidegate.model.units.semantics import ARGOCD, FLUX, TIDEGATE, OnDisappear, Semantics

DB, WEB = "shop/sync/0", "shop/sync/1"
TWO_WAVES = make_plan_from(make_deployment("db"), make_deployment("web"))
ONE_WAVE = make_plan_from((make_deployment("db"), make_deployment("mail")))
CHANGED = Failure("Changed", "was changed by kubectl: `spec.replicas`")
STRICT = structs.replace(TIDEGATE, on_disappear=OnDisappear.FAIL)


def spot_of(play: DecisionRun, name: str) -> ClusterRef:
    return next(cluster_ref for cluster_ref in play.rollout.items if cluster_ref.ref.name == name)


def change(
    play: DecisionRun, name: str, *, health: Health = Health.HEALTHY, generation: int = 2
) -> None:
    """Another client writes the object, and its controller reports its health."""
    (run,) = play.rollout.items[spot_of(play, name)]
    assert run.written is not None
    verdict = Verdict(health, health.value, is_checked=True, observed_generation=generation)
    version = str(int(run.written.version) + 100)
    play.receive(
        HealthChanged(run.object_ref, run.written.uid, generation, version, verdict, "another")
    )


def verify(play: DecisionRun, name: str, trouble: Failure | None, *, generation: int = 2) -> None:
    (run,) = play.rollout.items[spot_of(play, name)]
    assert run.written is not None
    uid, step = run.written.uid, run.step.step.id
    play.receive(VerifyFinished(step, run.object_ref, uid, generation, "101", trouble))
    play.wait(0)


def read_result(play: DecisionRun) -> int:
    return sum(isinstance(command, Verify) for command in play.commands)


def writes(play: DecisionRun, name: str) -> int:
    applied = (command for command in play.commands if isinstance(command, Apply))
    return sum(item.object_ref.ref.name == name for item in applied)


@pytest.mark.parametrize("rules", [ARGOCD, FLUX], ids=lambda rules: str(rules.name))
def test_engines_without_fences_compare_nothing(rules: Semantics) -> None:
    play = DecisionRun(TWO_WAVES, rules)

    change(play, "db")
    play.wait(6)

    assert read_result(play) == 0
    assert writes(play, "db") == 1
    assert play.starts(WEB)


def test_a_verdict_about_a_later_generation_counts_if_our_fields_are_unchanged() -> None:
    play = DecisionRun(TWO_WAVES, TIDEGATE)

    change(play, "db")
    before = play.states[DB]
    verify(play, "db", None)

    assert before is StepState.GATING
    assert (read_result(play), writes(play, "db")) == (1, 1)
    assert play.states[DB] is StepState.PASSED


def test_a_text_that_was_compared_is_not_compared_again() -> None:
    play = DecisionRun(TWO_WAVES, TIDEGATE)

    change(play, "db", health=Health.PROGRESSING)
    verify(play, "db", None)
    change(play, "db")

    assert read_result(play) == 1
    assert play.states[DB] is StepState.PASSED


def test_an_object_changed_by_another_client_is_reported_and_written_again() -> None:
    play = DecisionRun(TWO_WAVES, TIDEGATE)

    change(play, "db")
    verify(play, "db", CHANGED)

    (wait,) = [event for event in play.events if event.reason == "Changed"]
    assert (wait.type, wait.message) == (EventType.GATE_WAITING, CHANGED.message)
    assert writes(play, "db") == 2
    assert play.states[DB] is StepState.GATING


def test_a_changed_healthy_object_closes_its_gate() -> None:
    play = DecisionRun(ONE_WAVE, TIDEGATE)
    play.judge("mail", Health.HEALTHY)

    change(play, "mail")
    compares = read_result(play)
    verify(play, "mail", CHANGED)
    play.judge("db", Health.HEALTHY)
    before = play.states[DB]
    play.judge("mail", Health.HEALTHY)

    assert (compares, writes(play, "mail")) == (1, 2)
    assert (before, play.states[DB]) == (StepState.GATING, StepState.PASSED)


def test_a_deleted_healthy_object_closes_its_gate_until_it_is_healthy_again() -> None:
    play = DecisionRun(ONE_WAVE, TIDEGATE)
    play.judge("mail", Health.HEALTHY)

    play.lose("mail")
    play.judge("db", Health.HEALTHY)
    before = play.states[DB]
    play.judge("mail", Health.HEALTHY)

    assert writes(play, "mail") == 2
    assert (before, play.states[DB]) == (StepState.GATING, StepState.PASSED)


def test_a_finished_job_may_be_deleted_before_the_gate_opens() -> None:
    play = DecisionRun(ONE_WAVE, TIDEGATE)
    play.judge("mail", Health.HEALTHY, final=True)

    play.lose("mail")
    play.judge("db", Health.HEALTHY)

    assert writes(play, "mail") == 1
    assert play.states[DB] is StepState.PASSED


@pytest.mark.parametrize("rules", [ARGOCD, FLUX], ids=lambda rules: str(rules.name))
def test_without_fences_a_deleted_healthy_object_does_not_close_the_gate(rules: Semantics) -> None:
    play = DecisionRun(ONE_WAVE, rules)
    play.judge("mail", Health.HEALTHY)
    play.wait(6)

    play.lose("mail")

    assert writes(play, "mail") == 1


def test_without_reverting_a_change_fails_the_step() -> None:
    play = DecisionRun(TWO_WAVES, STRICT)

    change(play, "db")
    verify(play, "db", CHANGED)

    assert writes(play, "db") == 1
    assert play.states == {DB: StepState.FAILED, WEB: StepState.SKIPPED}
    (failure,) = [event for event in play.events if event.type is EventType.STEP_FAILED]
    assert CHANGED.message in failure.message

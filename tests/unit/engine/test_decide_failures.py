"""What fails, when, and how often it is tried again."""

from __future__ import annotations

import pytest

from tests.support.builders import make_deployment, make_plan_from
from tests.support.decision_run import DecisionRun
from tidegate.engine.messages import ReadStatus
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.verdict import Health
from tidegate.model.rollouts.event import EventType, StepState
from tidegate.model.units.semantics import ARGOCD, FLUX, TIDEGATE

DB, WEB = "shop/sync/0", "shop/sync/1"
ONE_WAVE = make_plan_from(make_deployment("db"))
TWO_WAVES = make_plan_from(make_deployment("db"), make_deployment("web"))
ALWAYS = 99


def test_a_refused_write_is_tried_again_after_longer_and_longer_pauses() -> None:
    play = DecisionRun(ONE_WAVE, TIDEGATE, refusals={"db": ALWAYS})

    play.wait(1_000)

    assert play.starts(DB) == [0.0, 5.0, 15.0, 35.0, 75.0, 155.0]
    assert play.states == {DB: StepState.FAILED}


def test_a_retry_resumes_at_the_step_that_failed() -> None:
    play = DecisionRun(TWO_WAVES, TIDEGATE, refusals={"web": 2})

    play.judge("db", Health.HEALTHY)
    play.wait(60)

    assert play.starts(DB) == [0.0]
    assert play.starts(WEB) == [0.0, 5.0, 15.0]


def test_a_retry_of_argo_cd_starts_with_the_first_wave() -> None:
    play = DecisionRun(TWO_WAVES, ARGOCD, refusals={"web": 2})

    play.judge("db", Health.HEALTHY)
    play.wait(60)

    assert play.starts(DB) == [0.0, 12.0, 34.0]
    assert play.starts(WEB) == [2.0, 14.0, 36.0]


def test_a_retry_of_flux_starts_after_a_minute() -> None:
    play = DecisionRun(ONE_WAVE, FLUX, refusals={"db": ALWAYS})

    play.wait(1_000)

    assert play.starts(DB) == [60.0 * number for number in range(17)], "for ever"


def test_degraded_that_recovers_in_time_does_not_fail() -> None:
    play = DecisionRun(ONE_WAVE, TIDEGATE)

    play.judge("db", Health.DEGRADED)
    play.wait(29)
    play.judge("db", Health.HEALTHY)

    assert play.states == {DB: StepState.PASSED}


def test_degraded_that_stays_fails_when_its_time_is_up() -> None:
    play = DecisionRun(ONE_WAVE, TIDEGATE)

    play.judge("db", Health.DEGRADED)
    play.wait(60)

    assert play.moments(EventType.STEP_FAILED) == [(30.0, "step.failed", DB)]


def test_degraded_for_good_fails_at_once() -> None:
    play = DecisionRun(ONE_WAVE, TIDEGATE)

    play.wait(1)
    play.judge("db", Health.DEGRADED, final=True)

    assert play.moments(EventType.STEP_FAILED) == [(1.0, "step.failed", DB)]


def test_suspended_has_ten_minutes() -> None:
    play = DecisionRun(ONE_WAVE, TIDEGATE)

    play.judge("db", Health.SUSPENDED)
    play.wait(601)

    assert play.moments(EventType.STEP_FAILED) == [(600.0, "step.failed", DB)]


def test_the_timeout_of_a_gate_follows_its_object() -> None:
    slow = make_deployment("db")
    spec = {**get_mapping(slow, "spec"), "progressDeadlineSeconds": 900}
    play = DecisionRun(make_plan_from({**slow, "spec": spec}), TIDEGATE)

    play.wait(2_000)

    ((failed_after, *_),) = play.moments(EventType.STEP_FAILED)
    assert failed_after >= 900


@pytest.mark.parametrize("health", [Health.DEGRADED, Health.PROGRESSING])
def test_objects_are_read_again_before_a_gate_times_out(health: Health) -> None:
    play = DecisionRun(ONE_WAVE, TIDEGATE)

    play.judge("db", health)
    play.wait(2_000)

    looks = [command for command in play.commands if isinstance(command, ReadStatus)]
    assert [look.objects[0][0].ref.name for look in looks] == ["db"]


def test_argo_cd_fails_a_wave_when_all_of_it_has_settled() -> None:
    play = DecisionRun(
        make_plan_from((make_deployment("db"), make_deployment("mail")), make_deployment("web")),
        ARGOCD,
    )

    play.judge("db", Health.DEGRADED)
    play.wait(20)
    play.judge("mail", Health.HEALTHY)
    play.wait(6)

    assert play.moments(EventType.RETRY_SCHEDULED) == [(20.0, "retry.scheduled", DB)]


def test_an_object_that_fails_permanently_fails_its_step() -> None:
    play = DecisionRun(make_plan_from((make_deployment("db"), make_deployment("mail"))), TIDEGATE)

    play.wait(1)
    play.judge("db", Health.DEGRADED, final=True)

    assert play.moments(EventType.STEP_FAILED) == [(1.0, "step.failed", DB)]


def test_steps_after_a_failure_are_retried_too_where_the_rollout_carries_on() -> None:
    play = DecisionRun(TWO_WAVES, TIDEGATE, carries_on=True, refusals={"db": ALWAYS, "web": 2})

    play.wait(600)
    play.judge("web", Health.HEALTHY)

    assert play.states == {DB: StepState.FAILED, WEB: StepState.PASSED}
    assert play.starts(WEB) == [155.0, 160.0, 170.0]


def test_a_retried_step_waits_for_responses_of_its_previous_attempt() -> None:
    both = make_plan_from((make_deployment("db"), make_deployment("mail")))
    play = DecisionRun(both, TIDEGATE, slow=("db", "mail"))
    play.wrote("db")
    play.wrote("mail")
    play.lose("db")
    play.lose("mail")

    play.wrote("db", "Forbidden")
    play.wait(10)
    play.wrote("mail", "TooLate")
    play.wrote("mail")
    play.wrote("db")
    play.judge("mail", Health.HEALTHY)
    play.judge("db", Health.HEALTHY)

    assert play.states == {DB: StepState.PASSED}


@pytest.mark.parametrize("refusals", [0, ALWAYS], ids=["the gate", "the write"])
def test_a_step_that_fails_names_the_object_because_of_which_it_did(refusals: int) -> None:
    play = DecisionRun(ONE_WAVE, TIDEGATE, refusals={"db": refusals})

    play.wait(1_000)

    tried = {EventType.STEP_FAILED, EventType.RETRY_SCHEDULED}
    failures = [event.failed_object for event in play.events if event.type in tried]
    assert failures
    assert {ref.name if ref else "" for ref in failures} == {"db"}

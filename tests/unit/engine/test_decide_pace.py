"""When steps start and gates are looked at, under each of the semantics."""

from __future__ import annotations

from tests.support.builders import make_deployment, make_plan_from, make_unit
from tests.support.decision_run import DecisionRun
from tidegate.model.k8s.verdict import Health
from tidegate.model.rollouts.event import EventType, StepState
from tidegate.model.units.semantics import ARGOCD, ARGOCD_3_6, FLUX, TIDEGATE

DB, WEB = "shop/sync/0", "shop/sync/1"
TWO_WAVES = make_plan_from(make_deployment("db"), make_deployment("web"))
ONE_WAVE = make_plan_from(make_deployment("db"))
TWO_UNITS = make_plan_from(
    make_unit(make_deployment("db"), name="data"),
    make_unit(make_deployment("web"), name="web", after=("data",)),
)


def test_the_next_wave_starts_when_the_gate_before_it_opens() -> None:
    play = DecisionRun(TWO_WAVES, TIDEGATE)

    play.wait(0.25)
    play.judge("db", Health.HEALTHY)

    assert play.starts(WEB) == [0.25]


def test_argo_cd_pauses_for_two_seconds_between_waves() -> None:
    play = DecisionRun(TWO_WAVES, ARGOCD)

    play.wait(0.25)
    play.judge("db", Health.HEALTHY)
    play.wait(10)

    assert play.starts(WEB) == [2.0]


def test_argo_cd_checks_health_when_it_changes() -> None:
    play = DecisionRun(TWO_WAVES, ARGOCD)

    play.wait(3)
    play.judge("db", Health.HEALTHY)
    play.wait(10)

    assert play.starts(WEB) == [3.0]


def test_argo_cd_3_6_checks_health_five_seconds_after_a_change() -> None:
    play = DecisionRun(TWO_WAVES, ARGOCD_3_6)

    play.wait(3)
    play.judge("db", Health.HEALTHY)
    play.wait(10)

    assert play.starts(WEB) == [8.0]


def test_argo_cd_does_not_wait_for_the_last_wave() -> None:
    play = DecisionRun(ONE_WAVE, ARGOCD)

    assert play.states == {DB: StepState.PASSED}
    assert play.moments(EventType.ROLLOUT_FINISHED) == [(0.0, "rollout.finished", "")]


def test_the_last_wave_is_waited_for() -> None:
    play = DecisionRun(ONE_WAVE, TIDEGATE)

    play.wait(60)

    assert play.states == {DB: StepState.GATING}


def test_flux_checks_health_every_five_seconds() -> None:
    play = DecisionRun(ONE_WAVE, FLUX)

    play.wait(6)
    play.judge("db", Health.HEALTHY)
    play.wait(10)

    assert play.moments(EventType.GATE_OPENED) == [(10.0, "gate.opened", DB)]


def test_flux_checks_dependencies_every_thirty_seconds() -> None:
    play = DecisionRun(TWO_UNITS, FLUX)

    play.wait(3)
    play.judge("db", Health.HEALTHY)
    play.wait(60)

    assert play.starts("web/sync/0") == [30.0]


def test_a_dependency_that_just_missed_a_look_of_flux_waits_for_the_next() -> None:
    play = DecisionRun(TWO_UNITS, FLUX)

    play.wait(31)
    play.judge("db", Health.HEALTHY)
    play.wait(60)

    assert play.starts("web/sync/0") == [60.0]


def test_a_dependency_is_seen_at_once() -> None:
    play = DecisionRun(TWO_UNITS, TIDEGATE)

    play.wait(3)
    play.judge("db", Health.HEALTHY)

    assert play.starts("web/sync/0") == [3.0]


def test_an_object_without_a_health_check_of_argo_cd_passes_at_once() -> None:
    play = DecisionRun(TWO_WAVES, ARGOCD)

    play.judge("db", Health.PROGRESSING, checked=False)
    play.wait(10)

    assert play.starts(WEB) == [2.0]


def test_an_object_without_its_own_check_uses_the_generic_rule() -> None:
    play = DecisionRun(TWO_WAVES, TIDEGATE)

    play.judge("db", Health.PROGRESSING, checked=False)
    play.wait(10)

    assert play.states[DB] is StepState.GATING


def test_nothing_starts_after_a_stop() -> None:
    play = DecisionRun(TWO_WAVES, TIDEGATE, slow=("db",))

    play.stop()
    play.wrote("db")

    assert play.states == {DB: StepState.APPLYING, WEB: StepState.WAITING}
    assert play.events[-1].reason == "stopped"

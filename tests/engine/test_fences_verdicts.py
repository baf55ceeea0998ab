"""Gates and bad verdicts: Degraded that recovers and that stays, Suspended by whom."""

from __future__ import annotations

from tests.support.builders import make_deployment, make_object, make_pod_template
from tests.support.cluster_client import require_live
from tests.support.rollout_objects import FOLLOWING, WEB
from tests.support.rollout_stage import HASTY, PATIENT, Stage
from tests.support.rollout_statuses import ready, stuck
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.rollouts.event import EventType, StepState


async def test_degraded_that_recovers_within_its_settle_time_does_not_fail(stage: Stage) -> None:
    rolling = stage.start(WEB, semantics=PATIENT)
    await rolling.waits("NotObserved")

    await stage.says(WEB, stuck(1))
    await rolling.waits("ProgressDeadlineExceeded")
    await stage.says(WEB, ready(1))
    run = await rolling.ends()

    assert run.result == "passed"


async def test_degraded_that_stays_fails(stage: Stage) -> None:
    rolling = stage.start(WEB, FOLLOWING, semantics=HASTY)
    await rolling.waits("NotObserved")

    await stage.says(WEB, stuck(1))
    run = await rolling.ends()

    assert run.result == "failed"
    assert list(run.states.values()) == [StepState.FAILED, StepState.SKIPPED]
    (failed,) = run.events_of(EventType.STEP_FAILED)
    assert failed.reason == "ProgressDeadlineExceeded"


async def test_degraded_at_an_old_generation_fails_nothing(stage: Stage) -> None:
    await _pass_with(stage, image="app:1")
    await stage.says(WEB, stuck(1))

    rolling = stage.start(make_deployment(image="app:2"), semantics=HASTY)
    await rolling.waits("NotObserved")
    await stage.says(WEB, ready(2))
    run = await rolling.ends()

    assert run.result == "passed"


async def test_a_paused_deployment_never_opens_a_gate(stage: Stage) -> None:
    rolling = stage.start(WEB, semantics=PATIENT)
    await rolling.waits("NotObserved")

    await _pause(stage, paused=True)
    seen = await stage.says(WEB, ready(2))
    await rolling.waits("Paused")
    await rolling.observes(seen)

    assert not rolling.is_open
    await _pause(stage, paused=False)
    await stage.says(WEB, ready(3))
    assert (await rolling.ends()).result == "passed"


async def test_a_pause_has_an_end_of_its_own(stage: Stage) -> None:
    rolling = stage.start(WEB, semantics=HASTY)
    await rolling.waits("NotObserved")

    await _pause(stage, paused=True)
    await stage.says(WEB, ready(2))
    run = await rolling.ends()

    (failed,) = run.events_of(EventType.STEP_FAILED)
    assert failed.reason == "Paused"


async def test_a_pause_holds_a_gate_that_opened_for_this_text_before(stage: Stage) -> None:
    await _pass_with(stage, image="app:1")
    await _pause(stage, paused=True)
    await stage.says(WEB, ready(2))

    rolling = stage.start(WEB, semantics=PATIENT)
    await rolling.waits("Paused")

    assert not rolling.is_open


async def test_a_cron_job_that_git_suspends_opens_the_gate(stage: Stage) -> None:
    job: JsonObject = {"spec": {"template": make_pod_template("tidy", restartPolicy="Never")}}
    spec: JsonObject = {"suspend": True, "schedule": "0 3 * * *", "jobTemplate": job}

    run = await stage.roll_out(make_object("batch/v1 CronJob", "tidy", spec=spec))

    assert run.result == "passed"
    assert not run.events_of(EventType.GATE_WAITING)


async def test_a_deployment_that_git_pauses_opens_the_gate_when_it_is_seen(stage: Stage) -> None:
    paused: JsonObject = {**WEB, "spec": {**get_mapping(WEB, "spec"), "paused": True}}
    rolling = stage.start(paused, semantics=PATIENT)
    await rolling.waits("NotObserved")

    await stage.says(paused, {"observedGeneration": 1})
    run = await rolling.ends()

    assert run.result == "passed"


async def _pass_with(stage: Stage, *, image: str) -> None:
    rolling = stage.start(make_deployment(image=image))
    await rolling.waits("NotObserved")
    await stage.says(WEB, ready(1))
    assert (await rolling.ends()).result == "passed"


async def _pause(stage: Stage, *, paused: bool) -> None:
    ref = await stage.ref(WEB)
    require_live(
        await stage.client.patch(ref, {"spec": {"paused": paused}}, manager="other-client")
    )

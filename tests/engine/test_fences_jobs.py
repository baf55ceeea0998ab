"""Gates and Jobs: one counts by its uid and its text, whichever rollout made it."""

from __future__ import annotations

from tests.support.builders import make_job
from tests.support.rollout_runs import Run
from tests.support.rollout_stage import HASTY, Stage
from tests.support.rollout_statuses import complete
from tidegate.model.k8s.objects import JsonObject, Propagation
from tidegate.model.rollouts.event import EventType
from tidegate.world.messages import Success

MIGRATE = make_job()
EXPIRING = make_job(ttl=60)


async def test_a_job_of_an_earlier_rollout_counts_at_once(stage: Stage) -> None:
    await _pass_with(stage, MIGRATE)
    first = await stage.live(MIGRATE)
    await stage.forgets()

    run = await stage.roll_out(MIGRATE)

    assert run.result == "passed"
    assert not run.events_of(EventType.GATE_WAITING, EventType.OBJECT_WRITTEN)
    assert (await stage.live(MIGRATE)).uid == first.uid


async def test_a_job_with_another_text_is_made_again_and_the_new_one_counts(stage: Stage) -> None:
    await _pass_with(stage, MIGRATE)
    first = await stage.live(MIGRATE)

    rolling = stage.start(make_job(image="app:2"))
    await rolling.waits("Running")

    second = await stage.live(MIGRATE)
    assert second.uid != first.uid
    assert not rolling.is_open
    await stage.says(MIGRATE, complete())
    assert (await rolling.ends()).result == "passed"


async def test_a_job_that_its_ttl_removed_counts_by_the_journal(stage: Stage) -> None:
    await _pass_with(stage, EXPIRING)
    await _expire(stage)

    run = await stage.roll_out(EXPIRING)

    assert run.result == "passed"
    assert [event.reason for event in run.events_of(EventType.OBJECT_UNCHANGED)] == ["Finished"]
    assert not run.events_of(EventType.GATE_WAITING, EventType.OBJECT_WRITTEN)


async def test_a_job_that_is_not_in_the_journal_is_created_again(stage: Stage) -> None:
    await _pass_with(stage, EXPIRING)
    await _expire(stage)
    await stage.forgets()

    assert (await _pass_with(stage, EXPIRING)).events_of(EventType.OBJECT_WRITTEN)


async def test_a_job_that_finished_with_another_text_is_made_again(stage: Stage) -> None:
    await _pass_with(stage, EXPIRING)
    await _expire(stage)

    assert (await _pass_with(stage, make_job(ttl=60, image="app:2"))).events_of(
        EventType.OBJECT_WRITTEN
    )


async def test_a_job_that_was_taken_away_before_it_finished_is_made_again(stage: Stage) -> None:
    rolling = stage.start(EXPIRING)
    await rolling.waits("Running")
    first = await stage.live(EXPIRING)

    await _expire(stage)
    await stage.client.settled(first.ref, lambda live: live is not None and live.uid != first.uid)

    assert not rolling.is_open
    await stage.says(EXPIRING, complete())
    assert (await rolling.ends()).result == "passed"


async def _pass_with(stage: Stage, job: JsonObject) -> Run:
    """A rollout of a Job that completes."""
    rolling = stage.start(job, semantics=HASTY)
    await rolling.waits("Running")
    await stage.says(job, complete())
    run = await rolling.ends()
    assert run.result == "passed"
    return run


async def _expire(stage: Stage) -> None:
    """What the controller does when the time to live is over."""
    gone = await stage.client.delete(await stage.ref(EXPIRING), propagation=Propagation.BACKGROUND)
    assert isinstance(gone, Success)

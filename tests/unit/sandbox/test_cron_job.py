"""CronJobs in virtual time, which begins with the year 2026."""

from __future__ import annotations

from tests.support.small_cluster import SmallCluster, an_object, notes
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.kinds import CRON_JOB, JOB
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import HOUR, MINUTE, SECOND, Ms
from tidegate.sandbox.controllers.batch.cron_job import CRON_JOBS
from tidegate.sandbox.controllers.batch.job import FINISHED_JOBS, JOB_PODS, JOBS, ORPHAN_PODS
from tidegate.sandbox.world import START

CONTAINER: Json = {"name": "app", "image": "registry.example/load:1"}
FIRST = START // MINUTE
"""The minute at which time begins, as Job names count minutes."""


async def a_cluster() -> SmallCluster:
    return await SmallCluster(CRON_JOBS, JOBS, JOB_PODS, FINISHED_JOBS, ORPHAN_PODS).open()


def a_cron_job(schedule: str, *, annotations: JsonObject | None = None, **spec: Json) -> JsonObject:
    pod: Json = {"restartPolicy": "Never", "containers": [CONTAINER]}
    template: Json = {"metadata": {"annotations": annotations or {}}, "spec": pod}
    job: Json = {"metadata": {"labels": {"app": "tidy"}}, "spec": {"template": template}}
    return an_object(
        "batch/v1", "CronJob", "tidy", spec={"schedule": schedule, "jobTemplate": job, **spec}
    )


async def jobs(cluster: SmallCluster) -> list[str]:
    return [get_text(job, "metadata", "name") for job in await cluster.all_of(JOB)]


async def test_a_cron_job_fires_at_the_minute() -> None:
    cluster = await a_cluster()
    await cluster.create(a_cron_job("*/5 * * * *"))
    await cluster.until(Ms(5 * MINUTE - SECOND))
    before = await jobs(cluster)

    await cluster.until(Ms(5 * MINUTE + 10 * SECOND))

    status = await cluster.status(CRON_JOB, "tidy")
    assert before == []
    assert await jobs(cluster) == [f"tidy-{FIRST + 5}"]
    assert status["lastScheduleTime"] == "2026-01-01T00:05:00Z"
    assert status["lastSuccessfulTime"] == "2026-01-01T00:05:01Z"
    assert await cluster.reasons("tidy") == ["SawCompletedJob", "SuccessfulCreate"]


async def test_a_job_carries_the_labels_of_its_template_and_names_its_cron_job() -> None:
    cluster = await a_cluster()

    await cluster.create(a_cron_job("* * * * *"))
    await cluster.until(Ms(MINUTE + SECOND))

    (job,) = await cluster.all_of(JOB)
    (owner,) = get_mappings(job, "metadata", "ownerReferences")
    assert get_text(job, "metadata", "labels", "app") == "tidy"
    assert (owner["kind"], owner["name"], owner["controller"]) == ("CronJob", "tidy", True)
    stamp = get_text(
        job, "metadata", "annotations", "batch.kubernetes.io/cronjob-scheduled-timestamp"
    )
    assert stamp == "2026-01-01T00:01:00Z"


async def test_a_job_that_runs_is_listed_as_active() -> None:
    cluster = await a_cluster()

    await cluster.create(a_cron_job("* * * * *", annotations=notes(outcome="hang")))
    await cluster.until(Ms(2 * MINUTE + SECOND))

    status = await cluster.status(CRON_JOB, "tidy")
    assert [get_text(item, "name") for item in get_mappings(status, "active")] == [
        f"tidy-{FIRST + 1}",
        f"tidy-{FIRST + 2}",
    ]


async def test_forbid_starts_no_job_while_one_runs() -> None:
    cluster = await a_cluster()
    hanging = notes(outcome="hang")

    await cluster.create(a_cron_job("* * * * *", annotations=hanging, concurrencyPolicy="Forbid"))
    await cluster.until(Ms(3 * MINUTE + SECOND))

    assert await jobs(cluster) == [f"tidy-{FIRST + 1}"]
    assert "JobAlreadyActive" in await cluster.reasons("tidy")


async def test_replace_deletes_the_job_that_runs() -> None:
    cluster = await a_cluster()
    hanging = notes(outcome="hang")

    await cluster.create(a_cron_job("* * * * *", annotations=hanging, concurrencyPolicy="Replace"))
    await cluster.until(Ms(3 * MINUTE + 2 * SECOND))

    status = await cluster.status(CRON_JOB, "tidy")
    assert await jobs(cluster) == [f"tidy-{FIRST + 3}"]
    assert len(get_mappings(status, "active")) == 1


async def test_only_the_last_three_jobs_that_passed_are_kept() -> None:
    cluster = await a_cluster()

    await cluster.create(a_cron_job("* * * * *"))
    await cluster.until(Ms(6 * MINUTE + 30 * SECOND))

    assert await jobs(cluster) == [f"tidy-{FIRST + minute}" for minute in (4, 5, 6)]


async def test_a_suspended_cron_job_creates_no_job_and_after_that_only_the_last_one_due() -> None:
    cluster = await a_cluster()
    cron_job = await cluster.create(a_cron_job("*/10 * * * *", suspend=True))
    await cluster.until(Ms(HOUR + 5 * MINUTE))
    while_suspended = await jobs(cluster)

    await cluster.client.patch(cron_job, {"spec": {"suspend": False}})
    await cluster.until(Ms(HOUR + 6 * MINUTE))

    assert while_suspended == []
    assert await jobs(cluster) == [f"tidy-{FIRST + 60}"]


async def test_a_start_that_is_missed_by_more_than_the_deadline_is_left_out() -> None:
    cluster = await a_cluster()
    later = a_cron_job("0 * * * *", suspend=True, startingDeadlineSeconds=60)
    cron_job = await cluster.create(later)
    await cluster.until(Ms(HOUR + 5 * MINUTE))

    await cluster.client.patch(cron_job, {"spec": {"suspend": False}})
    await cluster.until(Ms(HOUR + 30 * MINUTE))

    assert await jobs(cluster) == []


async def test_a_time_zone_moves_the_schedule() -> None:
    cluster = await a_cluster()

    await cluster.create(a_cron_job("0 9 * * *", timeZone="Asia/Tokyo"))
    await cluster.until(Ms(24 * HOUR + SECOND))

    assert await jobs(cluster) == [f"tidy-{FIRST + 24 * 60}"]


async def test_an_unknown_time_zone_is_reported() -> None:
    cluster = await a_cluster()

    await cluster.create(a_cron_job("* * * * *", timeZone="Nowhere/Else"))
    await cluster.until(Ms(2 * MINUTE))

    assert await jobs(cluster) == []
    assert await cluster.reasons("tidy") == ["UnknownTimeZone"]

"""Indexed Jobs, and Jobs with rules for what a failure means."""

from __future__ import annotations

import pytest

from tests.support.small_cluster import SmallCluster, an_object, notes
from tidegate.model.k8s.json_fields import get_int, get_mappings, get_text
from tidegate.model.k8s.kinds import JOB, POD
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.batch.job import JOB_PODS, JOBS
from tidegate.sandbox.controllers.batch.job_spec import (
    FAILURES,
    INDEX,
    format_indexes,
    lowest_free_indexes,
    parse_indexes,
)

CONTAINER: Json = {"name": "app", "image": "registry.example/load:1"}
FAILS = notes(outcome="fail", exit_code="42")


async def a_cluster() -> SmallCluster:
    return await SmallCluster(JOBS, JOB_PODS).open()


def a_job(annotations: JsonObject, **spec: Json) -> JsonObject:
    pod: Json = {"restartPolicy": "Never", "containers": [CONTAINER]}
    template: Json = {"metadata": {"annotations": annotations}, "spec": pod}
    return an_object("batch/v1", "Job", "load", spec={"template": template, **spec})


def an_indexed_job(annotations: JsonObject, completions: int, **spec: Json) -> JsonObject:
    return a_job(
        annotations,
        completions=completions,
        parallelism=completions,
        completionMode="Indexed",
        **spec,
    )


def on_exit(action: str, *codes: int) -> Json:
    values: list[Json] = [*codes]
    return {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": values}}]}


def last_condition(status: JsonObject) -> tuple[str, str, str]:
    last = get_mappings(status, "conditions")[-1]
    return get_text(last, "type"), get_text(last, "reason"), get_text(last, "message")


async def pods_of_index(cluster: SmallCluster, index: int) -> list[JsonObject]:
    pods = await cluster.all_of(POD)
    return [pod for pod in pods if get_text(pod, "metadata", "annotations", INDEX) == str(index)]


async def test_an_index_that_fails_too_often_fails_and_the_others_continue() -> None:
    cluster = await a_cluster()
    await cluster.create(an_indexed_job(FAILS, 2, backoffLimitPerIndex=1))
    await cluster.until(Ms(5 * SECOND))
    early = await cluster.status(JOB, "load")

    await cluster.until(Ms(30 * SECOND))

    later = await cluster.status(JOB, "load")
    assert get_text(early, "failedIndexes") == ""
    assert later["failedIndexes"] == "0,1"
    assert get_int(later, "failed") == 4
    assert last_condition(later) == ("Failed", "FailedIndexes", "Job has failed indexes")


async def test_the_second_pod_of_an_index_has_the_number_of_failures() -> None:
    cluster = await a_cluster()

    await cluster.create(an_indexed_job(FAILS, 1, backoffLimitPerIndex=3))
    await cluster.until(Ms(15 * SECOND))

    pods = await pods_of_index(cluster, 0)
    assert sorted(get_text(pod, "metadata", "annotations", FAILURES) for pod in pods) == ["0", "1"]


async def test_an_indexed_job_with_a_common_limit_tries_a_failed_index_again() -> None:
    cluster = await a_cluster()

    await cluster.create(an_indexed_job(FAILS, 1, backoffLimit=1))
    await cluster.until(Ms(15 * SECOND))

    status = await cluster.status(JOB, "load")
    assert len(await pods_of_index(cluster, 0)) == 2
    assert last_condition(status)[:2] == ("Failed", "BackoffLimitExceeded")
    assert "completedIndexes" not in status


async def test_enough_indexes_end_a_job_with_a_success_policy() -> None:
    cluster = await a_cluster()
    rules: Json = {"rules": [{"succeededIndexes": "0-2", "succeededCount": 2}]}
    job = an_indexed_job(notes(run_for="3s"), 5, successPolicy=rules)

    await cluster.create(job)
    await cluster.until(Ms(10 * SECOND))

    status = await cluster.status(JOB, "load")
    assert last_condition(status) == ("Complete", "SuccessPolicy", "Matched rules at index 0")


async def test_an_exit_code_can_fail_the_whole_job_at_once() -> None:
    cluster = await a_cluster()

    await cluster.create(a_job(FAILS, backoffLimit=5, podFailurePolicy=on_exit("FailJob", 42)))
    await cluster.until(Ms(5 * SECOND))

    kind, reason, message = last_condition(await cluster.status(JOB, "load"))
    assert (kind, reason) == ("Failed", "PodFailurePolicy")
    assert "failed with exit code 42 matching FailJob rule at index 0" in message


async def test_an_ignored_failure_is_not_counted_but_delays_the_next_pod() -> None:
    cluster = await a_cluster()
    job = a_job(FAILS, backoffLimit=0, podFailurePolicy=on_exit("Ignore", 42))

    await cluster.create(job)
    await cluster.until(Ms(9 * SECOND))
    early = await cluster.all_of(POD)
    await cluster.until(Ms(12 * SECOND))

    later = await cluster.all_of(POD)
    assert (len(early), len(later)) == (1, 2)
    assert "failed" not in await cluster.status(JOB, "load")


async def test_a_pod_condition_can_fail_an_index() -> None:
    cluster = await a_cluster()
    ready: Json = [{"type": "Ready", "status": "False"}]
    rules: Json = {"rules": [{"action": "FailIndex", "onPodConditions": ready}]}

    await cluster.create(an_indexed_job(FAILS, 1, backoffLimitPerIndex=9, podFailurePolicy=rules))
    await cluster.until(Ms(5 * SECOND))

    status = await cluster.status(JOB, "load")
    assert status["failedIndexes"] == "0"
    assert last_condition(status)[1] == "FailedIndexes"


@pytest.mark.parametrize(
    ("indexes", "written"),
    [((), ""), ((0,), "0"), ((0, 1), "0,1"), ((0, 1, 2), "0-2"), ((0, 2, 3, 4, 9), "0,2-4,9")],
)
def test_indexes_are_written_as_kubernetes_writes_them(
    indexes: tuple[int, ...], written: str
) -> None:
    assert format_indexes(indexes) == written
    assert parse_indexes(written, 10) == frozenset(indexes)


def test_indexes_beyond_the_last_are_ignored() -> None:
    assert parse_indexes("0,3-9,x", 5) == {0, 3, 4}


def test_the_lowest_free_indexes_are_used_first() -> None:
    assert lowest_free_indexes(2, 5, frozenset({0, 2})) == [1, 3]

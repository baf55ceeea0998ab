"""Jobs in virtual time."""

from __future__ import annotations

from itertools import pairwise

from tests.support.small_cluster import SmallCluster, an_object, notes
from tidegate.model.k8s.json_fields import get_int, get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.kinds import JOB, POD
from tidegate.model.k8s.objects import Json, JsonObject, Propagation, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.batch.job import FINISHED_JOBS, JOB_PODS, JOBS, ORPHAN_PODS
from tidegate.sandbox.controllers.batch.job_spec import INDEX, TRACKING

CONTAINER: Json = {"name": "app", "image": "registry.example/load:1"}


async def a_cluster() -> SmallCluster:
    return await SmallCluster(JOBS, JOB_PODS, FINISHED_JOBS, ORPHAN_PODS).open()


def a_job(*, annotations: JsonObject | None = None, **spec: Json) -> JsonObject:
    pod: Json = {"restartPolicy": "Never", "containers": [CONTAINER]}
    template: Json = {"metadata": {"annotations": annotations or {}}, "spec": pod}
    return an_object("batch/v1", "Job", "load", spec={"template": template, **spec})


def with_pod(job: JsonObject, **parts: Json) -> JsonObject:
    spec, template = get_mapping(job, "spec"), get_mapping(job, "spec", "template")
    pod: Json = {**get_mapping(template, "spec"), **parts}
    return {**job, "spec": {**spec, "template": {**template, "spec": pod}}}


def conditions(status: JsonObject) -> list[str]:
    return [
        " ".join(get_text(condition, key) for key in ("type", "status", "reason"))
        for condition in get_mappings(status, "conditions")
    ]


async def creation_seconds(cluster: SmallCluster) -> list[int]:
    """At which seconds pods were created."""
    pods = await cluster.all_of(POD)
    created = [get_text(pod, "metadata", "creationTimestamp") for pod in pods]
    return sorted(int(item[14:16]) * 60 + int(item[17:19]) for item in created)


async def test_a_job_is_complete_a_second_after_its_last_pod() -> None:
    cluster = await a_cluster()
    await cluster.create(a_job(annotations=notes(run_for="5s")))
    await cluster.until(Ms(5_900))
    before = await cluster.status(JOB, "load")

    await cluster.until(Ms(6_300))

    after = await cluster.status(JOB, "load")
    assert conditions(before) == []
    assert conditions(after) == [
        "SuccessCriteriaMet True CompletionsReached",
        "Complete True CompletionsReached",
    ]
    assert after["succeeded"] == 1
    assert after["completionTime"] == "2026-01-01T00:00:06Z"
    assert "active" not in after
    assert await cluster.reasons("load") == ["Completed", "SuccessfulCreate"]


async def test_a_job_with_a_backoff_limit_of_two_fails_after_three_pods() -> None:
    cluster = await a_cluster()

    await cluster.create(a_job(annotations=notes(outcome="fail"), backoffLimit=2))
    await cluster.until(Ms(60 * SECOND))

    status = await cluster.status(JOB, "load")
    assert await creation_seconds(cluster) == [0, 10, 30]
    assert status["failed"] == 3
    assert conditions(status) == [
        "FailureTarget True BackoffLimitExceeded",
        "Failed True BackoffLimitExceeded",
    ]
    assert "completionTime" not in status
    assert "BackoffLimitExceeded" in await cluster.reasons("load")


async def test_the_backoff_between_retries_grows_to_ten_minutes() -> None:
    cluster = await a_cluster()
    await cluster.create(a_job(annotations=notes(outcome="fail"), backoffLimit=20))

    await cluster.until(Ms(3_000 * SECOND))

    created = await creation_seconds(cluster)
    pauses = [later - sooner for sooner, later in pairwise(created)]
    assert pauses == [10, 20, 40, 80, 160, 320, 600, 600, 600]


async def test_an_active_deadline_ends_a_job_whose_pods_hang() -> None:
    cluster = await a_cluster()
    await cluster.create(a_job(annotations=notes(outcome="hang"), activeDeadlineSeconds=30))
    await cluster.until(Ms(29 * SECOND))
    before = await cluster.status(JOB, "load")

    await cluster.until(Ms(32 * SECOND))

    after = await cluster.status(JOB, "load")
    assert before["active"] == 1
    assert conditions(after)[-1] == "Failed True DeadlineExceeded"
    assert after["failed"] == 1
    assert await cluster.all_of(POD) == []


async def test_a_finished_job_and_its_pods_are_deleted_after_their_ttl() -> None:
    cluster = await a_cluster()
    await cluster.create(a_job(ttlSecondsAfterFinished=60))
    await cluster.until(Ms(60 * SECOND))
    before = await cluster.body(JOB, "load")

    await cluster.until(Ms(63 * SECOND))

    assert before is not None
    assert await cluster.body(JOB, "load") is None
    assert await cluster.all_of(POD) == []


async def test_a_job_has_no_more_active_pods_than_its_parallelism() -> None:
    cluster = await a_cluster()
    await cluster.create(a_job(annotations=notes(run_for="10s"), completions=5, parallelism=2))

    await cluster.until(Ms(5 * SECOND))
    early = await cluster.status(JOB, "load")
    await cluster.until(Ms(60 * SECOND))

    later = await cluster.status(JOB, "load")
    assert early["active"] == 2
    assert later["succeeded"] == 5
    assert len(await creation_seconds(cluster)) == 5


async def test_a_suspended_job_loses_its_pods_and_restarts_when_resumed() -> None:
    cluster = await a_cluster()
    job = await cluster.create(a_job(annotations=notes(run_for="20s")))
    await cluster.until(Ms(5 * SECOND))

    await cluster.client.patch(job, {"spec": {"suspend": True}})
    await cluster.until(Ms(8 * SECOND))
    while_suspended, pods = await cluster.status(JOB, "load"), await cluster.all_of(POD)
    await cluster.client.patch(job, {"spec": {"suspend": False}})
    await cluster.until(Ms(10 * SECOND))

    awake = await cluster.status(JOB, "load")
    assert conditions(while_suspended) == ["Suspended True JobSuspended"]
    assert "startTime" not in while_suspended
    assert "failed" not in while_suspended
    assert pods == []
    assert conditions(awake) == ["Suspended False JobResumed"]
    assert awake["startTime"] == "2026-01-01T00:00:08Z"


async def test_a_pod_has_a_finalizer_until_it_is_counted() -> None:
    cluster = await a_cluster()
    await cluster.create(a_job(annotations=notes(run_for="3s")))

    await cluster.until(Ms(3_500))
    held = await cluster.all_of(POD)
    await cluster.until(Ms(10 * SECOND))

    counted = await cluster.all_of(POD)
    assert [get_text(pod, "status", "phase") for pod in held] == ["Succeeded"]
    assert [get_list(pod, "metadata", "finalizers") for pod in held] == [[TRACKING]]
    assert [get_list(pod, "metadata", "finalizers") for pod in counted] == [[]]


async def test_a_pod_that_is_deleted_counts_as_failed_and_is_replaced() -> None:
    cluster = await a_cluster()
    await cluster.create(a_job(annotations=notes(outcome="hang")))
    await cluster.until(Ms(5 * SECOND))
    (first,) = await cluster.all_of(POD)

    await cluster.client.delete(Ref(POD, "shop", get_text(first, "metadata", "name")))
    await cluster.until(Ms(20 * SECOND))

    (second,) = await cluster.all_of(POD)
    assert get_text(second, "metadata", "uid") != get_text(first, "metadata", "uid")
    assert (await cluster.status(JOB, "load"))["failed"] == 1


async def test_the_pods_of_a_deleted_job_are_deleted() -> None:
    cluster = await a_cluster()
    job = await cluster.create(a_job(annotations=notes(outcome="hang"), parallelism=3))
    await cluster.until(Ms(5 * SECOND))

    await cluster.client.delete(job, propagation=Propagation.BACKGROUND)
    await cluster.until(Ms(7 * SECOND))

    assert await cluster.all_of(POD) == []


async def test_a_job_is_deleted_after_its_pods_in_the_foreground() -> None:
    cluster = await a_cluster()
    job = await cluster.create(a_job(annotations=notes(outcome="hang"), parallelism=2))
    await cluster.until(Ms(5 * SECOND))

    await cluster.client.delete(job, propagation=Propagation.FOREGROUND)
    held = await cluster.body(JOB, "load")
    await cluster.until(Ms(8 * SECOND))

    assert held is not None
    assert await cluster.all_of(POD) == []
    assert await cluster.body(JOB, "load") is None


async def test_an_orphaned_pod_stays_without_its_finalizer() -> None:
    cluster = await a_cluster()
    job = await cluster.create(a_job(annotations=notes(outcome="hang")))
    await cluster.until(Ms(5 * SECOND))

    await cluster.client.delete(job, propagation=Propagation.ORPHAN)
    await cluster.until(Ms(7 * SECOND))

    (pod,) = await cluster.all_of(POD)
    assert get_list(pod, "metadata", "finalizers") == []
    assert get_list(pod, "metadata", "ownerReferences") == []


async def test_a_refused_pod_is_reported_and_retried() -> None:
    cluster = await a_cluster()
    await cluster.create(with_pod(a_job(), serviceAccountName="loader"))
    await cluster.until(Ms(5 * SECOND))
    refused = await cluster.reasons("load")

    await cluster.create(an_object("v1", "ServiceAccount", "loader"))
    await cluster.until(Ms(20 * SECOND))

    assert refused == ["FailedCreate"]
    assert (await cluster.status(JOB, "load"))["succeeded"] == 1


async def test_containers_that_restart_in_place_use_up_the_backoff_limit() -> None:
    cluster = await a_cluster()
    job = a_job(annotations=notes(outcome="hang"), backoffLimit=3)
    await cluster.create(with_pod(job, restartPolicy="OnFailure"))
    await cluster.until(Ms(5 * SECOND))
    (pod,) = await cluster.all_of(POD)
    (container,) = get_mappings(pod, "status", "containerStatuses")

    restarted: list[Json] = [{**container, "restartCount": 3}]
    await cluster.client.patch(
        Ref(POD, "shop", get_text(pod, "metadata", "name")),
        {"status": {"containerStatuses": restarted}},
        subresource="status",
    )
    await cluster.until(Ms(9 * SECOND))

    status = await cluster.status(JOB, "load")
    assert conditions(status)[-1] == "Failed True BackoffLimitExceeded"


async def test_a_job_of_another_controller_is_not_changed() -> None:
    cluster = await a_cluster()

    await cluster.create(a_job(managedBy="queue.example.com/queue"))
    await cluster.until(Ms(5 * SECOND))

    assert await cluster.status(JOB, "load") == {}


async def test_a_work_queue_completes_after_one_success_and_the_end_of_all_pods() -> None:
    cluster = await a_cluster()

    await cluster.create(a_job(annotations=notes(run_for="5s"), parallelism=3))
    await cluster.until(Ms(20 * SECOND))

    status = await cluster.status(JOB, "load")
    assert get_int(status, "succeeded") == 3
    assert conditions(status)[-1] == "Complete True CompletionsReached"


async def test_the_pods_of_an_indexed_job_know_their_index() -> None:
    cluster = await a_cluster()

    await cluster.create(a_job(completions=2, parallelism=2, completionMode="Indexed"))
    await cluster.until(Ms(5 * SECOND))

    pods = await cluster.all_of(POD)
    assert [get_text(pod, "metadata", "annotations", INDEX) for pod in pods] == ["0", "1"]
    assert [get_text(pod, "metadata", "labels", INDEX) for pod in pods] == ["0", "1"]
    assert [get_text(pod, "spec", "hostname") for pod in pods] == ["load-0", "load-1"]
    variables = get_mappings(get_mappings(pods[0], "spec", "containers")[0], "env")
    assert [get_text(variable, "name") for variable in variables] == ["JOB_COMPLETION_INDEX"]
    assert (await cluster.status(JOB, "load"))["completedIndexes"] == "0,1"

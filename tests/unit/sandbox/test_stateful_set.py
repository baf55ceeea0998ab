"""StatefulSets in virtual time: the order of pods, and which template each gets."""

from __future__ import annotations

from itertools import groupby

from tests.support.trace_case import Change
from tests.support.trace_workloads import DB, a_template, a_workload, an_account, scale
from tests.support.workload_stage import PLACE, Stage
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.kinds import CLAIM, POD
from tidegate.model.k8s.objects import Json
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.controllers.pods import is_ready
from tidegate.sandbox.controllers.workloads.revisions import CONTROLLER_REVISION
from tidegate.sandbox.controllers.workloads.stateful_set import REVISION_LABEL

SECOND_IMAGE = a_template(image="app:2")
DISK: Json = {
    "metadata": {"name": "disk"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def readiness(view: ObjectReader) -> Json:
    """The pods in order, each with whether it is ready."""
    return [f"{pod.ref.name} {is_ready(pod)}" for pod in view.list_objects(POD, PLACE)]


def partition(first: int) -> Json:
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": first}}


async def test_each_pod_waits_for_the_one_before_it() -> None:
    stage = await Stage(sample=readiness).open()

    await stage.do(a_workload(DB, replicas=3))
    await stage.run()

    assert stage.pods() == ["db-0", "db-1", "db-2"]
    for pods in stage.samples:
        assert isinstance(pods, list)
        assert all(str(pod).endswith("True") for pod in pods[:-1])


async def test_the_second_pod_is_never_created_if_the_first_is_never_ready() -> None:
    stage = await Stage().open()

    await stage.do(a_workload(DB, replicas=3, template=a_template(outcome="never")))
    await stage.run(Ms(60 * MINUTE))

    assert stage.pods() == ["db-0"]


async def test_parallel_pods_do_not_wait() -> None:
    stage = await Stage().open()

    template = a_template(outcome="never")
    await stage.do(a_workload(DB, replicas=3, podManagementPolicy="Parallel", template=template))
    await stage.run()

    assert stage.pods() == ["db-0", "db-1", "db-2"]


async def test_pods_are_replaced_from_the_last_to_the_first_one_at_a_time() -> None:
    def ready_revisions(view: ObjectReader) -> Json:
        pods = view.list_objects(POD, PLACE)
        return [str(pod.labels[REVISION_LABEL]) if is_ready(pod) else "" for pod in pods]

    stage = await Stage(sample=ready_revisions).open()
    await stage.do(a_workload(DB, replicas=3))
    await stage.run()
    old = get_text(stage.body(DB), "status", "updateRevision")
    stage.samples.clear()

    await stage.do(a_workload(DB, replicas=3, template=SECOND_IMAGE))
    await stage.run()

    new = get_text(stage.body(DB), "status", "updateRevision")
    whole = [
        sample for sample in stage.samples if isinstance(sample, list) and sample.count("") == 0
    ]
    assert [key for key, _ in groupby(item for item in whole if len(item) == 3)] == [
        [old, old, old],
        [old, old, new],
        [old, new, new],
        [new, new, new],
    ]
    assert all(
        isinstance(sample, list) and len(sample) - sample.count("") >= 2 for sample in stage.samples
    )


async def test_a_pod_below_the_partition_is_recreated_with_the_old_template() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(DB, replicas=3, updateStrategy=partition(2)))
    await stage.run()
    await stage.do(a_workload(DB, replicas=3, updateStrategy=partition(2), template=SECOND_IMAGE))
    await stage.run()

    await stage.delete(POD, "db-0")
    await stage.run()

    assert stage.images() == ["1", "1", "2"]
    assert stage.count(DB, "updatedReplicas") == 1
    assert stage.count(DB, "readyReplicas") == 3


async def test_on_delete_a_pod_gets_the_new_template_only_when_it_is_deleted() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(DB, replicas=2, updateStrategy={"type": "OnDelete"}))
    await stage.run()
    await stage.do(
        a_workload(DB, replicas=2, updateStrategy={"type": "OnDelete"}, template=SECOND_IMAGE)
    )
    await stage.run()
    before = stage.images()

    await stage.delete(POD, "db-1")
    await stage.run()

    assert before == ["1", "1"]
    assert stage.images() == ["1", "2"]


async def test_scaling_down_deletes_the_last_pods_and_keeps_their_disks() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(DB, replicas=3, volumeClaimTemplates=[DISK]))
    await stage.run()

    await stage.do(scale(DB, 1))
    await stage.run()

    assert stage.pods() == ["db-0"]
    assert [claim.ref.name for claim in stage.all_of(CLAIM)] == [
        "disk-db-0",
        "disk-db-1",
        "disk-db-2",
    ]


async def test_a_pod_has_its_own_name_and_its_own_disk() -> None:
    stage = await Stage().open()

    await stage.do(a_workload(DB, replicas=1, serviceName="peers", volumeClaimTemplates=[DISK]))
    await stage.run()

    spec = get_mapping(stage.all_of(POD)[0].body, "spec")
    volume = get_mappings(spec, "volumes")[0]
    assert (get_text(spec, "hostname"), get_text(spec, "subdomain")) == ("db-0", "peers")
    assert get_text(volume, "persistentVolumeClaim", "claimName") == "disk-db-0"


async def test_a_rollback_reuses_the_old_revision() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(DB, replicas=1))
    await stage.run()
    first = get_text(stage.body(DB), "status", "updateRevision")
    await stage.do(a_workload(DB, replicas=1, template=SECOND_IMAGE))
    await stage.run()

    await stage.do(a_workload(DB, replicas=1))
    await stage.run()

    assert get_text(stage.body(DB), "status", "currentRevision") == first
    assert len(stage.all_of(CONTROLLER_REVISION)) == 2
    assert stage.images() == ["1"]


async def test_a_broken_rollout_stays_broken_when_the_template_is_mended() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(DB, replicas=2))
    await stage.run()
    broken = a_template(image="app:2", outcome="never")
    await stage.do(a_workload(DB, replicas=2, template=broken))
    await stage.run()

    await stage.do(a_workload(DB, replicas=2, template=a_template(image="app:3")))
    await stage.run(Ms(60 * MINUTE))

    assert stage.images() == ["1", "2"]


async def test_min_ready_seconds_delay_the_next_pod() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(DB, replicas=2, minReadySeconds=30))

    await stage.run(Ms(25 * SECOND))
    early = stage.pods()
    await stage.run(Ms(30 * SECOND))

    assert early == ["db-0"]
    assert stage.pods() == ["db-0", "db-1"]


async def test_a_refused_pod_is_reported_and_retried() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(DB, replicas=1, template=a_template(account="keeper")))
    await stage.run(Ms(MINUTE))
    events = stage.events("FailedCreate")

    await stage.do(an_account("keeper"))
    await stage.run(Ms(2 * MINUTE))

    assert len(events) == 1
    assert events[0].startswith("Create Pod db-0 in StatefulSet db failed error: ")
    assert stage.count(DB, "readyReplicas") == 1


async def test_a_lower_partition_continues_the_rollout() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(DB, replicas=3, updateStrategy=partition(3)))
    await stage.run()
    await stage.do(a_workload(DB, replicas=3, updateStrategy=partition(3), template=SECOND_IMAGE))
    await stage.run()
    held = stage.images()

    await stage.do(Change(DB, {"spec": {"updateStrategy": partition(1)}}))
    await stage.run()

    assert held == ["1", "1", "1"]
    assert stage.images() == ["1", "2", "2"]

"""Deployments in virtual time: the limits of a rollout, and its result."""

from __future__ import annotations

import pytest

from tests.support.trace_workloads import (
    WEB,
    a_template,
    a_workload,
    an_account,
    pause,
    rolling,
    scale,
)
from tests.support.workload_stage import PLACE, Stage, annotation
from tidegate.model.k8s.json_fields import get_int
from tidegate.model.k8s.kinds import DEPLOYMENT, POD, REPLICA_SET
from tidegate.model.k8s.objects import Json
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.controllers.pods import is_active, is_ready
from tidegate.sandbox.controllers.workloads.deployment_state import HISTORY, REVISION

SECOND_IMAGE = a_template(image="app:2")
NEVER_READY = a_template(image="app:2", outcome="never")


def alive_and_ready(view: ObjectReader) -> Json:
    pods = [pod for pod in view.list_objects(POD, PLACE) if is_active(pod)]
    return [len(pods), sum(map(is_ready, pods))]


def revisions(stage: Stage) -> dict[str, int]:
    """The size of each ReplicaSet, by its revision."""
    return {
        annotation(replica_set, REVISION): get_int(replica_set.body, "spec", "replicas")
        for replica_set in stage.all_of(REPLICA_SET)
    }


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "most", "least"),
    [
        (3, 1, 0, 4, 3),
        (4, 0, "50%", 4, 2),
        (10, "25%", "25%", 13, 8),
        (5, "30%", "30%", 7, 4),
        (1, "25%", "25%", 2, 1),
        (3, 0, "25%", 3, 2),
    ],
)
async def test_a_rollout_respects_its_limits_at_any_time(
    replicas: int, surge: int | str, unavailable: int | str, most: int, least: int
) -> None:
    stage = await Stage(sample=alive_and_ready).open()
    strategy = rolling(surge=surge, unavailable=unavailable)
    await stage.do(a_workload(WEB, replicas=replicas, strategy=strategy))
    await stage.run()
    stage.samples.clear()

    await stage.do(a_workload(WEB, replicas=replicas, strategy=strategy, template=SECOND_IMAGE))
    await stage.run(Ms(MINUTE))

    counts = [sample for sample in stage.samples if isinstance(sample, list)]
    assert max(get_int({"": count[0]}, "") for count in counts) == most
    assert min(get_int({"": count[1]}, "") for count in counts) == least
    assert stage.images() == ["2"] * replicas


async def test_old_pods_are_deleted_only_as_fast_as_new_ones_become_available() -> None:
    stage = await Stage().open()
    strategy = rolling(surge=1, unavailable=1)
    await stage.do(a_workload(WEB, replicas=4, strategy=strategy))
    await stage.run()

    await stage.do(a_workload(WEB, replicas=4, strategy=strategy, template=NEVER_READY))
    await stage.run(Ms(5 * MINUTE))

    assert revisions(stage) == {"1": 3, "2": 2}
    assert stage.count(WEB, "availableReplicas") == 3


async def test_pods_that_are_never_ready_exceed_the_deadline_and_not_before_it() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(WEB, progressDeadlineSeconds=60, template=NEVER_READY))

    await stage.run(Ms(59 * SECOND))
    before = stage.condition(WEB, "Progressing")
    await stage.run(Ms(3 * SECOND))
    after = stage.condition(WEB, "Progressing")

    assert before == "True ReplicaSetUpdated"
    assert after == "False ProgressDeadlineExceeded"


async def test_the_default_deadline_is_ten_minutes() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(WEB, template=NEVER_READY))

    await stage.run(Ms(599 * SECOND))
    before = stage.condition(WEB, "Progressing")
    await stage.run(Ms(3 * SECOND))

    assert before == "True ReplicaSetUpdated"
    assert stage.condition(WEB, "Progressing") == "False ProgressDeadlineExceeded"


async def test_a_paused_deployment_does_not_roll_but_can_be_scaled() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(WEB, replicas=2))
    await stage.run()
    await stage.do(pause(WEB))

    await stage.do(a_workload(WEB, replicas=3, template=SECOND_IMAGE, paused=True))
    await stage.run(Ms(20 * MINUTE))

    assert stage.images() == ["1"] * 3
    assert stage.condition(WEB, "Progressing") == "Unknown DeploymentPaused"


async def test_a_rollout_that_is_superseded_half_way_ends_in_the_newest_revision() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(WEB, replicas=3))
    await stage.run()
    await stage.do(a_workload(WEB, replicas=3, template=NEVER_READY))
    await stage.run()

    await stage.do(a_workload(WEB, replicas=3, template=a_template(image="app:3")))
    await stage.run()

    assert stage.images() == ["3"] * 3
    assert revisions(stage) == {"1": 0, "2": 0, "3": 3}


async def test_a_rollback_reuses_the_old_replica_set_under_a_new_number() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(WEB, replicas=2))
    await stage.run()
    first = [replica_set.ref.name for replica_set in stage.all_of(REPLICA_SET)]
    await stage.do(a_workload(WEB, replicas=2, template=SECOND_IMAGE))
    await stage.run()

    await stage.do(a_workload(WEB, replicas=2))
    await stage.run()

    again = [
        replica_set for replica_set in stage.all_of(REPLICA_SET) if replica_set.ref.name in first
    ]
    assert revisions(stage) == {"2": 0, "3": 2}
    assert annotation(again[0], HISTORY) == "1"
    assert annotation(stage.all_of(DEPLOYMENT)[0], REVISION) == "3"


async def test_no_more_old_replica_sets_are_kept_than_the_history_allows() -> None:
    stage = await Stage().open()

    for number in range(1, 6):
        image = a_template(image=f"app:{number}")
        await stage.do(a_workload(WEB, template=image, revisionHistoryLimit=2))
        await stage.run()

    assert revisions(stage) == {"3": 0, "4": 0, "5": 1}


async def test_recreate_has_no_new_pod_before_old_ones_are_gone() -> None:
    def images(view: ObjectReader) -> Json:
        pods = view.list_objects(POD, PLACE)
        return [*sorted({str(pod.labels["pod-template-hash"]) for pod in pods})]

    stage = await Stage(sample=images).open()
    await stage.do(a_workload(WEB, replicas=3, strategy={"type": "Recreate"}))
    await stage.run()

    await stage.do(
        a_workload(WEB, replicas=3, strategy={"type": "Recreate"}, template=SECOND_IMAGE)
    )
    await stage.run()

    assert all(isinstance(sample, list) and len(sample) <= 1 for sample in stage.samples)
    assert stage.images() == ["2"] * 3


async def test_min_ready_seconds_delay_what_counts_as_available() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(WEB, replicas=2, minReadySeconds=30))

    await stage.run(Ms(25 * SECOND))
    early = stage.count(WEB, "readyReplicas"), stage.count(WEB, "availableReplicas")
    await stage.run(Ms(10 * SECOND))

    assert early == (2, 0)
    assert stage.count(WEB, "availableReplicas") == 2


async def test_a_pod_that_is_refused_is_reported_and_created_once_it_is_allowed() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(WEB, replicas=2, template=a_template(account="builder")))
    await stage.run(Ms(MINUTE))
    refused = stage.condition(WEB, "ReplicaFailure")
    events = stage.events("FailedCreate")

    await stage.do(an_account("builder"))
    await stage.run(Ms(2 * MINUTE))

    assert refused == "True FailedCreate"
    assert len(events) == 1
    assert 'serviceaccount "builder" not found' in events[0]
    assert stage.condition(WEB, "ReplicaFailure") == ""
    assert stage.count(WEB, "availableReplicas") == 2


async def test_scaling_in_the_middle_of_a_rollout_is_shared_in_proportion() -> None:
    stage = await Stage().open()
    strategy = rolling(surge=2, unavailable=0)
    await stage.do(a_workload(WEB, replicas=4, strategy=strategy))
    await stage.run()
    await stage.do(a_workload(WEB, replicas=4, strategy=strategy, template=NEVER_READY))
    await stage.run()

    await stage.do(scale(WEB, 8))
    await stage.run()

    assert revisions(stage) == {"1": 7, "2": 3}


async def test_an_unchanged_deployment_is_not_written() -> None:
    stage = await Stage(sample=lambda view: len(view.list_objects(POD))).open()
    await stage.do(a_workload(WEB, replicas=3))
    await stage.run()
    stage.samples.clear()

    await stage.run(Ms(60 * MINUTE))

    assert stage.samples == []


async def test_every_change_of_scale_has_an_event() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(WEB, replicas=2))
    await stage.run()

    await stage.do(scale(WEB, 1))
    await stage.run()

    name = stage.all_of(REPLICA_SET)[0].ref.name
    assert sorted(stage.events("ScalingReplicaSet")) == [
        f"Scaled down replica set {name} from 2 to 1",
        f"Scaled up replica set {name} from 0 to 2",
    ]


async def test_a_replica_set_that_lost_its_deployment_is_taken_over_by_the_next_one() -> None:
    stage = await Stage().open()
    await stage.do(a_workload(WEB, replicas=2))
    await stage.run()
    before = stage.pods()
    await stage.orphan(DEPLOYMENT, "web")
    await stage.run()

    await stage.do(a_workload(WEB, replicas=2))
    await stage.run()

    assert stage.pods() == before
    assert stage.condition(WEB, "Progressing") == "True NewReplicaSetAvailable"

"""Workloads that are healthy only because of fields that others set and Git leaves out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.support.builders import make_object, make_pod_template
from tests.support.cluster_client import require_live
from tests.support.rollout_objects import FOLLOWING
from tests.support.rollout_stage import RunningRollout, Stage
from tests.support.rollout_statuses import ready
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject, LiveObject
from tidegate.model.rollouts.event import EventType
from tidegate.world.requests import PatchType

Status = Callable[[int], JsonObject]


def a_workload(kind: str, image: str, **spec: Json) -> JsonObject:
    """A workload of which Git sets nothing but the template."""
    parts: JsonObject = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": make_pod_template("web", image=image),
        **({"serviceName": "web"} if kind == "StatefulSet" else {}),
        **spec,
    }
    return make_object(f"apps/v1 {kind}", "web", spec=parts)


def no_pods(generation: int) -> JsonObject:
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return {**ready(generation), **dict.fromkeys(counts, 0)}


def old_pods(generation: int) -> JsonObject:
    """A StatefulSet whose only pod is ready and runs the previous revision."""
    counts: JsonObject = {**dict.fromkeys(("replicas", "readyReplicas", "currentReplicas"), 1)}
    revisions: JsonObject = {"currentRevision": "web-1", "updateRevision": "web-2"}
    return {"observedGeneration": generation, "updatedReplicas": 0, **counts, **revisions}


def new_pods(generation: int) -> JsonObject:
    revisions: JsonObject = {"currentRevision": "web-2", "updateRevision": "web-2"}
    return {**old_pods(generation), "updatedReplicas": 1, **revisions}


def nodes(generation: int, *, updated: int, scheduled: int = 1) -> JsonObject:
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberAvailable")
    return {
        "observedGeneration": generation,
        "numberMisscheduled": 0,
        "updatedNumberScheduled": updated,
        **dict.fromkeys(counts, scheduled),
    }


def old_daemons(generation: int) -> JsonObject:
    return nodes(generation, updated=0)


def no_daemons(generation: int) -> JsonObject:
    return nodes(generation, updated=0, scheduled=0)


def new_daemons(generation: int) -> JsonObject:
    return nodes(generation, updated=1)


class Override(NamedTuple):
    """A field that another client sets, and the status of the workload with and without it."""

    kind: str
    field: str
    patch: JsonObject
    undo: JsonObject
    overridden_status: Status
    updated_status: Status


def _strategy(value: Json) -> JsonObject:
    return {"spec": {"updateStrategy": value}}


def _selector(value: Json) -> JsonObject:
    return {"spec": {"template": {"spec": {"nodeSelector": value}}}}


ROLLING: JsonObject = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
MANUAL: JsonObject = {"type": "OnDelete", "rollingUpdate": None}
OVERRIDES = {
    "scaled": Override(
        "Deployment",
        "spec.replicas",
        {"spec": {"replicas": 0}},
        {"spec": {"replicas": 1}},
        no_pods,
        ready,
    ),
    "partition": Override(
        "StatefulSet",
        "spec.updateStrategy.rollingUpdate.partition",
        _strategy({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}),
        _strategy(ROLLING),
        old_pods,
        new_pods,
    ),
    "manual": Override(
        "StatefulSet",
        "spec.updateStrategy.type",
        _strategy(MANUAL),
        _strategy(ROLLING),
        old_pods,
        new_pods,
    ),
    "manual daemons": Override(
        "DaemonSet",
        "spec.updateStrategy.type",
        _strategy(MANUAL),
        _strategy({"type": "RollingUpdate"}),
        old_daemons,
        new_daemons,
    ),
    "no node": Override(
        "DaemonSet",
        "spec.template.spec.nodeSelector",
        _selector({"no": "node"}),
        _selector(None),
        no_daemons,
        new_daemons,
    ),
}
each_override = pytest.mark.parametrize("override", OVERRIDES.values(), ids=list(OVERRIDES))


async def patch_as_other(stage: Stage, override: Override, patch: JsonObject) -> LiveObject:
    ref = await stage.ref(a_workload(override.kind, "app:1"))
    changed = await stage.client.patch(ref, patch, patch_type=PatchType.MERGE, manager="eve")
    return require_live(changed)


async def start_overridden(stage: Stage, override: Override, moment: str) -> RunningRollout:
    """Roll out a newer image of a workload that another client has changed."""
    newer = a_workload(override.kind, "app:2")
    require_live(await stage.client.create(stage.here(a_workload(override.kind, "app:1"))))
    if moment == "before":
        await patch_as_other(stage, override, override.patch)
    rolling = stage.start(newer, FOLLOWING)
    await rolling.waits_for("web")
    if moment == "during":
        await patch_as_other(stage, override, override.patch)
    live = await stage.live(newer)
    await stage.says(newer, override.overridden_status(live.generation))
    return rolling


@pytest.mark.parametrize("moment", ["before", "during"])
@each_override
async def test_a_gate_waits_while_a_field_of_another_client_keeps_pods_from_running(
    stage: Stage, override: Override, moment: str
) -> None:
    rolling = await start_overridden(stage, override, moment)

    waiting = await rolling.waits("Overridden")
    reverted = await patch_as_other(stage, override, override.undo)
    await stage.says(
        a_workload(override.kind, "app:2"), override.updated_status(reverted.generation)
    )
    run = await rolling.ends()

    assert override.field in waiting.message
    assert "eve" in waiting.message
    assert run.result == "passed"


@each_override
async def test_what_git_sets_itself_is_healthy(stage: Stage, override: Override) -> None:
    spec = get_mapping(override.patch, "spec")
    from_git = a_workload(override.kind, "app:2")
    merged = a_workload(
        override.kind, "app:2", **{k: v for k, v in spec.items() if k != "template"}
    )
    if "template" in spec:
        merged = a_workload(
            override.kind,
            "app:2",
            template=make_pod_template("web", image="app:2", nodeSelector={"no": "node"}),
        )
    rolling = stage.start(merged, FOLLOWING)
    await rolling.waits_for("web")

    await stage.says(from_git, override.overridden_status(1))
    run = await rolling.ends()

    assert run.result == "passed"


async def test_an_object_whose_gate_has_opened_before_may_be_scaled_down(stage: Stage) -> None:
    override, web = OVERRIDES["scaled"], a_workload("Deployment", "app:1")
    first = stage.start(web, FOLLOWING)
    await first.waits_for("web")
    await stage.says(web, ready(1))
    assert (await first.ends()).result == "passed"
    scaled = await patch_as_other(stage, override, override.patch)
    await stage.says(web, no_pods(scaled.generation))

    changed = make_object("v1 ConfigMap", "later", data={"a": "b"})
    run = await stage.roll_out((web, changed))

    assert run.result == "passed"


async def test_replicas_that_an_autoscaler_may_have_set_open_a_gate_unverified(
    stage: Stage,
) -> None:
    override = OVERRIDES["scaled"]
    target: JsonObject = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler = make_object(
        "autoscaling/v2 HorizontalPodAutoscaler",
        "sizes",
        spec={"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3},
    )
    require_live(await stage.client.create(stage.here(autoscaler)))

    rolling = await start_overridden(stage, override, "before")
    run = await rolling.ends()

    (unverified,) = run.events_of(EventType.GATE_UNPROVEN)
    assert run.result == "passed"
    assert unverified.reason == "Overridden"
    assert "sizes" in unverified.message

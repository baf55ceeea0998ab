"""Cases of StatefulSets."""

from __future__ import annotations

from tests.conformance.controllers.claims import counts, updated
from tests.support.trace_case import Action, Case, Change, Pause, Remove, Until, WatchedObject
from tests.support.trace_workloads import DB, a_template, a_workload, scale
from tidegate.model.k8s.kinds import POD
from tidegate.model.k8s.objects import Json
from tidegate.model.times import SECOND, Ms

READY = Until(DB, updated)
SECOND_IMAGE = a_template(image="app:2")
DISK: Json = {
    "metadata": {"name": "disk"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def _case(name: str, *actions: Action) -> Case:
    return Case(f"stateful-set-{name}", (DB,), actions)


def _strategy(kind: str, partition: int | None = None) -> Json:
    if partition is None:
        return {"type": kind}
    return {"type": kind, "rollingUpdate": {"partition": partition}}


STATEFUL_SETS = (
    _case("starts-in-order", a_workload(DB, replicas=3), READY),
    _case("starts-in-parallel", a_workload(DB, replicas=3, podManagementPolicy="Parallel"), READY),
    _case(
        "rolls-to-a-new-image",
        a_workload(DB, replicas=3),
        READY,
        a_workload(DB, replicas=3, template=SECOND_IMAGE),
        READY,
    ),
    _case(
        "rolls-down-to-its-partition",
        a_workload(DB, replicas=3, updateStrategy=_strategy("RollingUpdate", 2)),
        READY,
        a_workload(
            DB,
            replicas=3,
            updateStrategy=_strategy("RollingUpdate", 2),
            template=SECOND_IMAGE,
        ),
        Until(DB, counts(readyReplicas=3, updatedReplicas=1, currentReplicas=2)),
        Change(DB, {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}),
        READY,
    ),
    _case(
        "is-renewed-on-delete",
        a_workload(DB, replicas=2, updateStrategy=_strategy("OnDelete")),
        Until(DB, counts(readyReplicas=2, currentReplicas=2)),
        a_workload(DB, replicas=2, updateStrategy=_strategy("OnDelete"), template=SECOND_IMAGE),
        Pause(Ms(2 * SECOND)),
        Remove(WatchedObject(POD, "db-0")),
        Until(DB, counts(readyReplicas=2, currentReplicas=1, updatedReplicas=1)),
    ),
    _case(
        "is-scaled-up-and-down",
        a_workload(DB, replicas=1),
        READY,
        scale(DB, 3),
        READY,
        scale(DB, 1),
        Until(DB, counts(replicas=1, readyReplicas=1)),
    ),
    _case("waits-for-min-ready-seconds", a_workload(DB, replicas=2, minReadySeconds=2), READY),
    _case(
        "never-ready-stops-at-the-first-pod",
        a_workload(DB, replicas=3, template=a_template(outcome="never")),
        Until(DB, counts(replicas=1)),
        Pause(Ms(2 * SECOND)),
    ),
    _case("with-disks", a_workload(DB, replicas=2, volumeClaimTemplates=[DISK]), READY),
)

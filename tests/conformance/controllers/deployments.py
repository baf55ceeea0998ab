"""Cases of Deployments."""

from __future__ import annotations

from tests.conformance.controllers.claims import counts, rolled_out, says
from tests.support.trace_case import Action, Case, Change, Pause, Remove, Until, UntilGone
from tests.support.trace_workloads import (
    WEB,
    a_template,
    a_workload,
    an_account,
    pause,
    rolling,
    scale,
)
from tidegate.model.times import SECOND, Ms

COMPLETE = Until(WEB, rolled_out)
SECOND_IMAGE = a_template(image="app:2")
THIRD_IMAGE = a_template(image="app:3")
NEVER_READY = a_template(image="app:2", outcome="never")


def _case(name: str, *actions: Action) -> Case:
    return Case(f"deployment-{name}", (WEB,), actions)


DEPLOYMENTS = (
    _case("becomes-available", a_workload(WEB, replicas=3), COMPLETE),
    _case("with-no-replicas", a_workload(WEB, replicas=0), COMPLETE),
    _case(
        "rolls-to-a-new-image",
        a_workload(WEB, replicas=3),
        COMPLETE,
        a_workload(WEB, replicas=3, template=SECOND_IMAGE),
        COMPLETE,
    ),
    _case(
        "rolls-without-surge",
        a_workload(WEB, replicas=4, strategy=rolling(surge=0, unavailable="50%")),
        COMPLETE,
        a_workload(
            WEB, replicas=4, strategy=rolling(surge=0, unavailable="50%"), template=SECOND_IMAGE
        ),
        COMPLETE,
    ),
    _case(
        "is-recreated",
        a_workload(WEB, replicas=2, strategy={"type": "Recreate"}),
        COMPLETE,
        a_workload(WEB, replicas=2, strategy={"type": "Recreate"}, template=SECOND_IMAGE),
        COMPLETE,
    ),
    _case(
        "exceeds-its-deadline",
        a_workload(
            WEB, replicas=2, progressDeadlineSeconds=3, template=a_template(outcome="never")
        ),
        Until(WEB, says("Progressing", "ProgressDeadlineExceeded")),
    ),
    _case(
        "recovers-after-its-deadline",
        a_workload(
            WEB, replicas=1, progressDeadlineSeconds=2, template=a_template(ready_after="6s")
        ),
        Until(WEB, says("Progressing", "ProgressDeadlineExceeded")),
        COMPLETE,
    ),
    _case(
        "stuck-in-a-bad-image-goes-back",
        a_workload(WEB, replicas=3, progressDeadlineSeconds=3),
        COMPLETE,
        a_workload(WEB, replicas=3, progressDeadlineSeconds=3, template=NEVER_READY),
        Until(WEB, says("Progressing", "ProgressDeadlineExceeded")),
        a_workload(WEB, replicas=3, progressDeadlineSeconds=3),
        Until(WEB, rolled_out),
    ),
    _case(
        "is-superseded-half-way",
        a_workload(WEB, replicas=3),
        COMPLETE,
        a_workload(WEB, replicas=3, template=NEVER_READY),
        Until(WEB, counts(replicas=4, updatedReplicas=1, availableReplicas=3, readyReplicas=3)),
        a_workload(WEB, replicas=3, template=THIRD_IMAGE),
        COMPLETE,
    ),
    _case(
        "is-scaled-up-and-down",
        a_workload(WEB, replicas=2),
        COMPLETE,
        scale(WEB, 5),
        Until(WEB, counts(replicas=5, availableReplicas=5)),
        scale(WEB, 1),
        Until(WEB, counts(replicas=1, availableReplicas=1)),
    ),
    _case(
        "is-scaled-in-the-middle-of-a-rollout",
        a_workload(WEB, replicas=4, strategy=rolling(surge=2, unavailable=0)),
        COMPLETE,
        a_workload(WEB, replicas=4, strategy=rolling(surge=2, unavailable=0), template=NEVER_READY),
        Until(WEB, counts(replicas=6, updatedReplicas=2, availableReplicas=4, readyReplicas=4)),
        scale(WEB, 8),
        Until(WEB, counts(replicas=10, updatedReplicas=3, availableReplicas=7)),
    ),
    _case(
        "is-paused-and-resumed",
        a_workload(WEB, replicas=2),
        COMPLETE,
        pause(WEB),
        Until(WEB, says("Progressing", "DeploymentPaused")),
        Change(WEB, {"spec": {"template": SECOND_IMAGE}}),
        Pause(Ms(2 * SECOND)),
        pause(WEB, paused=False),
        COMPLETE,
    ),
    _case("begins-paused", a_workload(WEB, replicas=2, paused=True), Pause(Ms(2 * SECOND))),
    _case(
        "waits-for-min-ready-seconds",
        a_workload(WEB, replicas=2, minReadySeconds=3),
        COMPLETE,
    ),
    _case(
        "without-its-service-account",
        a_workload(WEB, replicas=2, template=a_template(account="builder")),
        Until(WEB, says("ReplicaFailure", "FailedCreate")),
        an_account("builder"),
        COMPLETE,
    ),
    _case(
        "crashes-and-is-mended",
        a_workload(WEB, replicas=2, template=a_template(outcome="crash")),
        Until(WEB, counts(replicas=2, unavailableReplicas=2, updatedReplicas=2)),
        a_workload(WEB, replicas=2, template=SECOND_IMAGE),
        COMPLETE,
    ),
    _case("is-deleted", a_workload(WEB, replicas=2), COMPLETE, Remove(WEB), UntilGone(WEB)),
)

"""Cases of PodDisruptionBudgets and HorizontalPodAutoscalers."""

from __future__ import annotations

from tests.conformance.controllers.claims import counts, rolled_out, says
from tests.support.trace_case import Action, Apply, Case, Pause, Until, WatchedObject
from tests.support.trace_workloads import WEB, a_template, a_workload, scale
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.external_status import AUTOSCALER
from tidegate.sandbox.controllers.selectors import DISRUPTION_BUDGET

SPARE = WatchedObject(DISRUPTION_BUDGET, "spare")
SCALER = WatchedObject(AUTOSCALER, "scaler")


def a_budget(**spec: Json) -> Apply:
    body: JsonObject = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": SPARE.name},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }
    return Apply(body)


def a_scaler() -> Apply:
    target: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": WEB.name}
    expected: Json = {"type": "Utilization", "averageUtilization": 50}
    metric: Json = {"type": "Resource", "resource": {"name": "cpu", "target": expected}}
    body: JsonObject = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": SCALER.name},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3, "metrics": [metric]},
    }
    return Apply(body)


def _case(name: str, *actions: Action) -> Case:
    return Case(f"budget-{name}", (SPARE, WEB), actions)


BUDGETS = (
    _case("without-pods", a_budget(minAvailable=1), Until(SPARE, counts(desiredHealthy=1))),
    _case(
        "spares-one-pod",
        a_workload(WEB, replicas=3),
        Until(WEB, rolled_out),
        a_budget(maxUnavailable=1),
        Until(SPARE, counts(currentHealthy=3, disruptionsAllowed=1)),
        scale(WEB, 5),
        Until(SPARE, counts(currentHealthy=5, disruptionsAllowed=1, expectedPods=5)),
    ),
    _case(
        "counts-the-pods-of-a-rollout-once",
        a_workload(WEB, replicas=2),
        Until(WEB, rolled_out),
        a_budget(maxUnavailable=1),
        Until(SPARE, counts(currentHealthy=2, disruptionsAllowed=1)),
        a_workload(WEB, replicas=2, template=a_template(image="app:2", outcome="never")),
        Until(WEB, counts(replicas=3, updatedReplicas=1, availableReplicas=2, readyReplicas=2)),
    ),
    _case(
        "spares-no-pod",
        a_workload(WEB, replicas=2, template=a_template(outcome="never")),
        Pause(Ms(SECOND)),
        a_budget(minAvailable="50%"),
        Until(SPARE, counts(expectedPods=2, desiredHealthy=1)),
    ),
    Case(
        "scaler-without-metrics",
        (SCALER, WEB),
        (
            a_workload(WEB, replicas=2),
            Until(WEB, rolled_out),
            a_scaler(),
            Until(SCALER, says("ScalingActive", "FailedGetResourceMetric", observed=False)),
        ),
    ),
    Case(
        "scaler-without-target",
        (SCALER,),
        (a_scaler(), Until(SCALER, says("AbleToScale", "FailedGetScale", observed=False))),
    ),
)

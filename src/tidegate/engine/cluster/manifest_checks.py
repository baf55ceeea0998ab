"""Checks of the manifests of a plan without a cluster.

They find what every API server rejects: kinds that neither Kubernetes nor the plan defines, and
manifests that violate the schema of their kind.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tidegate.engine.cluster.compare import ComparedItem
from tidegate.engine.cluster.live_cache import LiveCache
from tidegate.engine.cluster.preflight.admission_context import AdmissionContext
from tidegate.engine.cluster.preflight.checks import (
    ObjectFailure,
    PreflightChecker,
    will_be_written,
)
from tidegate.engine.cluster.prerequisites import find_unserved
from tidegate.engine.evaluator import ObjectEvaluator
from tidegate.engine.messages import ComparedObject, CompareResult
from tidegate.model.k8s.objects import ClusterRef, ServedKind
from tidegate.model.plans.plan import Plan, step_items


def find_manifest_failures(
    plan: Plan, evaluator: ObjectEvaluator, served_kinds: Mapping[str, Collection[ServedKind]]
) -> list[ObjectFailure]:
    """Return the objects of a plan that clusters without any objects reject.

    `served_kinds`: by cluster, the kinds that it serves.
    """
    live_cache = LiveCache(
        served_kinds={
            cluster: {served.kind: served for served in kinds}
            for cluster, kinds in served_kinds.items()
        }
    )
    absent: list[ComparedItem] = [
        (
            step,
            item,
            ComparedObject(ClusterRef(step.cluster, item.ref), CompareResult.ABSENT),
        )
        for step in plan.steps
        for item in step_items(step)
    ]
    written = [compared_item for compared_item in absent if will_be_written(compared_item)]
    admission = AdmissionContext(evaluator, live_cache)
    admission.register({compared.object_ref: item for _, item, compared in written})
    checker = PreflightChecker(evaluator, {unit.id: unit for unit in plan.units}, admission)
    return [
        *find_unserved(list(plan.steps), written, live_cache),
        *checker.find_manifest_failures(written),
    ]

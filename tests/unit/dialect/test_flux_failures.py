"""Reasons and messages of Kustomizations that cannot be reconciled."""

from __future__ import annotations

from tidegate.dialect.flux.status.failures import kustomization_failure
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.rollouts.progress import UnitPhase, UnitProgress
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId

APPS, INFRA = (UnitId("Kustomization", "", "flux-system", name) for name in ("apps", "infra"))
RESOURCE: JsonObject = {
    "metadata": {"name": "apps", "namespace": "flux-system"},
    "spec": {"dependsOn": [{"name": "base"}, {"name": "infra"}]},
}


def test_a_unit_of_a_cycle_waits_for_the_next_one_for_any_message() -> None:
    progress = UnitProgress(
        unit=APPS,
        phase=UnitPhase.FINISHED,
        now=Ms(0),
        started_at=Ms(0),
        code="plan.cycle",
        message="a message in other words",
        cycle=(APPS, INFRA),
    )

    failure = kustomization_failure(RESOURCE, progress)

    assert failure.reason == "DependencyNotReady"
    assert failure.message == "dependency 'flux-system/infra' is not ready"

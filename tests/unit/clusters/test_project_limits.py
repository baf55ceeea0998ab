"""Objects that a project does not allow are neither pruned nor deleted."""

from __future__ import annotations

import pytest
from msgspec import structs

from tidegate.clusters.evaluator import prune_candidate
from tidegate.dialect.ownership.tracking import tracking_metadata
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.model.plans.plan import PlannedUnit
from tidegate.model.units.policy import Policy, Tracking
from tidegate.model.units.project import DestinationRule, KindRule, Project, ProjectScope
from tidegate.model.units.unit import UnitId

WEB = UnitId("Application", "", "argocd", "web")
ANYWHERE = DestinationRule(server="*", name="", namespace="*", location="team.yaml:5")
SECRETS = KindRule(group="", kind="Secret", name="", location="team.yaml:9")
TEAM = Project(name="team", destinations=(ANYWHERE,), denied_kinds=(SECRETS,))
SHOP = DestinationRule(server="*", name="", namespace="shop", location="team.yaml:5")


def live_object(kind: str, namespace: str = "shop") -> dict[str, Json]:
    ref = Ref(Kind("", "v1", kind), namespace, "old")
    notes, _ = tracking_metadata(WEB, Policy(tracking=Tracking.ARGO), ref)
    metadata: Json = {"name": "old", "namespace": namespace, "annotations": {**notes}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


def unit(project: Project | None) -> PlannedUnit:
    reach = None if project is None else ProjectScope(project=project, server="https://here")
    return PlannedUnit(id=WEB, policy=Policy(tracking=Tracking.ARGO, project_scope=reach))


@pytest.mark.parametrize(
    ("project", "body", "goes"),
    [
        (None, live_object("Secret"), True),
        (TEAM, live_object("ConfigMap"), True),
        (TEAM, live_object("Secret"), False),
        (structs.replace(TEAM, destinations=(SHOP,)), live_object("ConfigMap", "other"), False),
    ],
)
def test_only_objects_that_the_project_permits_are_pruned(
    project: Project | None, body: dict[str, Json], *, goes: bool
) -> None:
    assert (prune_candidate(body, unit(project)) is not None) is goes

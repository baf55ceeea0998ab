"""Whose an object is, by whichever mark it bears."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.dialect.documents import a_document
from tidegate.dialect.manifests import read_manifests
from tidegate.dialect.tracking import owner_of
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.policy import Policy, Tracking
from tidegate.model.reading import mapping
from tidegate.model.unit import Destination, Unit, UnitId

WEB = Ref(Kind("apps", "v1", "Deployment"), "shop", "web")
OURS = UnitId.plain("shop", "web")
APPLICATION = UnitId("Application", "", "argocd", "web")
ELSEWHERE = UnitId("Application", "", "team-a", "web")
KUSTOMIZATION = UnitId("Kustomization", "", "flux-system", "apps")
RELEASE = UnitId("HelmRelease", "", "shop", "apps")


@pytest.mark.parametrize(
    ("unit", "tracking"),
    [
        (OURS, Tracking.OWN),
        (APPLICATION, Tracking.ARGO),
        (ELSEWHERE, Tracking.ARGO),
        (KUSTOMIZATION, Tracking.FLUX),
        (RELEASE, Tracking.FLUX),
    ],
)
def test_an_object_bears_the_mark_of_its_unit_and_keeps_its_own(
    unit: UnitId, tracking: Tracking
) -> None:
    document = a_document("apps/v1 Deployment", "web", notes={"mine": "1"}, labels={"app": "web"})
    wanted = Unit(
        id=unit, destination=Destination(namespace="shop"), policy=Policy(tracking=tracking)
    )

    (manifest,) = read_manifests(wanted, [document], lambda _: True).manifests

    body: dict[str, Json] = msgspec.json.decode(manifest.body)
    assert owner_of(body) == unit.mark
    assert mapping(body, "metadata", "annotations")["mine"] == "1"
    assert mapping(body, "metadata", "labels")["app"] == "web"


def test_argo_cd_tracks_by_application_kind_and_name() -> None:
    unit = Unit(id=APPLICATION, policy=Policy(tracking=Tracking.ARGO))
    document = a_document("apps/v1 Deployment", "web", namespace="shop")

    (manifest,) = read_manifests(unit, [document], lambda _: True).manifests

    notes = mapping(msgspec.json.decode(manifest.body), "metadata", "annotations")
    assert notes == {"argocd.argoproj.io/tracking-id": "web:apps/Deployment:shop/web"}


def test_what_nobody_marked_is_nobodys() -> None:
    assert owner_of({"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}}) == ""
    assert owner_of({}) == ""

"""Whose an object is, by whichever mark it bears."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.parsed_manifests import parse_all_manifests
from tests.unit.dialect.documents import a_document
from tidegate.dialect.ownership.tracking import owning_unit, tracking_metadata
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.model.units.policy import Policy, Tracking
from tidegate.model.units.unit import Destination, Unit, UnitId

WEB = Ref(Kind("apps", "v1", "Deployment"), "shop", "web")
OURS = UnitId.plain("shop", "web")
APPLICATION = UnitId("Application", "", "argocd", "web")
ELSEWHERE = UnitId("Application", "", "team-a", "web")
KUSTOMIZATION = UnitId("Kustomization", "", "flux-system", "apps")
RELEASE = UnitId("HelmRelease", "", "shop", "apps")


@pytest.mark.parametrize(
    ("unit", "tracking"),
    [
        (OURS, Tracking.TIDEGATE),
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
    expected = Unit(
        id=unit, destination=Destination(namespace="shop"), policy=Policy(tracking=tracking)
    )

    (manifest,) = parse_all_manifests(expected, [document], lambda _: True).manifests

    body: dict[str, Json] = msgspec.json.decode(manifest.body)
    assert owning_unit(body) == unit.tracking_id
    assert get_mapping(body, "metadata", "annotations")["mine"] == "1"
    assert get_mapping(body, "metadata", "labels")["app"] == "web"


def test_argo_cd_tracks_by_application_kind_and_name() -> None:
    unit = Unit(id=APPLICATION, policy=Policy(tracking=Tracking.ARGO))
    document = a_document("apps/v1 Deployment", "web", namespace="shop")

    (manifest,) = parse_all_manifests(unit, [document], lambda _: True).manifests

    notes = get_mapping(msgspec.json.decode(manifest.body), "metadata", "annotations")
    assert notes == {"argocd.argoproj.io/tracking-id": "web:apps/Deployment:shop/web"}


KEY = "app.kubernetes.io/instance"
LONG = UnitId("Application", "", "team-a", f"{'w' * 53}-{'b' * 20}")


@pytest.mark.parametrize("unit", [APPLICATION, ELSEWHERE, LONG])
@pytest.mark.parametrize("labels_only", [False, True])
def test_argo_cd_tracks_by_a_label_besides_or_alone(unit: UnitId, *, labels_only: bool) -> None:
    policy = Policy(tracking=Tracking.ARGO, instance_label=KEY, labels_only=labels_only)
    notes, labels = tracking_metadata(unit, policy, WEB)

    body: dict[str, Json] = {"metadata": {"annotations": {**notes}, "labels": {**labels}}}

    assert owning_unit(body, policy.owner_label) == unit.tracking_id
    assert (notes == {}) is labels_only
    assert labels_only or len(labels[KEY]) <= 63


@pytest.mark.parametrize(
    ("labels", "notes", "by_label", "by_note"),
    [
        ({KEY: "a"}, {}, "a", ""),
        ({KEY: "a"}, {"argocd.argoproj.io/tracking-id": "b:/ConfigMap:x/y"}, "a", "b"),
        ({}, {"argocd.argoproj.io/tracking-id": "b:/ConfigMap:x/y"}, "b", "b"),
        ({KEY: "a"}, {"tidegate.dev/unit": "Application/argocd/c"}, "c", "c"),
    ],
)
def test_the_owner_of_an_object_depends_on_the_tracking_method(
    labels: dict[str, Json], notes: dict[str, Json], by_label: str, by_note: str
) -> None:
    body: dict[str, Json] = {"metadata": {"labels": labels, "annotations": notes}}

    assert owning_unit(body, KEY).rpartition("/")[2] == by_label
    assert owning_unit(body).rpartition("/")[2] == by_note


def test_an_object_without_a_mark_has_no_unit() -> None:
    assert owning_unit({"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}}) == ""
    assert owning_unit({}) == ""

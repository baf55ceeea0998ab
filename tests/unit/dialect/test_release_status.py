"""The status of a HelmRelease where drift could not be corrected, and when nothing is new."""

from __future__ import annotations

import msgspec

from tidegate.dialect.flux.status.release import helm_release_status
from tidegate.dialect.helm import record_owner
from tidegate.dialect.helm.record import ReleaseRecord, record_secret
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.model.plans.drift import ObjectDrift
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.model.rollouts.progress import ObjectProgress, ObjectResult, UnitPhase, UnitProgress
from tidegate.model.times import MINUTE, Ms
from tidegate.model.units.release_history import DriftMode, ReleaseSpec, ReleaseTestSpec
from tidegate.model.units.unit import UnitId

DEPLOYED: dict[str, Json] = {
    "name": "web",
    "namespace": "shop",
    "version": 3,
    "info": {"status": "deployed"},
    "chart": {"metadata": {"name": "shop", "version": "1.0.0"}},
}


def test_uncorrectable_drift_does_not_change_the_release() -> None:
    def setting(name: str, became: ObjectResult, drift: ObjectDrift) -> ObjectProgress:
        return ObjectProgress(
            ref=Ref(Kind("", "v1", "ConfigMap"), "shop", name), result=became, drift=drift
        )

    account = UnitProgress(
        unit=UnitId("HelmRelease", "", "shop", "web"),
        phase=UnitPhase.FINISHED,
        now=Ms(0),
        started_at=Ms(0),
        has_operation=True,
        result=RolloutOutcome.FAILED,
        message="ConfigMap shop/web: it is frozen",
        objects=(
            setting("web", ObjectResult.FAILED, ObjectDrift("was changed", changed=1)),
            setting("more", ObjectResult.CREATED, ObjectDrift("was deleted", is_deleted=True)),
        ),
        release=ReleaseSpec("web", "shop", "shop", drift=DriftMode.ENABLED),
        release_records=(
            msgspec.json.encode(record_secret(ReleaseRecord(DEPLOYED), "shop", now=Ms(0))),
        ),
        has_same_revision=True,
    )

    text = helm_release_status({"metadata": {"generation": 1}}, account, ())

    assert text is not None
    by_name = {
        get_text(condition, "type"): condition
        for condition in get_mappings(text.status, "conditions")
    }
    assert get_text(by_name["Ready"], "reason") == "UpgradeSucceeded"
    assert (get_text(by_name["Drifted"], "status"), get_text(by_name["Drifted"], "reason")) == (
        "True",
        "DriftDetected",
    )
    kind, reason, message = text.events[-1]
    assert (kind, reason) == ("Warning", "DriftCorrectionFailed")
    assert message == (
        "Failed to partially correct cluster state of release shop/web.v3:\n"
        "ConfigMap shop/web: it is frozen"
    )
    assert "upgradeFailures" not in text.status


def test_the_status_of_a_tested_release_is_unchanged_without_changes() -> None:
    record = ReleaseRecord(DEPLOYED, annotations={record_owner.TESTED: record_owner.TESTS_PASSED})
    account = UnitProgress(
        unit=UnitId("HelmRelease", "", "shop", "web"),
        phase=UnitPhase.FINISHED,
        now=Ms(0),
        started_at=Ms(0),
        has_operation=True,
        result=RolloutOutcome.PASSED,
        release=ReleaseSpec("web", "shop", "shop", test=ReleaseTestSpec(runs=True)),
        release_records=(msgspec.json.encode(record_secret(record, "shop", now=Ms(0))),),
    )
    first = helm_release_status({}, account, ())
    assert first is not None

    later = msgspec.structs.replace(account, now=Ms(MINUTE), has_operation=False)
    second = helm_release_status({"status": first.status}, later, ())

    assert second is not None
    assert second.status == first.status

"""What a HelmRelease says where drift could not be put back, and when nothing is new."""

from __future__ import annotations

import msgspec

from tidegate.dialect.flux.release_status import release_status
from tidegate.dialect.helm import belonging
from tidegate.dialect.helm.record import ReleaseRecord, secret_of
from tidegate.model.account import Became, Going, ObjectAccount, UnitAccount
from tidegate.model.drift import ObjectDrift
from tidegate.model.event import Result
from tidegate.model.ledger import DriftMode, ReleaseTerms, TrialTerms
from tidegate.model.moment import MINUTE, Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import mappings, text
from tidegate.model.unit import UnitId

DEPLOYED: dict[str, Json] = {
    "name": "web",
    "namespace": "shop",
    "version": 3,
    "info": {"status": "deployed"},
    "chart": {"metadata": {"name": "shop", "version": "1.0.0"}},
}


def test_drift_that_cannot_be_put_back_leaves_the_release_as_it_stands() -> None:
    def setting(name: str, became: Became, drift: ObjectDrift) -> ObjectAccount:
        return ObjectAccount(
            ref=Ref(Kind("", "v1", "ConfigMap"), "shop", name), became=became, drift=drift
        )

    account = UnitAccount(
        unit=UnitId("HelmRelease", "", "shop", "web"),
        going=Going.ENDED,
        now=Ms(0),
        begun=Ms(0),
        operated=True,
        result=Result.FAILED,
        sentence="ConfigMap shop/web: it is frozen",
        objects=(
            setting("web", Became.FAILED, ObjectDrift("was changed", changed=1)),
            setting("more", Became.CREATED, ObjectDrift("was deleted", is_gone=True)),
        ),
        release=ReleaseTerms("web", "shop", "shop", drift=DriftMode.ENABLED),
        entries=(msgspec.json.encode(secret_of(ReleaseRecord(DEPLOYED), "shop", now=Ms(0))),),
        is_kept=True,
    )

    said = release_status({"metadata": {"generation": 1}}, account, ())

    assert said is not None
    found = {text(one, "type"): one for one in mappings(said.status, "conditions")}
    assert text(found["Ready"], "reason") == "UpgradeSucceeded"
    assert (text(found["Drifted"], "status"), text(found["Drifted"], "reason")) == (
        "True",
        "DriftDetected",
    )
    kind, reason, sentence = said.notes[-1]
    assert (kind, reason) == ("Warning", "DriftCorrectionFailed")
    assert sentence == (
        "Failed to partially correct cluster state of release shop/web.v3:\n"
        "ConfigMap shop/web: it is frozen"
    )
    assert "upgradeFailures" not in said.status


def test_what_a_tested_release_says_stays_as_it_is_when_nothing_is_new() -> None:
    record = ReleaseRecord(DEPLOYED, notes={belonging.TESTED: belonging.FIT})
    account = UnitAccount(
        unit=UnitId("HelmRelease", "", "shop", "web"),
        going=Going.ENDED,
        now=Ms(0),
        begun=Ms(0),
        operated=True,
        result=Result.PASSED,
        release=ReleaseTerms("web", "shop", "shop", test=TrialTerms(runs=True)),
        entries=(msgspec.json.encode(secret_of(record, "shop", now=Ms(0))),),
    )
    first = release_status({}, account, ())
    assert first is not None

    later = msgspec.structs.replace(account, now=Ms(MINUTE), operated=False)
    second = release_status({"status": first.status}, later, ())

    assert second is not None
    assert second.status == first.status

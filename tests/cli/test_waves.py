"""`tidegate waves` from outside: the inventory of an order."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import ROOT, config_map, tidegate, write_unit

LADDER = ROOT / "examples" / "ladder"
PLATFORM = ROOT / "examples" / "platform"


def test_phases_follow_the_labels_of_applications() -> None:
    ran = tidegate("waves", LADDER, "-o", "json")

    document = json.loads(ran.stdout)
    phases = {phase["phase"]: phase["components"] for phase in document["phases"]}
    assert document["schema"] == "tidegate.dev/waves/v1"
    assert phases["010"] == ["foundation-crds-external-secrets", "foundation-namespaces"]
    assert phases["155"] == ["foundation-vault-bootstrap", "foundation-vault-secret-store"]
    assert list(phases) == sorted(phases)


def test_waves_of_units_and_levels_of_dependencies() -> None:
    document = json.loads(tidegate("waves", PLATFORM, "-o", "json").stdout)

    assert [(wave["wave"], wave["units"]) for wave in document["waves"]] == [
        (0, ["Application/argocd/database"]),
        (1, ["Application/argocd/shop"]),
    ]
    assert [(level["level"], level["units"]) for level in document["levels"]] == [
        (1, ["Kustomization/flux-system/infrastructure"]),
        (2, ["Kustomization/flux-system/metrics"]),
    ]


def test_coverage_counts_objects_with_a_wave(tmp_path: Path) -> None:
    first, second = config_map("first", wave="-3"), config_map("second")
    folder = write_unit(tmp_path / "half", first=first, second=second)

    (unit,) = json.loads(tidegate("waves", folder, "-o", "json").stdout)["units"]
    assert (unit["objects"], unit["withWave"], unit["coverage"]) == (2, 1, 0.5)
    assert [(wave["wave"], len(wave["objects"])) for wave in unit["waves"]] == [(-3, 1), (0, 1)]
    shown = tidegate("waves", folder).stdout.splitlines()
    assert shown[-1].split() == ["default/half", "half", "2", "1", "(50", "%)", "ConfigMap"]


def test_a_chart_is_covered_as_a_unit_is(wording: RecordedWording) -> None:
    shown = tidegate("waves", ROOT / "examples" / "chart", "--name", "shop").stdout

    assert "default/shop" in shown
    wording(shown)

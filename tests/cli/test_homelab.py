"""The platform of `examples/homelab`: one root, Applications in waves, then three sets."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TypeAlias

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import ROOT, tidegate

Events: TypeAlias = list[dict[str, object]]

HOMELAB = ROOT / "examples" / "homelab"
FIRST_DAY = ("--scenario", str(HOMELAB / "scenarios" / "first-day.yaml"))
WAVES = {
    0: {"1password-connect", "argocd", "cilium", "external-secrets", "projects"},
    1: {"longhorn", "snapshot-controller", "volsync"},
    2: {"pvc-plumber"},
    4: {"cert-manager", "cloudnative-pg", "gateway", "gpu-operator", "kyverno", "redis"},
    5: {"loki-stack", "prometheus-stack", "tempo"},
    6: {"frigate", "jellyfin", "paperless"},
}
SETS = {"infrastructure": 4, "monitoring": 5, "my-apps": 6}


def test_each_wave_contains_the_documented_objects() -> None:
    ran = tidegate("units", HOMELAB, "--offline", "-o", "json")

    result: dict[int, set[str]] = {}
    for unit in json.loads(ran.stdout)["units"]:
        made_by = str(unit["set"]).rpartition("/")[2]
        if unit["name"] in {*SETS, "root"}:
            continue
        result.setdefault(SETS.get(made_by, unit["wave"]), set()).add(unit["name"])
    assert result == WAVES


@pytest.fixture(scope="module")
def events() -> Events:
    ran = tidegate("sync", HOMELAB, "--sandbox", *FIRST_DAY, "--offline", "-o", "json")
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_each_wave_starts_when_the_previous_one_is_healthy(events: Events) -> None:
    spans = [spans_of(events, names) for names in WAVES.values()]

    for (_, end), (start, _) in pairwise(spans):
        assert end <= start


def spans_of(events: Events, names: set[str]) -> tuple[int, int]:
    """From the first object of these units that is written to the last gate that opens."""
    unit_events = [event for event in events if _name(event) in names]
    writes = [int(str(item["at"])) for item in unit_events if item["event"] == "object.written"]
    gates = [int(str(item["at"])) for item in unit_events if item["event"] == "step.passed"]
    return min(writes), max(gates)


def _name(event: dict[str, object]) -> object:
    return str(event.get("unit", "")).rpartition("/")[2]


def test_argo_cd_does_not_wait_for_what_a_set_generates() -> None:
    ran = tidegate("simulate", HOMELAB, *FIRST_DAY, "--engine", "argocd", "--offline", "-o", "json")

    messages = [json.loads(line) for line in ran.stdout.splitlines()]
    infrastructure, monitoring = (spans_of(messages, WAVES[wave]) for wave in (4, 5))
    assert ran.returncode == 0, ran.stderr
    assert monitoring[0] < infrastructure[1]


def test_the_missing_secrets_are_named_as_the_cause(wording: RecordedWording) -> None:
    ran = tidegate("sync", HOMELAB, "--sandbox", "--offline", "--timeout", "20m", "-o", "json")

    last = json.loads(ran.stdout.splitlines()[-1])
    causes = [cause for failure in last["failures"] for cause in failure["why"]]
    assert ran.returncode != 0
    assert last["event"] == "rollout.explained"
    (cause,) = [item for item in causes if "Secret 1passwordconnect/1password-credentials " in item]
    wording(cause)


def test_lint_has_no_findings_of_rules() -> None:
    ran = tidegate("lint", HOMELAB, "--offline", "-o", "json")

    assert ran.returncode == 0
    assert "ORD" not in str([finding["code"] for finding in json.loads(ran.stdout)["findings"]])


def test_selected_units_keep_the_order_of_their_parents() -> None:
    names = ("jellyfin", "pvc-plumber", "cilium")
    args = [arg for name in names for arg in ("--unit", name)]

    ran = tidegate("sync", HOMELAB, "--sandbox", "--offline", "-o", "json", *args)

    messages = [json.loads(line) for line in ran.stdout.splitlines()]
    jellyfin, plumber, cilium = (spans_of(messages, {name}) for name in names)
    assert ran.returncode == 0, ran.stderr
    assert cilium[1] <= plumber[0]
    assert plumber[1] <= jellyfin[0]

"""The platform of `examples/ladder`: one set over all components, in the steps of their phases."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from tests.support.tidegate_runs import ROOT, tidegate

LADDER = ROOT / "examples" / "ladder"
FIRST_DAY = ("--scenario", str(LADDER / "scenarios" / "first-day.yaml"))
COMPONENTS = "environments/dev/components"
INVENTORY = {
    "010": ["foundation-crds-external-secrets", "foundation-namespaces"],
    "110": ["foundation-crds-cert-manager"],
    "120": ["foundation-cert-manager", "foundation-external-secrets"],
    "130": ["foundation-ghcr-pull-secret", "foundation-vault-webhook-certs"],
    "140": ["foundation-coredns-config", "foundation-managed-storage"],
    "150": ["foundation-vault-core"],
    "155": ["foundation-vault-bootstrap", "foundation-vault-secret-store"],
    "199": [
        "foundation-bootstrap-smoke",
        "foundation-external-secrets-ready",
        "foundation-operators-smoke",
    ],
    "310": ["platform-envoy-crds", "platform-gateway-api", "platform-keycloak-crds"],
    "320": ["foundation-keycloak-operator", "platform-envoy-gateway"],
    "340": ["platform-gateway"],
    "355": ["platform-keycloak-realm"],
}


class EventFields(msgspec.Struct):
    """The fields of an event that these tests read."""

    event: str
    at: int = 0
    unit: str = ""
    kind: str = ""


def read_events(lines: str) -> list[EventFields]:
    return [msgspec.json.decode(line, type=EventFields) for line in lines.splitlines()]


def writes(events: list[EventFields]) -> list[tuple[str, EventFields]]:
    """Each object that was written, with the name of its unit."""
    return [
        (name_of(event), event)
        for event in events
        if event.event == "object.written" and event.unit
    ]


def name_of(event: EventFields) -> str:
    """The last part of its unit's identity."""
    return event.unit.rpartition("/")[2]


def causes_of(lines: str) -> list[str]:
    """The causes of the failures that the last event names."""
    failures = json.loads(lines.splitlines()[-1])["failures"]
    return [cause for failure in failures for cause in failure["why"]]


def test_the_inventory_is_that_of_the_phases() -> None:
    ran = tidegate("waves", LADDER, "--offline", "-o", "json")

    by_name = {phase["phase"]: phase["components"] for phase in json.loads(ran.stdout)["phases"]}
    assert {phase: by_name[phase] for phase in INVENTORY} == INVENTORY
    assert "platform-postgres-clusters" in by_name["250"]
    assert "platform-control-plane-smoke" in by_name["399"]


@pytest.fixture(scope="module")
def events() -> list[EventFields]:
    ran = tidegate("sync", LADDER, "--sandbox", *FIRST_DAY, "--offline", "-o", "json")
    assert ran.returncode == 0, ran.stderr
    return read_events(ran.stdout)


def test_no_phase_starts_before_the_previous_one_is_healthy(events: list[EventFields]) -> None:
    shown = json.loads(tidegate("units", LADDER, "--offline", "-o", "json").stdout)["units"]
    steps = {item["name"]: item["step"] for item in shown if item["set"]}

    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    for name, event in writes(events):
        begins.setdefault(steps.get(name, 0), event.at)
    for event in events:
        if event.event == "step.passed" and event.unit:
            ends[steps.get(name_of(event), 0)] = event.at
    del begins[0]  # the root

    assert len(begins) == 38
    for early in begins:
        assert all(ends[early] <= begins[later] for later in begins if later > early)


def test_a_component_is_more_than_its_settings(events: list[EventFields]) -> None:
    kinds: dict[str, set[str]] = {}
    for name, write in writes(events):
        kinds.setdefault(name, set()).add(write.kind)

    assert [name for name, item in kinds.items() if item <= {"ConfigMap"}] == ["root"]


def test_lint_has_no_findings_of_rules() -> None:
    ran = tidegate("lint", LADDER, "--offline", "-o", "json")

    codes = [finding["code"] for finding in json.loads(ran.stdout)["findings"]]
    assert (ran.returncode, [code for code in codes if code.startswith("ORD")]) == (0, [])


MOVES = {
    "vault before its storage": {
        "foundation/foundation-vault-core": ("130", "ORD006", "StorageClass `managed`"),
    },
    "the store before vault": {
        "foundation/foundation-vault-secret-store": ("130", "ORD042", "Service `vault/vault`"),
    },
    "certificates before who makes them": {
        "foundation/foundation-vault-webhook-certs": ("110", "ORD008", "Certificate `vault/vault"),
        "data-extended/data-temporal-operator": ("110", "ORD008", "Issuer `temporal/temporal-op"),
    },
    "bootstraps before their runtimes": {
        "data-extended/data-temporal-namespace-bootstrap": ("440", "ORD003", "TemporalCluster"),
        "platform/platform-keycloak-realm": ("340", "ORD003", "Keycloak `keycloak/keycloak`"),
    },
}


@pytest.mark.parametrize("moves", MOVES.values(), ids=MOVES)
def test_the_defects_that_the_phases_fix_are_found_without_them(
    tmp_path: Path, moves: dict[str, tuple[str, str, str]]
) -> None:
    root = Path(shutil.copytree(LADDER, tmp_path / "ladder"))
    for component, (phase, _, _) in moves.items():
        file = root / COMPONENTS / component / "component.yaml"
        lines = file.read_text().splitlines()
        file.write_text("\n".join([lines[0], f'rolloutPhase: "{phase}"', *lines[2:]]) + "\n")

    ran = tidegate("lint", root, "--offline", "-o", "json")

    findings = json.loads(ran.stdout)["findings"]
    for _, code, name in moves.values():
        assert any(
            finding["code"] == code and name in message
            for finding in findings
            for message in (
                finding["message"],
                *(other["message"] for other in finding["sameCause"]),
            )
        ), name


def test_a_pull_secret_from_a_vault_of_a_later_step_is_reported(tmp_path: Path) -> None:
    root = Path(shutil.copytree(LADDER, tmp_path / "ladder"))
    file = root / "sources/foundation/foundation-ghcr-pull-secret/pull-secret.yaml"
    bootstrap, vault = (
        "{kind: SecretStore, name: bootstrap}",
        "{kind: ClusterSecretStore, name: vault}",
    )
    file.write_text(file.read_text().replace(bootstrap, vault))

    ran = tidegate("lint", root, "--offline", "-o", "json")

    assert ran.returncode == 3
    findings = json.loads(ran.stdout)["findings"]
    (deadlock,) = [item for item in findings if item["code"] == "ORD006"]
    assert "ExternalSecret `apps/ghcr-pull-secret`" in deadlock["message"]
    assert "ClusterSecretStore `vault`" in deadlock["message"]


@pytest.mark.parametrize(
    ("file", "old", "new", "cause"),
    [
        (
            "platform-auth-smoke/smoke.yaml",
            "//keycloak-service.",
            "//nobody.",
            "Service keycloak/nobody",
        ),
        (
            "platform-cert-manager-config/pki.yaml",
            "{name: envoy}",
            "{name: envoy-data-plane}",
            "certificate/envoy ",
        ),
    ],
    ids=["nobody-answers", "no-such-certificate"],
)
def test_a_failed_smoke_test_blocks_all_later_steps(
    tmp_path: Path, file: str, old: str, new: str, cause: str
) -> None:
    root = Path(shutil.copytree(LADDER, tmp_path / "ladder"))
    place = root / "sources/platform" / file
    place.write_text(place.read_text().replace(old, new))

    ran = tidegate("sync", root, "--sandbox", *FIRST_DAY, "--offline", "-o", "json")

    written = {name for name, _ in writes(read_events(ran.stdout))}
    assert ran.returncode != 0
    assert "platform-gateway" in written, ran.stderr
    assert not any(name.startswith(("observability-", "apps-")) for name in written)
    causes = causes_of(ran.stdout)
    assert any(cause in item for item in causes), causes


def test_a_definition_in_the_step_of_its_objects_is_no_definition_before_them(
    tmp_path: Path,
) -> None:
    root = Path(shutil.copytree(LADDER, tmp_path / "ladder"))
    file = root / COMPONENTS / "platform/platform-keycloak-crds/component.yaml"
    file.write_text(file.read_text().replace('"310"', '"350"'))

    ran = tidegate("lint", root, "--offline", "-o", "json")

    findings = json.loads(ran.stdout)["findings"]
    messages = [item["message"] for item in findings if item["code"] == "ORD063"]
    assert any("`keycloaks.k8s.keycloak.org`" in message for message in messages), messages


def test_a_missing_object_of_a_kind_in_the_plan_is_reported_and_not_assumed(
    tmp_path: Path,
) -> None:
    root = Path(shutil.copytree(LADDER, tmp_path / "ladder"))
    gateway = root / "sources/platform/platform-gateway/gateway.yaml"
    gateway.write_text(gateway.read_text().replace("ClassName: envoy", "ClassName: nobody"))

    args = ("--engine", "tidegate", "--offline", "-o", "json")
    ran = tidegate("simulate", root, *FIRST_DAY, *args)

    assert ran.returncode == 4, ran.stderr
    causes = causes_of(ran.stdout)
    assert any("GatewayClass nobody " in cause for cause in causes), causes

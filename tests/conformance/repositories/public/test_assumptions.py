"""Assumed and missing dependencies, also in unusual manifests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.repositories.public.test_simulation_accuracy import (
    API,
    CLUSTER_WIDE,
    ISSUED,
    WEBHOOK,
    tidegate,
)
from tests.support.recorded_wording import RecordedWording

NEEDY = """
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: shop}
spec:
  template:
    spec:
      restartPolicy: Never
      serviceAccountName: migrator
      containers: [{name: a, image: "a:1", envFrom: [{secretRef: {name: db}}]}]
"""


def test_application_specific_objects_are_not_assumed_unless_a_scenario_has_them(
    tmp_path: Path, wording: RecordedWording
) -> None:
    scenario = tmp_path / "given.yaml"
    names = "{Secret: [shop/db], ServiceAccount: [shop/migrator]}"
    scenario.write_text(f"given: {{names: {names}}}\n")

    missed = tidegate("simulate", tmp_path / "unit", NEEDY, "--until", "20m")
    given = tidegate("simulate", tmp_path / "unit", NEEDY, "--scenario", str(scenario))

    assert missed[0] == 4
    assert "  namespaces: [shop]\n" in missed[1]
    causes = [line for line in missed[1].splitlines() if "shop/db" in line or "migrator" in line]
    assert any("ServiceAccount shop/migrator " in line for line in causes)
    assert any("Secret shop/db " in line for line in causes)
    wording(causes)
    assert given[0] == 0, given[1]
    assert "given:" not in given[1]


def test_a_removed_version_of_a_built_in_kind_is_never_assumed(tmp_path: Path) -> None:
    text = "apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: web}\n"

    code, result, aside = tidegate("simulate", tmp_path, text)

    assert code == 3
    assert "given:" not in result
    assert "error[preflight.not-served]" in aside
    assert "`extensions/v1beta1 Ingress`" in aside


def test_a_sync_on_a_simulated_cluster_reports_its_assumptions(
    tmp_path: Path,
) -> None:
    code, result, aside = tidegate("sync", tmp_path, CLUSTER_WIDE, "--sandbox")

    assert code == 0, result + aside
    assert "  operators: [cert-manager, external-secrets]  # " in aside
    assert "given:" not in result


def test_the_same_is_assumed_in_every_run(tmp_path: Path) -> None:
    first, second = (
        tidegate("simulate", tmp_path, CLUSTER_WIDE + ISSUED, "-o", "json") for _ in range(2)
    )

    assert first == second
    assert json.loads(first[1].splitlines()[0])["event"] == "cluster.assumed"


@pytest.mark.parametrize(
    "text",
    [
        (
            "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: a}\n"
            "spec: {secretName: a, issuerRef: {kind: 'Cluster Issuer', name: Let's Encrypt}}\n"
        ),
        (
            "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: a}\n"
            "spec: {secretName: a, issuerRef: letsencrypt}\n"
        ),
        (
            "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a}\n"
            "spec: {parentRefs: {name: a}, rules: [1, null, {backendRefs: x}]}\n"
        ),
        (
            "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\n"
            "spec: {selector: {matchLabels: {a: b}}, volumeClaimTemplates: [{spec: 3}],"
            " template: {metadata: {labels: {a: b}}, spec: {priorityClassName: [x]}}}\n"
        ),
        "apiVersion: Ex_ample.com/v1\nkind: 'Odd Kind'\nmetadata: {name: a}\n",
        "apiVersion: example.com/V1\nkind: Boat\nmetadata: {name: a, namespace: Not_A_Name}\n",
    ],
)
def test_an_invalid_manifest_causes_no_assumption(text: str, tmp_path: Path) -> None:
    code, result, aside = tidegate("simulate", tmp_path, text, "--until", "30m")

    assert code in (0, 3, 4), result + aside
    given = result.partition("given:")[2].partition("\n\n")[0]
    assert not any(odd in given for odd in ("Encrypt", "Odd", "Not_A", "V1/"))


def test_a_version_that_is_missing_in_a_crd_is_an_error_of_the_manifest(tmp_path: Path) -> None:
    text = WEBHOOK.format(note="").partition("---")[0]
    text += "---\napiVersion: example.com/v2\nkind: Widget\nmetadata: {name: a}\n"

    code, result, _ = tidegate("simulate", tmp_path, text)

    assert code == 3
    assert "example.com/v2" not in result.partition("given:")[2].partition("\n\n")[0]


def test_an_unrecognized_operator_is_not_assumed_over_what_the_repository_creates(
    tmp_path: Path,
) -> None:
    text = API.replace("name: api}", "name: cert-manager, namespace: cert-manager}", 2) + ISSUED

    code, result, _ = tidegate("simulate", tmp_path, text)

    assert code == 0, result
    assert "operators:" not in result

"""`tidegate lint` knows the CRDs that helmfile installs before Flux runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.manifest_texts import SOURCE, kustomization
from tests.support.rule_pages import write_files
from tests.support.tidegate_runs import tidegate

RELEASE = """apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: cert-manager, namespace: flux-system}
spec: {interval: 1h, url: "oci://charts.example.com/cert-manager", ref: {tag: v1.0.0}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: cert-manager, namespace: flux-system}
spec: {interval: 1h, chartRef: {kind: OCIRepository, name: cert-manager}}
"""
ISSUER = """apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: own}
spec: {selfSigned: {}}
"""
FILES = {
    "clusters/source.yaml": SOURCE,
    "clusters/certificates.yaml": kustomization("certificates"),
    "certificates/release.yaml": RELEASE,
    "certificates/issuer.yaml": ISSUER,
}
BY_CHART = """helmDefaults:
  args: [--include-crds]
releases:
  - name: certificates
    namespace: cert-manager
    chart: oci://charts.example.com/cert-manager
"""
BY_NAME = """bases: [default.yaml]
releases:
- name: cert-manager
  chart: '{{ (readFile "release.yaml" | fromYaml).chart }}'
  needs: [kube-system/coredns]
"""
OTHER_CHART = BY_CHART.replace("charts.example.com/cert-manager", "charts.example.com/coredns")
NOT_A_HELMFILE = f"apiVersion: example.com/v1\nkind: Releases\n{BY_CHART}"


def codes(folder: Path, helmfile: str) -> set[str]:
    write_files(folder, {**FILES, "bootstrap/helmfile.d/crds.yaml": helmfile})
    ran = tidegate("lint", folder, "--offline", "-o", "json")
    return {finding["code"] for finding in json.loads(ran.stdout)["findings"]}


@pytest.mark.parametrize("helmfile", [BY_CHART, BY_NAME])
def test_a_crd_that_helmfile_installs_is_no_deadlock(tmp_path: Path, helmfile: str) -> None:
    assert "ORD008" not in codes(tmp_path, helmfile)


@pytest.mark.parametrize("helmfile", [OTHER_CHART, NOT_A_HELMFILE])
def test_a_crd_that_helmfile_does_not_install_is_a_deadlock(tmp_path: Path, helmfile: str) -> None:
    assert "ORD008" in codes(tmp_path, helmfile)

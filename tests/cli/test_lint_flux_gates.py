"""`tidegate lint` reports gates of Flux that open before an operator has written a status."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.in_process_command import run_in_process
from tests.support.manifest_texts import SOURCE, config_map, kustomization, pods
from tests.support.rule_pages import write_files

CERTIFICATE = """apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web, namespace: default}
spec:
  secretName: web-tls
  dnsNames: [web.example.com]
  issuerRef: {name: own, kind: ClusterIssuer}
"""
USER = pods("Deployment", "web", secrets=("web-tls",), inside="default")
OTHER = config_map("other", inside="default")


class Reported(NamedTuple):
    severity: str
    file: str
    paste: str


def gates(folder: Path, certs: str, web: str, *after: str) -> list[Reported]:
    files = {
        "clusters/source.yaml": SOURCE,
        "clusters/certs.yaml": certs,
        "clusters/web.yaml": kustomization("web", *after),
        "certs/certificate.yaml": CERTIFICATE,
        "web/web.yaml": web,
    }
    write_files(folder, files)
    ran = run_in_process(folder, os.environ, ("lint", "--offline", "-o", "json", "."))
    return [
        Reported(*(finding[field] for field in Reported._fields))
        for finding in json.loads(ran.stdout)["findings"]
        if finding["code"] == "ORD010"
    ]


@pytest.mark.parametrize(("web", "severity"), [(USER, "warning"), (OTHER, "note")])
def test_waiting_for_a_custom_resource_without_a_status_opens_at_once(
    web: str, severity: str, tmp_path: Path
) -> None:
    (finding,) = gates(tmp_path, kustomization("certs", wait=True), web, "certs")

    assert (finding.severity, finding.file) == (severity, "clusters/certs.yaml")


def test_the_printed_expressions_remove_the_finding(tmp_path: Path) -> None:
    certs = kustomization("certs", wait=True)
    (finding,) = gates(tmp_path, certs, USER, "certs")

    assert gates(tmp_path, certs + finding.paste.removeprefix("spec:\n"), USER, "certs") == []


def test_a_gate_that_no_unit_depends_on_is_no_finding(tmp_path: Path) -> None:
    assert gates(tmp_path, kustomization("certs", wait=True), USER) == []


def test_a_unit_that_waits_for_nothing_is_no_finding(tmp_path: Path) -> None:
    assert gates(tmp_path, kustomization("certs"), USER, "certs") == []

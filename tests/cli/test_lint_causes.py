"""`tidegate lint` reports each cause once, and only about the selected units."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.in_process_command import CommandOutput, run_in_process
from tests.support.manifest_texts import (
    SOURCE,
    WAVE,
    application,
    config_map,
    kustomization,
    notes,
    pods,
)
from tests.support.rule_pages import write_files

ISSUER = """apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {{name: {name}}}
spec: {{selfSigned: {{}}}}
"""
RELEASE = """apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: jetstack, namespace: flux-system}
spec: {interval: 1h, url: https://charts.jetstack.io}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: cert-manager, namespace: flux-system}
spec:
  interval: 10m
  chart:
    spec: {chart: cert-manager, version: 1.x, sourceRef: {kind: HelmRepository, name: jetstack}}
"""
NUMBER = f"""apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: web
  namespace: argocd
  annotations:
    {WAVE}: 1
"""


class Reported(NamedTuple):
    code: str
    severity: str
    location: str | None
    sameCause: list[dict[str, str]]  # noqa: N815 - the name in the output


def run(folder: Path, *args: str) -> CommandOutput:
    return run_in_process(folder, os.environ, ("lint", "--offline", *args, "."))


def errors(folder: Path, *args: str) -> list[Reported]:
    findings = json.loads(run(folder, *args, "-o", "json").stdout)["findings"]
    return [
        Reported(*(finding[field] for field in Reported._fields))
        for finding in findings
        if finding["severity"] == "error"
    ]


def waiting(name: str) -> str:
    return pods("Deployment", name, notes(1), maps=("late",))


def test_objects_that_wait_for_one_late_object_are_one_finding(tmp_path: Path) -> None:
    files = {f"shop/{at}.yaml": waiting(f"web-{at}") for at in range(6)}
    files |= {"app.yaml": application(), "shop/late.yaml": config_map("late", notes(4))}
    write_files(tmp_path, files)

    (finding,) = errors(tmp_path)
    shown = run(tmp_path).stdout.splitlines()[2]

    assert (finding.code, len(finding.sameCause)) == ("ORD006", 5)
    assert finding.sameCause[-1]["location"].startswith("shop/5.yaml:")
    assert "shop/1.yaml:" in shown
    assert "shop/2.yaml:" in shown
    assert "3 more" in shown
    assert "shop/3.yaml" not in shown


def test_an_operator_in_the_kustomization_of_its_resources_is_one_finding(tmp_path: Path) -> None:
    issuers = (ISSUER.format(name=name) for name in ("one", "two", "three"))
    files = {
        "clusters/units.yaml": f"{SOURCE}---\n{kustomization('certs')}",
        "certs/release.yaml": RELEASE,
        "certs/issuers.yaml": "---\n".join(issuers),
    }
    write_files(tmp_path, files)

    (finding,) = errors(tmp_path)

    assert (finding.code, len(finding.sameCause)) == ("ORD008", 2)


def test_a_missing_file_of_a_kustomization_is_one_finding(tmp_path: Path) -> None:
    files = {"app.yaml": application(), "shop/kustomization.yaml": "resources: [gone.yaml]\n"}
    write_files(tmp_path, files)

    assert [finding.code for finding in errors(tmp_path)] == ["ORD049"]


def test_a_wave_that_is_a_number_is_one_finding(tmp_path: Path) -> None:
    spec = application("web", "web").partition("\nspec:")[2]
    files = {
        "root.yaml": application("root", "apps"),
        "apps/web.yaml": f"{NUMBER}spec:{spec}",
        "web/settings.yaml": config_map("settings"),
    }
    write_files(tmp_path, files)

    assert [finding.code for finding in errors(tmp_path)] == ["ORD013"]


def test_a_file_that_several_units_render_has_one_finding(tmp_path: Path) -> None:
    """The same base in three overlays: its mistake is in one line."""
    overlay = "namePrefix: {name}-\nresources: [../base]\n"
    base = waiting("web").replace("app: web}}", "app: web}, bogus: 1}")
    files = {
        "base/kustomization.yaml": "resources: [web.yaml, late.yaml]\n",
        "base/web.yaml": base,
        "base/late.yaml": config_map("late", notes(0)),
    }
    for name in ("one", "two", "three"):
        files[f"apps/{name}.yaml"] = application(name, name)
        files[f"{name}/kustomization.yaml"] = overlay.format(name=name)
    write_files(tmp_path, files)

    ran = json.loads(run(tmp_path, "-o", "json").stdout)

    locations = [finding["location"] for finding in ran["findings"] if finding["location"]]
    assert len(locations) == len({*locations})


@pytest.fixture
def two_units(tmp_path: Path) -> Path:
    """A repository in which everything but the Application `fine` is wrong."""
    files = {
        "apps/all.yaml": f"{application('fine', 'fine')}---\n{application('bad', 'bad')}",
        "apps/gone.yaml": application("gone", "gone"),
        "fine/settings.yaml": config_map("settings"),
        "bad/web.yaml": waiting("web"),
        "bad/late.yaml": config_map("late", notes(4)),
        "other/kustomization.yaml": "resources: [gone.yaml]\n",
    }
    return write_files(tmp_path, files)


@pytest.mark.parametrize(
    ("unit", "codes"),
    [("fine", []), ("bad", ["ORD006"]), ("gone", ["source.path"])],
)
def test_a_selected_unit_has_its_own_findings_only(
    unit: str, codes: list[str], two_units: Path
) -> None:
    ran = run(two_units, "--unit", unit)

    assert [finding.code for finding in errors(two_units, "--unit", unit)] == codes
    assert bool(ran.code) is bool(codes)
    assert "other/" not in ran.stdout


def test_a_selected_root_has_its_own_findings_only(tmp_path: Path) -> None:
    files = {
        "one/root.yaml": application("one", "first"),
        "two/root.yaml": application("two", "second"),
        "first/kustomization.yaml": "resources: [gone.yaml]\n",
        "second/settings.yaml": config_map("settings"),
    }
    write_files(tmp_path, files)

    assert [finding.code for finding in errors(tmp_path, "--root", "one")] == ["ORD049"]
    assert errors(tmp_path, "--root", "two") == []


def test_kustomizations_that_are_read_as_manifests_are_one_finding(tmp_path: Path) -> None:
    recursive = application().replace("path: shop,", "path: shop, directory: {recurse: true},")
    files = {"app.yaml": recursive}
    for name in ("one", "two"):
        files[f"shop/{name}/kustomization.yaml"] = (
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
            "resources: [settings.yaml]\n"
        )
        files[f"shop/{name}/settings.yaml"] = config_map(name)
    write_files(tmp_path, files)

    (finding,) = errors(tmp_path)

    assert (finding.code, len(finding.sameCause)) == ("dialect.incomplete", 1)
    assert "directory.exclude" in run(tmp_path).stdout

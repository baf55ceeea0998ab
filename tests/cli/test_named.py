"""Flux units by name: `reconcile`, `build`, `diff`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import ROOT, config_map, tidegate, write_unit

PLATFORM = ROOT / "examples" / "platform"


@pytest.mark.parametrize("noun", ["kustomization", "ks", "kustomizations"])
def test_one_application_can_be_synced_alone(noun: str) -> None:
    ran = tidegate("flux", "reconcile", noun, "metrics", "-C", PLATFORM, "--sandbox", "--offline")

    assert ran.returncode == 0, ran.stderr
    assert "Deployment metrics/collector" in ran.stdout
    assert "Namespace shop" not in ran.stdout


def test_several_applications_are_synced_in_dependency_order() -> None:
    ran = tidegate("flux", "reconcile", "ks", "--all", "-C", PLATFORM, "--sandbox", "--offline")

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.index("Namespace metrics") < ran.stdout.index("Deployment metrics/collector")


def test_one_unit_can_be_rendered_and_compared(wording: RecordedWording) -> None:
    args = ("ks", "infrastructure", "-C", PLATFORM, "--offline")
    built, differs = (
        tidegate("flux", "build", *args, "-o", "names"),
        tidegate("flux", "diff", *args),
    )

    assert built.stdout.splitlines() == ["v1 Namespace metrics", "v1 ResourceQuota metrics/small"]
    wording(differs.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "args",
    [
        ("flux", "reconcile", "hr", "--all"),
        ("flux", "reconcile", "ks", "-l", "no=such"),
        ("argocd", "app", "sync", "-l", "no=such"),
        ("argocd", "app", "delete", "-l", "no=such"),
        ("argocd", "app", "diff", "-l", "no=such"),
    ],
    ids=" ".join,
)
def test_a_selection_of_no_unit_is_not_all_units(
    wording: RecordedWording, args: tuple[str, ...]
) -> None:
    sandbox = () if "diff" in args else ("--sandbox",)

    ran = tidegate(*args, "-C", PLATFORM, "--offline", *sandbox)

    assert (ran.returncode, ran.stdout) == (2, "")
    wording(ran.stderr)


def test_an_ambiguous_unit_name_is_an_error(tmp_path: Path) -> None:
    config = config_map("web")
    app = (
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\n"
        "metadata: {{name: web, namespace: {0}}}\n"
        "spec: {{project: default, source: {{path: {0}, repoURL: https://git.example.com/a.git}},"
        " destination: {{server: https://kubernetes.default.svc, namespace: {0}}}}}\n"
    )
    for team in ("red", "blue"):
        write_unit(tmp_path / team, settings=config)
        write_unit(tmp_path / "apps", **{team: app.format(team)})

    both = tidegate("argocd", "app", "manifests", "web", "-C", tmp_path, "--offline")
    result = tidegate("argocd", "app", "manifests", "red/web", "-C", tmp_path, "--offline")

    assert both.returncode == 2
    assert any(
        "error[usage.unit]" in line
        and "`web`" in line
        and "Application/blue/web" in line
        and "Application/red/web" in line
        for line in both.stderr.splitlines()
    )
    assert result.returncode == 0, result.stderr


def test_unknown_and_missing_names_are_errors(wording: RecordedWording) -> None:
    unknown = tidegate("flux", "reconcile", "ks", "metric", "-C", PLATFORM, "--sandbox")
    unnamed = tidegate("flux", "reconcile", "hr", "-C", PLATFORM, "--sandbox")

    assert (unknown.returncode, unnamed.returncode) == (2, 2)
    assert "`metrics`" in unknown.stderr
    wording(unnamed.stderr.splitlines()[-1])

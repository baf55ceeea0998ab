"""Units of Flux that are called by name: `reconcile`, `build`, `diff`."""

from __future__ import annotations

import pytest

from tests.fakes.tidegate_runs import ROOT, tidegate

PLATFORM = ROOT / "examples" / "platform"


@pytest.mark.parametrize("noun", ["kustomization", "ks", "kustomizations"])
def test_one_is_rolled_out_alone(noun: str) -> None:
    ran = tidegate("reconcile", noun, "metrics", "-C", PLATFORM, "--sandbox", "--offline")

    assert ran.returncode == 0, ran.stderr
    assert "Deployment metrics/collector" in ran.stdout
    assert "Namespace shop" not in ran.stdout


def test_several_go_in_the_order_of_their_dependencies() -> None:
    ran = tidegate("reconcile", "ks", "--all", "-C", PLATFORM, "--sandbox", "--offline")

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.index("Namespace metrics") < ran.stdout.index("Deployment metrics/collector")


def test_what_one_comes_to_and_would_change() -> None:
    words = ("ks", "infrastructure", "-C", PLATFORM, "--offline")
    built, differs = tidegate("build", *words, "-o", "names"), tidegate("diff", *words)

    assert built.stdout.splitlines() == ["v1 Namespace metrics", "v1 ResourceQuota metrics/small"]
    assert differs.stdout.splitlines()[-1] == "2 to create"


def test_who_is_not_there_and_who_is_not_named_at_all() -> None:
    unknown = tidegate("reconcile", "ks", "metric", "-C", PLATFORM, "--sandbox")
    nobody = tidegate("reconcile", "hr", "-C", PLATFORM, "--sandbox")

    assert (unknown.returncode, nobody.returncode) == (2, 2)
    assert "did you mean `metrics`?" in unknown.stderr
    assert "give names, or -l SELECTOR, or --all" in nobody.stderr

"""Repositories in the shapes that many people have: nothing is called an error that is none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.in_process_lint import lint_at
from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import ROOT
from tidegate.linting.run import LintOptions
from tidegate.model.finding import Severity

SHAPES = ROOT / "tests" / "data" / "lint" / "shapes"
WARNINGS: dict[str, set[str]] = {"app-of-apps": {"ORD011"}, "homelab": set(), "ingress": set()}
ASSUMED = {"app-of-apps": 1, "homelab": 2, "ingress": 0}


@pytest.mark.parametrize("name", sorted(path.name for path in SHAPES.iterdir()))
async def test_a_correct_repository_has_no_errors(
    name: str, tmp_path: Path, wording: RecordedWording
) -> None:
    folder = Path(shutil.copytree(SHAPES / name, tmp_path / name))
    report = await lint_at(folder, LintOptions(empty_cluster=True))

    by_name = {finding.severity: finding for finding in report.findings}
    assert Severity.ERROR not in by_name, by_name[Severity.ERROR].message
    warned = {finding.code for finding in report.findings if finding.severity is Severity.WARNING}
    assert warned == WARNINGS[name]
    assumed = [item.name for item in report.assumed or ()]
    assert len(assumed) == ASSUMED[name]
    wording(assumed)

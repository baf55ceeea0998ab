"""Each broken repository: lint reports its mistake, and the edit of its tutorial fixes it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.in_process_lint import lint_at
from tests.support.tidegate_runs import ROOT
from tidegate.clusters.sandboxes import SimulationConfig
from tidegate.clusters.session import ClusterTargets
from tidegate.model.finding import Severity
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.model.times import HOUR, Ms
from tidegate.simulation.run import SimulationOptions, simulate
from tidegate.workspace.rendering.context import user_render_settings
from tidegate.workspace.request import LoadRequest

TUTORIALS = sorted(
    page for page in (ROOT / "docs" / "tutorials").glob("*.md") if page.name != "README.md"
)
BROKEN = ROOT / "examples" / "broken"
EDIT = re.compile(r"In `([^`]+)`:\n\n```diff\n(.*?)```", re.DOTALL)
RULE = re.compile(r"\[(ORD\d+)\]\(\.\./rules/")


def apply_fix(page: Path, folder: Path) -> None:
    """Apply the edit of the tutorial."""
    file, diff = EDIT.findall(page.read_text())[0]
    lines = diff.splitlines()
    old = "".join(f"{line[1:]}\n" for line in lines if line.startswith("-"))
    new = "".join(f"{line[1:]}\n" for line in lines if line.startswith("+"))
    text = (folder / file).read_text()
    assert text.count(old) == 1
    (folder / file).write_text(text.replace(old, new))


def rule_of(page: Path) -> str:
    return str(RULE.findall(page.read_text())[0])


def scenario_in(folder: Path) -> Path | None:
    """The scenario of the repository, if it has one."""
    return next(folder.glob("given.yaml"), None)


def test_every_broken_repository_has_its_tutorial() -> None:
    assert {page.stem for page in TUTORIALS} == {
        path.name for path in BROKEN.iterdir() if path.is_dir()
    }


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
async def test_lint_reports_the_mistake_and_one_edit_fixes_it(page: Path, tmp_path: Path) -> None:
    code = rule_of(page)
    folder = Path(shutil.copytree(BROKEN / page.stem, tmp_path / page.stem))

    before = await lint_at(folder)
    apply_fix(page, folder)
    after = await lint_at(folder)

    assert code in {finding.code for finding in before.findings}
    left = {finding.code for finding in after.findings if finding.severity is not Severity.NOTE}
    assert left == set()


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
async def test_a_fixed_repository_passes_a_simulation(page: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(BROKEN / page.stem, tmp_path / page.stem))
    apply_fix(page, folder)
    target = ClusterTargets(simulation=SimulationConfig(scenario=scenario_in(folder)))

    (run,) = await simulate(
        LoadRequest(path_or_url=str(folder)),
        [None],
        target,
        user_render_settings(offline=True, maps=()),
        SimulationOptions(until=Ms(2 * HOUR), empty_cluster=True),
    )

    assert run.result is RolloutOutcome.PASSED

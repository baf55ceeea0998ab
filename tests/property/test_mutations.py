"""Small mistakes in repositories that work: lint finds each that the simulator suffers from.

What the simulator does not notice is no error either.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.property.test_lint import EXAMPLES, ends
from tests.support.in_process_lint import lint_at
from tests.support.mutations import mutants_of
from tests.support.random_repositories import sound_repository
from tests.support.rule_pages import write_files
from tests.support.tidegate_runs import ROOT
from tidegate.linting.run import LintOptions
from tidegate.model.finding import Severity

CLEAN = ("first", "migration", "platform")
"""Examples that pass on an empty cluster."""
MOST = 5
"""The number of tested mutants of one repository, drawn at random."""
DRAWS = max(2, EXAMPLES // 50)

Remark = tuple[str, str, Severity | None]


def texts_of(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*.yaml")))
    return {str(file.relative_to(folder)): file.read_text() for file in files}


async def remarks_on(folder: Path) -> set[Remark]:
    """Errors and warnings of lint, and its silent assumptions."""
    report = await lint_at(folder, LintOptions(empty_cluster=True))
    messages: set[Remark] = {
        (finding.code, finding.message, finding.severity)
        for finding in report.findings
        if finding.severity is not Severity.NOTE
    }
    return messages | {("assumed", item.name, None) for item in report.assumed or ()}


async def check(files: dict[str, str], folder: Path, dice: random.Random) -> None:
    whole = write_files(folder / "whole", files)
    before = await remarks_on(whole)
    assert await ends(whole)

    mutants = [*mutants_of(files)]
    for at, mutant in enumerate(dice.sample(mutants, min(MOST, len(mutants)))):
        changed = write_files(folder / f"{at}", mutant.files)
        new = await remarks_on(changed) - before
        errors = [item for item in new if item[2] is Severity.ERROR]
        if await ends(changed):
            assert not errors, (mutant.change, errors)
        else:
            assert new, mutant.change


@pytest.mark.parametrize("draw", range(DRAWS))
@pytest.mark.parametrize("name", CLEAN)
async def test_mistakes_in_an_example_are_found(name: str, draw: int, tmp_path: Path) -> None:
    await check(texts_of(ROOT / "examples" / name), tmp_path, random.Random(draw))


@pytest.mark.parametrize("seed", range(DRAWS))
async def test_mistakes_in_a_random_repository_are_found(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    await check(sound_repository(dice).files(), tmp_path, dice)

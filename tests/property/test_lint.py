"""What lint calls a deadlock hangs on a simulated cluster; what it calls clean completes there."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.support.in_process_lint import lint_at
from tests.support.manifest_texts import (
    SOURCE,
    application,
    config_map,
    kustomization,
    notes,
    pods,
    service,
)
from tests.support.random_repositories import broken_repository, loose_repository, sound_repository
from tests.support.rule_pages import write_files
from tidegate.clusters.sandboxes import SimulationConfig
from tidegate.clusters.session import ClusterTargets
from tidegate.linting.run import LintOptions
from tidegate.model.finding import Severity
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.model.times import MINUTE, Ms
from tidegate.model.views.lint import LintReport
from tidegate.simulation.run import SimulationOptions, simulate
from tidegate.workspace.rendering.context import user_render_settings
from tidegate.workspace.request import LoadRequest

EXAMPLES = int(os.environ.get("TIDEGATE_EXAMPLES", "24"))
PHASES = ("PreSync", "", "", "", "", "PostSync")


def argo_repo(dice: random.Random) -> dict[str, str]:
    """One Application: settings, servers and tasks that need each other, in waves as they fall."""
    files = {"app.yaml": application()}

    def template(*, hooks: bool = True) -> str:
        hook = dice.choice(PHASES) if hooks and dice.random() < 0.3 else ""
        return notes(dice.randint(-1, 3), hook)

    maps = [f"map-{number}" for number in range(dice.randint(1, 3))]
    servers = [f"server-{number}" for number in range(dice.randint(1, 2))]
    for name in maps:
        files[f"shop/{name}.yaml"] = config_map(name, template())
    for name in servers:
        # A simulated pod takes a host that is no Service yet for one outside.
        first = service(name, notes(-1))
        server = pods("Deployment", name, template(hooks=False), maps=some(dice, maps))
        files[f"shop/{name}.yaml"] = f"{first}---\n{server}"
    for number in range(dice.randint(1, 2)):
        kind = dice.choice(("Job", "Deployment"))
        note = template(hooks=kind == "Job")
        waits = some(dice, servers, 0.3) if "PreSync" not in note else ()
        text = pods(kind, f"task-{number}", note, maps=some(dice, maps), waits=waits)
        files[f"shop/task-{number}.yaml"] = text
    return files


def flux_repo(dice: random.Random) -> dict[str, str]:
    """Kustomizations that depend on each other as they fall; now and then in a circle."""
    names = [f"unit-{number}" for number in range(dice.randint(2, 4))]
    files = {"clusters/source.yaml": SOURCE}
    for at, name in enumerate(names):
        before = names[:at] if dice.random() < 0.9 else [item for item in names if item != name]
        after = some(dice, before, 0.5)
        files[f"clusters/{name}.yaml"] = kustomization(name, *after, wait=dice.random() < 0.6)
        settings = f"map-{name}"
        files[f"{name}/settings.yaml"] = config_map(settings, inside="default")
    for name in names:
        others = [f"map-{name}" for name in names]
        web = pods("Deployment", f"web-{name}", maps=some(dice, others, 0.4), inside="default")
        files[f"{name}/web.yaml"] = web
    return files


def some(dice: random.Random, names: list[str], share: float = 0.5) -> tuple[str, ...]:
    return tuple(name for name in names if dice.random() < share)


DEADLOCK_CODES = frozenset(("ORD004", "ORD005", "ORD006", "ORD008", "ORD042"))


async def ends(folder: Path) -> bool:
    """Whether a rollout with the native semantics passes."""
    target = ClusterTargets(simulation=SimulationConfig())
    setting = user_render_settings(offline=True, maps=())
    try:
        runs = await simulate(
            LoadRequest(path_or_url=str(folder)),
            [None],
            target,
            setting,
            SimulationOptions(until=Ms(40 * MINUTE), empty_cluster=True),
        )
    except Exception:  # noqa: BLE001 - what cannot be put in order does not end either
        return False
    return all(run.result is RolloutOutcome.PASSED for run in runs)


def errors_in(report: LintReport) -> list[str]:
    matches = [finding for finding in report.findings if finding.severity is Severity.ERROR]
    return [f"{item.code} {item.message}" for item in matches]


@pytest.mark.parametrize("seed", range(EXAMPLES))
async def test_deadlocks_hang_and_what_is_clean_completes(seed: int, tmp_path: Path) -> None:
    """Every fourth repository cannot work, and all others can."""
    dice, is_broken = random.Random(seed), seed % 4 == 0
    files = (broken_repository if is_broken else sound_repository)(dice).files()
    folder = write_files(tmp_path, files)

    report = await lint_at(folder, LintOptions(empty_cluster=True))

    assert bool(errors_in(report)) is is_broken, (errors_in(report), files)
    assert report.assumed == (), files
    assert await ends(folder) is not is_broken, files


@pytest.mark.parametrize("seed", range(EXAMPLES // 4))
async def test_the_same_holds_for_every_distribution(seed: int, tmp_path: Path) -> None:
    """A deadlock that depends on timing is a warning, and says no more."""
    dice = random.Random(seed)
    files = (flux_repo, argo_repo, lambda dice: loose_repository(dice).files())[seed % 3](dice)
    folder = write_files(tmp_path, files)

    report = await lint_at(folder)

    errors = errors_in(report)
    warnings = [item.code for item in report.findings if item.severity is Severity.WARNING]
    depends_on_timing = not errors and not DEADLOCK_CODES.isdisjoint(warnings)
    assert depends_on_timing or await ends(folder) is not bool(errors), (errors, files)

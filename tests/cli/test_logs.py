"""`--logs`: the logs of hooks and Jobs are printed while they run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.test_causes import events_of
from tests.cli.test_screen_run import text_of
from tests.support.failing_hook import HOOK, LOGIN
from tests.support.failing_migration import MIGRATION
from tests.support.in_process_command import CommandOutput, run_in_process
from tests.support.tidegate_command import Tidegate
from tests.support.tidegate_runs import config_map, write_unit
from tidegate.clusters.sandboxes import KUBECONFIG, SimulationConfig, build_sandbox
from tidegate.model.rollouts.event import EventType
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import SECOND, Ms
from tidegate.report.rollout.live import ViewOptions, view_rows
from tidegate.simulation.server import serve_world

PRINTS = """\
behaviours:
- effect: prints
  lines: [applying 001, "user hunter2-hunter2 is there", "\\e[2Jdone"]
  when: {kind: Job}
- {effect: slow, by: 20s, when: {kind: Job}}
"""


def synced(folder: Path, job: str, *args: str, scenario: str = PRINTS) -> CommandOutput:
    unit = write_unit(folder / "shop", job=job, login=LOGIN)
    played = folder / "scenario.yaml"
    played.write_text(scenario)
    more = ("--sandbox", "--scenario", str(played), *args)
    return run_in_process(folder, os.environ, ("sync", str(unit), *more))


@pytest.mark.parametrize("job", [MIGRATION, HOOK], ids=["job", "hook"])
def test_lines_are_printed_while_the_job_runs(job: str, tmp_path: Path) -> None:
    ran = synced(tmp_path, job, "--logs")

    messages = [line[line.index("Job ") :] for line in ran.stdout.splitlines() if " | " in line]
    assert messages == [
        "Job default/migrate | applying 001",
        "Job default/migrate | user *** is there",
        r"Job default/migrate | \x1b[2Jdone",
    ], ran.stdout
    assert ran.code == 0
    events = events_of(synced(tmp_path, job, "--logs", "-o", "json"))
    first = next(place for place, event in enumerate(events) if event.type is EventType.LOG_LINE)
    passed = {event.step for event in events[:first] if event.type is EventType.STEP_PASSED}
    assert events[first].step
    assert events[first].step not in passed


def test_without_the_option_no_logs_are_read(tmp_path: Path) -> None:
    assert "applying 001" not in synced(tmp_path, MIGRATION).stdout


def test_json_output_has_each_line_once_with_its_pod(tmp_path: Path) -> None:
    events = events_of(synced(tmp_path, MIGRATION, "--logs", "-o", "json"))

    printed = [event for event in events if event.type is EventType.LOG_LINE]
    assert [event.message for event in printed][:1] == ["applying 001"]
    assert len(printed) == 3
    assert all(event.reason.endswith("/migrate") for event in printed)
    assert events[-1].type is EventType.ROLLOUT_FINISHED


def test_the_logs_of_each_attempt_of_a_job_are_complete(tmp_path: Path) -> None:
    failing = """\
behaviours:
- {effect: prints, lines: [no such table], when: {kind: Job}}
- {effect: fails, times: 2, when: {kind: Job}}
"""
    ran = synced(tmp_path, MIGRATION, "--logs", scenario=failing)

    assert ran.stdout.count("Job default/migrate | no such table") == 3, ran.stdout


def test_the_live_view_shows_the_last_lines_below_the_job(tmp_path: Path) -> None:
    events = events_of(synced(tmp_path, MIGRATION, "--logs", "-o", "json"))
    progress, waits = RolloutProgress(events[0].at), Ms(events[0].at + 15 * SECOND)
    for event in events:
        if event.at <= waits:
            progress.add_event(event)

    rows = text_of(view_rows(progress, ViewOptions(width=79, height=12), waits)).splitlines()

    at = next(place for place, row in enumerate(rows) if "Job default/migrate" in row)
    assert [row.strip() for row in rows[at + 1 : at + 4]] == [
        "| applying 001",
        "| user *** is there",
        r"| \x1b[2Jdone",
    ]


@pytest.mark.parametrize("settings", [{}, {"settings": config_map("a")}], ids=["nothing", "no Job"])
def test_a_rollout_without_jobs_passes_with_the_option(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    unit = write_unit(tmp_path / "shop", **settings)
    unit.mkdir(exist_ok=True)

    ran = run_in_process(tmp_path, os.environ, ("sync", str(unit), "--sandbox", "--logs"))

    assert ran.code == 0, ran.stderr


@pytest.mark.parametrize("job", [MIGRATION, HOOK], ids=["job", "hook"])
async def test_logs_are_read_from_a_server(job: str, tmp_path: Path) -> None:
    """Through the client for real servers: a path of their API, and what it answers."""
    unit = write_unit(tmp_path / "shop", job=job, login=LOGIN)
    played = tmp_path / "scenario.yaml"
    played.write_text(PRINTS)
    async with serve_world(build_sandbox(SimulationConfig(scenario=played)), tmp_path, pace=5):
        ran = await Tidegate(tmp_path).run(
            *("sync", unit, "--logs", "--yes", "--kubeconfig", tmp_path / KUBECONFIG)
        )

    messages = [line[line.index("Job ") :] for line in ran.stdout.splitlines() if " | " in line]
    assert ran.code == 0, ran.stderr
    assert messages == [
        "Job default/migrate | applying 001",
        "Job default/migrate | user *** is there",
        r"Job default/migrate | \x1b[2Jdone",
    ]

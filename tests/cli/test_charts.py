"""The stories of the charts, as somebody types them at the repo's root."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.tidegate_runs import ROOT, tidegate

RULE = "charts/health/kinda.rocks.yaml"
MIGRATES = ("--set", "migration.enabled=true")
"""WordPress has no migration unless it is asked for one."""
FORCED = ("--set", "migration.hook=argocd", "--set", "migration.allowHookBeforeDatabase=true")
CHARTS = ("laravel", "yii2", "wordpress-bedrock")
chart = pytest.mark.parametrize("chart", CHARTS)


def simulate(chart: str, *words: str) -> CompletedProcess[str]:
    """With what the cluster has already."""
    scenario = f"charts/{chart}/given.yaml"
    return tidegate("simulate", f"charts/{chart}", "--scenario", scenario, *MIGRATES, *words)


def events_of(ran: CompletedProcess[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in ran.stdout.splitlines()]


def passed_at(ran: CompletedProcess[str], chart: str, wave: int) -> float:
    """When a wave's gate opened, in seconds from the start."""
    events = events_of(ran)
    (at,) = (
        event["at"]
        for event in events
        if (event["event"], event.get("step")) == ("step.passed", f"default/{chart}/sync/{wave}")
    )
    start = next(event["at"] for event in events if "at" in event)
    assert isinstance(at, int)
    assert isinstance(start, int)
    return (at - start) / 1_000


@chart
def test_a_chart_comes_up_wave_by_wave(chart: str) -> None:
    ran = simulate(chart)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    waves = [line.split()[1] for line in ran.stdout.splitlines() if line.startswith("wave")]
    assert waves == ["-3", "-2", "-1", "0"]
    assert "tidegate: passed after" in ran.stdout


@chart
def test_without_an_operator_it_is_told_that_the_database_has_none(chart: str) -> None:
    ran = tidegate("simulate", f"charts/{chart}", "--empty-cluster")

    assert ran.returncode == 3
    (why,) = [line.strip() for line in ran.stderr.splitlines() if "no operator for" in line]
    assert why.split(maxsplit=1)[1] == (
        "no operator for Database: no workload here is known to run one for kinda.rocks;"
        " a scenario has it with `given: {operators: [db-operator]}`"
    )


@chart
def test_the_operator_and_its_instance_are_taken_to_be_there(chart: str) -> None:
    ran = tidegate("simulate", f"charts/{chart}")

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"  operators: [db-operator]  # for Database default/{chart}" in ran.stdout
    assert "    DbInstance.kinda.rocks: [" in ran.stdout


@chart
def test_a_migration_that_would_run_before_its_database_is_refused(chart: str) -> None:
    ran = simulate(chart, "--set", "migration.hook=argocd")

    assert ran.returncode == 3
    assert ran.stdout == ""
    assert "a migration that is a hook runs before its Database is made" in ran.stderr
    assert "migration.allowHookBeforeDatabase" in ran.stderr


@chart
def test_forced_through_it_fails_as_it_used_to_and_the_secret_and_its_maker_are_named(
    chart: str,
) -> None:
    ran = simulate(chart, *FORCED, "--engine", "tidegate,argocd")

    assert ran.returncode == 4, ran.stderr
    ours, theirs = ran.stdout.split("tidegate: failed after")[1].split("argocd: failed after")
    for result in (ours, theirs):
        assert f"Job default/{chart}-migrate: Job was active longer than" in result
        assert "DeadlineExceeded" in result
        assert (
            f"Secret default/{chart}-db-credentials is not there; Database default/{chart} would"
            " make it, in wave -3, behind this step"
        ) in result


def test_a_rollout_names_them_as_well() -> None:
    scenario = ("--sandbox", "--scenario", "charts/laravel/given.yaml")

    ran = tidegate("sync", "charts/laravel", *scenario, *FORCED)

    assert ran.returncode == 4, ran.stderr
    assert (
        "Secret default/laravel-db-credentials is not there; Database default/laravel would make"
        " it, in wave -3, behind this step"
    ) in ran.stdout


@chart
def test_a_database_behind_its_migration_is_refused_with_both_waves(chart: str) -> None:
    ran = simulate(chart, "--set", "syncWaves.database=7", "--set", "syncWaves.migration=4")

    assert ran.returncode == 3
    assert ran.stdout == ""
    assert "7" in ran.stderr
    assert "4" in ran.stderr


@chart
def test_argo_cd_waits_for_the_database_only_if_it_has_the_rule(chart: str) -> None:
    engine = ("--engine", "argocd", "-o", "json")

    alone, ruled = simulate(chart, *engine), simulate(chart, *engine, "--health-rules", RULE)

    assert (alone.returncode, ruled.returncode) == (0, 0), alone.stderr + ruled.stderr
    waits = [
        [event["message"] for event in events_of(ran) if event["event"] == "gate.waiting"]
        for ran in (alone, ruled)
    ]
    sentence = "waiting for the operator to make the database"
    assert [sentence in wait for wait in waits] == [False, True]
    assert passed_at(alone, chart, -3) < 3
    assert passed_at(ruled, chart, -3) > 10


def test_that_argo_cd_does_not_wait_is_said() -> None:
    alone = simulate("laravel", "--engine", "argocd")
    ruled = simulate("laravel", "--engine", "argocd", "--health-rules", RULE)

    text = "argocd has no health check for Database default/laravel, and does not wait for it"
    assert text in alone.stdout
    assert text not in ruled.stdout


def test_that_argo_cd_does_not_wait_is_told_to_programs() -> None:
    ran = simulate("laravel", "--engine", "argocd", "-o", "json")

    *_, ending = events_of(ran)
    kind = {"apiVersion": "kinda.rocks/v1beta1", "kind": "Database"}
    assert ending["unwaited"] == [{**kind, "namespace": "default", "name": "laravel"}]


@pytest.mark.parametrize("rules", [(), ("--health-rules", RULE)])
def test_a_database_is_healthy_when_its_status_says_so(
    tmp_path: Path, rules: tuple[str, ...]
) -> None:
    head = "apiVersion: kinda.rocks/v1beta1\nkind: Database\nmetadata: {name: %s}\n"
    states = {"new": "", "late": "status: {status: false}\n", "done": "status: {status: true}\n"}
    file = tmp_path / "databases.yaml"
    file.write_text("---\n".join(head % name + status for name, status in states.items()))

    ran = tidegate("health", file, *rules, "-o", "json")

    messages = [json.loads(line) for line in ran.stdout.splitlines()]
    matches = [(item["name"], item["health"]) for item in messages]
    assert matches == [("new", "Progressing"), ("late", "Progressing"), ("done", "Healthy")]


def test_the_charts_are_those_that_are_here() -> None:
    matches = {path.parent.name for path in (ROOT / "charts").glob("*/given.yaml")}

    assert matches == set(CHARTS)

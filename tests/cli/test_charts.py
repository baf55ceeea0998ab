"""Simulations and rollouts of the example charts."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import ROOT, tidegate

RULE = "charts/health/kinda.rocks.yaml"
MIGRATES = ("--set", "migration.enabled=true")
"""WordPress has no migration by default."""
FORCED = ("--set", "migration.hook=argocd", "--set", "migration.allowHookBeforeDatabase=true")
CHARTS = ("laravel", "yii2", "wordpress-bedrock")
chart = pytest.mark.parametrize("chart", CHARTS)


def simulate(chart: str, *args: str) -> CompletedProcess[str]:
    """With what the cluster has already."""
    scenario = f"charts/{chart}/given.yaml"
    return tidegate("simulate", f"charts/{chart}", "--scenario", scenario, *MIGRATES, *args)


def line_with(part: str, output: str) -> str:
    """The only line of the output with this part."""
    (line,) = [line for line in output.splitlines() if part in line]
    return line


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
def test_a_chart_is_rolled_out_wave_by_wave(wording: RecordedWording, chart: str) -> None:
    ran = simulate(chart)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    waves = [line.split()[1] for line in ran.stdout.splitlines() if line.startswith("wave")]
    assert waves == ["-3", "-2", "-1", "0"]
    wording(ran.stdout.splitlines()[-1])


@chart
def test_a_database_without_an_operator_is_reported(wording: RecordedWording, chart: str) -> None:
    ran = tidegate("simulate", f"charts/{chart}", "--empty-cluster", "-o", "json")

    assert ran.returncode == 3
    findings = [json.loads(line) for line in ran.stderr.splitlines()]
    (reason,) = [finding["why"] for finding in findings if finding.get("why")]
    assert "`given: {operators: [db-operator]}`" in reason
    wording(reason)


@chart
def test_the_operator_and_its_instance_are_assumed(chart: str) -> None:
    ran = tidegate("simulate", f"charts/{chart}")

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"Database default/{chart}" in line_with("  operators: [db-operator]  # ", ran.stdout)
    assert "    DbInstance.kinda.rocks: [" in ran.stdout


@chart
def test_a_migration_that_would_run_before_its_database_is_refused(chart: str) -> None:
    ran = simulate(chart, "--set", "migration.hook=argocd")

    assert ran.returncode == 3
    assert ran.stdout == ""
    assert ran.stderr.startswith("error[render.helm.template]: ")
    assert "migration.allowHookBeforeDatabase" in ran.stderr


@chart
def test_forced_through_it_fails_as_it_used_to_and_the_secret_and_its_maker_are_named(
    wording: RecordedWording,
    chart: str,
) -> None:
    ran = simulate(chart, *FORCED, "--engine", "tidegate,argocd", "-o", "json")

    assert ran.returncode == 4, ran.stderr
    endings = [event for event in events_of(ran) if event["event"] == "engine.finished"]
    assert [(item["engine"], item["outcome"]) for item in endings] == [
        ("tidegate", "failed"),
        ("argocd", "failed"),
    ]
    for ending in endings:
        failures = ending["failures"]
        assert isinstance(failures, list)
        (failure,) = failures
        assert f"Job default/{chart}-migrate: Job was active longer than" in str(ending["message"])
        assert any("DeadlineExceeded" in event for event in failure["events"])
        (cause,) = [item for item in failure["why"] if item.startswith("Secret ")]
        assert f"Secret default/{chart}-db-credentials " in cause
        assert f" Database default/{chart} " in cause
        wording(cause)


def test_a_rollout_names_the_missing_secret_and_its_database(wording: RecordedWording) -> None:
    scenario = ("--sandbox", "--scenario", "charts/laravel/given.yaml")

    ran = tidegate("sync", "charts/laravel", *scenario, *FORCED)

    assert ran.returncode == 4, ran.stderr
    cause = line_with("Secret default/laravel-db-credentials ", ran.stdout)
    assert " Database default/laravel " in cause
    wording(cause)


@chart
def test_a_database_after_its_migration_is_rejected_with_both_waves(chart: str) -> None:
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
        [event["kind"] for event in events_of(ran) if event["event"] == "gate.waiting"]
        for ran in (alone, ruled)
    ]
    assert ["Database" in kinds for kinds in waits] == [False, True]
    assert passed_at(alone, chart, -3) < 3
    assert passed_at(ruled, chart, -3) > 9


def test_argo_cd_without_a_health_check_is_reported(wording: RecordedWording) -> None:
    alone = simulate("laravel", "--engine", "argocd")
    ruled = simulate("laravel", "--engine", "argocd", "--health-rules", RULE)

    wording(line_with("Database default/laravel", alone.stdout))
    assert "Database default/laravel" not in ruled.stdout


def test_argo_cd_without_a_health_check_is_reported_in_json() -> None:
    ran = simulate("laravel", "--engine", "argocd", "-o", "json")

    *_, ending = events_of(ran)
    kind = {"apiVersion": "kinda.rocks/v1beta1", "kind": "Database"}
    assert ending["notAwaited"] == [{**kind, "namespace": "default", "name": "laravel"}]


@pytest.mark.parametrize("rules", [(), ("--health-rules", RULE)])
def test_the_health_of_a_database_follows_its_status(
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


def test_the_tested_charts_are_all_charts() -> None:
    matches = {path.parent.name for path in (ROOT / "charts").glob("*/given.yaml")}

    assert matches == set(CHARTS)

"""`tidegate sync` on a simulated cluster, from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import FIRST, config_map, tidegate, write_unit

PASSWORD = "only-for-this-example"
ESCAPE = "\x1b"
WAVES = ["wave -3", "wave -2", "wave -1", "wave 0", "wave 1"]


def changes(text: str, word: str) -> list[str]:
    """The waves in the lines with this word, in order."""
    lines = (line for line in text.splitlines() if line[20:].startswith(f"{word} "))
    return [line[11:20].strip() for line in lines]


def events(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_first_example_rolls_out_wave_by_wave(wording: RecordedWording) -> None:
    ran = tidegate("sync", FIRST, "--sandbox")

    assert ran.returncode == 0, ran.stderr
    assert changes(ran.stdout, "applied") == WAVES
    assert changes(ran.stdout, "passed") == [*WAVES, "rollout"]
    lines = [line[11:].split() for line in ran.stdout.splitlines()]
    order = [words[2] for words in lines if words[0] == "wave" and words[2] != "waiting"]
    assert order == ["applied", "passed"] * len(WAVES)
    wording(line for line in ran.stdout.splitlines() if "  rollout  " in line)


def test_without_waves_the_migration_fails_and_the_summary_has_the_cause_and_the_next_command() -> (
    None
):
    ran = tidegate("sync", FIRST, "--sandbox", "--ignore-waves")

    assert ran.returncode == 4
    end = ran.stdout[ran.stdout.index("✗") :]
    assert "Job default/migrate: Job has reached the specified backoff limit" in end
    assert any("Service default/db" in line and "dial-fails" in line for line in end.splitlines())
    assert "log      dial tcp: lookup db: no endpoints" in end
    assert f"next     tidegate sync {FIRST} --sandbox\n" in end


def test_json_is_one_event_for_each_line_from_the_beginning_to_the_end() -> None:
    ran = tidegate("sync", FIRST, "--sandbox", "-o", "json")

    result = events(ran.stdout)
    assert ran.returncode == 0
    assert result[0]["event"] == "rollout.started"
    assert (result[-1]["event"], result[-1]["reason"]) == ("rollout.finished", "passed")
    assert [event["event"] for event in result].count("object.written") == 10
    moments = [event["at"] for event in result]
    assert moments == sorted(moments, key=lambda at: at if isinstance(at, int) else 0)


@pytest.mark.parametrize("more", [("-o", "json"), ("--ignore-waves",), ("--dry-run",)])
def test_no_value_of_a_secret_is_ever_shown(more: tuple[str, ...]) -> None:
    ran = tidegate("sync", FIRST, "--sandbox", *more)

    assert "shop-credentials" in ran.stdout
    assert PASSWORD not in ran.stdout + ran.stderr


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "xterm-256color"}])
def test_output_to_a_pipe_has_plain_lines(environment: dict[str, str]) -> None:
    ran = tidegate("sync", FIRST, "--sandbox", **environment)

    assert ESCAPE not in ran.stdout + ran.stderr
    assert "\r" not in ran.stdout
    assert all(line[:9].strip().endswith("s") for line in ran.stdout.splitlines())


@pytest.mark.parametrize("more", [(), ("--ignore-waves", "--seed", "7")])
def test_two_runs_have_the_same_output(more: tuple[str, ...]) -> None:
    first = tidegate("sync", FIRST, "--sandbox", *more, PYTHONHASHSEED="1")
    second = tidegate("sync", FIRST, "--sandbox", *more, PYTHONHASHSEED="2")

    assert first.stdout == second.stdout
    assert first.stdout


def test_a_chart_with_its_values_is_a_unit(tmp_path: Path) -> None:
    ran = tidegate("sync", "examples/chart", "--sandbox", "--name", "hello", HOME=str(tmp_path))

    assert ran.returncode == 0, ran.stderr
    assert any(
        "wave 0" in line and "Secret default/hello, ConfigMap default/hello" in line
        for line in ran.stdout.splitlines()
    )


def test_an_overlay_is_a_unit(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write_unit(tmp_path / "base", map=config_map(wave="2"), kustomization="resources: [map.yaml]")
    overlay = write_unit(
        tmp_path / "prod", kustomization="resources: [../base]\nnamePrefix: prod-\n"
    )

    ran = tidegate("sync", overlay, "--sandbox", HOME=str(tmp_path))

    assert ran.returncode == 0, ran.stderr
    assert any(
        "wave 2" in line and "ConfigMap default/prod-web" in line
        for line in ran.stdout.splitlines()
    )


def test_a_rollout_that_times_out_reports_what_it_applied(
    wording: RecordedWording,
) -> None:
    ran = tidegate("sync", FIRST, "--sandbox", "--timeout", "30s")

    assert ran.returncode == 8
    wording(line for line in ran.stdout.splitlines() if "  rollout  " in line or " of 10 " in line)
    assert "wave -1" not in ran.stdout


def test_a_dry_run_shows_the_plan_and_writes_nothing() -> None:
    ran = tidegate("sync", FIRST, "--sandbox", "--dry-run")

    assert ran.returncode == 0
    assert ran.stdout.splitlines()[1:] == tidegate("plan", FIRST).stdout.splitlines()[1:]
    assert "rollout" not in ran.stdout


def test_waves_that_are_ignored_are_one_wave(
    tmp_path: Path,
) -> None:
    unit = write_unit(
        tmp_path / "unit", later=config_map("late", wave="5"), soon=config_map("soon")
    )

    waves = tidegate("sync", unit, "--sandbox").stdout
    at_once = tidegate("sync", unit, "--sandbox", "--ignore-waves").stdout

    assert changes(waves, "applied") == ["wave 0", "wave 5"]
    assert changes(at_once, "applied") == ["wave 0"]


def test_objects_after_a_failure_are_listed_as_not_applied(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("behaviours:\n- effect: fails\n  when: {kind: Job, name: migrate}\n")

    ran = tidegate("sync", FIRST, "--sandbox", "--scenario", scenario)

    assert ran.returncode == 4, ran.stdout + ran.stderr
    assert changes(ran.stdout, "applied") == WAVES[:3]
    assert any(
        "wave 0:" in line and "Service default/shop, Deployment default/shop" in line
        for line in ran.stdout.splitlines()
    )
    assert "wave 1: Ingress default/shop" in ran.stdout


def test_a_dry_run_as_json_is_the_document_of_the_plan(wording: RecordedWording) -> None:
    dry = tidegate("sync", FIRST, "--sandbox", "--dry-run", "-o", "json")
    planned = tidegate("plan", FIRST, "-o", "json")

    shown, document = json.loads(dry.stdout), json.loads(planned.stdout)
    assert dry.returncode == 0
    wording((*shown.pop("target"), *document.pop("target")))
    assert shown == document


@pytest.mark.parametrize(
    "args",
    [
        ("--scenario", "examples/first/app.yaml"),
        ("--speed", "20"),
        ("--seed", "1"),
        ("--sandbox", "--context", "prod"),
        ("--sandbox", "--cluster", "east=prod-east"),
        ("--sandbox", "--speed", "-1"),
    ],
    ids=" ".join,
)
def test_options_of_real_and_simulated_clusters_cannot_be_combined(
    wording: RecordedWording, args: tuple[str, ...]
) -> None:
    ran = tidegate("sync", FIRST, *args)

    assert (ran.returncode, ran.stdout) == (2, "")
    wording(ran.stderr.splitlines()[-1])

"""`sync --record`: the file has the events of the rollout, and errors of it stop no rollout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.in_process_cli import type_in
from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import FIRST, config_map, write_unit

SECRET = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: shown}\n"
    "stringData: {password: specified backoff}\n"
)
"""A Secret whose value appears in the message of a failed Job."""
JOB = (
    "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: opens\n"
    '  annotations: {argocd.argoproj.io/sync-wave: "1"}\n'
    "spec:\n  backoffLimit: 0\n  template:\n    spec:\n      restartPolicy: Never\n"
    "      containers: [{name: main, image: opens, command: [open]}]\n"
)
FAILS = """behaviours:
- {effect: fails, when: {kind: Job, name: opens}}
"""


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_record_is_a_head_and_the_events_as_they_are_printed(tmp_path: Path) -> None:
    record = tmp_path / "run.jsonl"

    ran = type_in("sync", FIRST, "--sandbox", "-o", "json", "--record", record)

    assert ran.code == 0, ran.stderr
    head, *events = record.read_text().splitlines()
    assert events == ran.stdout.splitlines()
    document = json.loads(head)
    assert (document["kind"], document["version"], document["simulated"]) == (
        "TidegateRun",
        2,
        True,
    )
    assert [step["id"] for step in document["steps"]] == [
        f"default/first/sync/{wave}" for wave in (-3, -2, -1, 0, 1)
    ]
    assert [(edge["before"], edge["after"]) for edge in document["edges"]] == [
        (f"default/first/sync/{wave}", f"default/first/sync/{wave + 1}") for wave in (-3, -2, -1, 0)
    ]


def test_units_are_in_a_record_with_their_waves(tmp_path: Path) -> None:
    record = tmp_path / "run.jsonl"

    type_in("sync", "examples/platform", "--sandbox", "--offline", "--record", record)

    waves = {unit["name"]: unit.get("wave") for unit in lines_of(record)[0]["units"]}  # type: ignore[attr-defined]
    assert (waves["database"], waves["shop"]) == (0, 1)


def test_an_older_record_is_replaced_only_when_the_rollout_starts(tmp_path: Path) -> None:
    record, unit = tmp_path / "run.jsonl", write_unit(tmp_path / "unit", web=config_map())
    type_in("sync", unit, "--sandbox", "--record", record)
    first = record.read_text()

    refused = type_in("sync", tmp_path / "nowhere", "--sandbox", "--record", record)
    unchanged = record.read_text()
    type_in("sync", unit, "--sandbox", "--record", record)

    assert refused.code != 0
    assert unchanged == first == record.read_text()


@pytest.mark.parametrize("args", [("--sandbox",), ("--sandbox", "--dry-run")], ids=" ".join)
def test_nothing_is_left_of_a_record_of_nothing(tmp_path: Path, args: tuple[str, ...]) -> None:
    record = tmp_path / "run.jsonl"
    unit = write_unit(tmp_path / "unit", web="apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n")

    type_in("sync", unit, *args, "--record", record)

    assert not record.exists()


def test_a_file_that_cannot_be_written_is_reported_before_anything_is_read(
    wording: RecordedWording, tmp_path: Path
) -> None:
    nowhere = type_in("sync", FIRST, "--sandbox", "--record", tmp_path / "no" / "run.jsonl")
    notes = tmp_path / "notes.txt"
    notes.write_text("mine\n")
    other_file = type_in("sync", FIRST, "--sandbox", "--record", notes)

    assert (nowhere.code, other_file.code) == (3, 3)
    assert nowhere.stdout == other_file.stdout == ""
    assert any(
        "error[file.record]" in line and "No such file or directory" in line
        for line in nowhere.stderr.splitlines()
    )
    wording(line for line in other_file.stderr.splitlines() if "error[file.record]" in line)
    assert notes.read_text() == "mine\n"


def test_a_full_disk_stops_no_rollout_and_is_reported_after_it(wording: RecordedWording) -> None:
    ran = type_in("sync", FIRST, "--sandbox", "--record", "/dev/full")

    assert ran.code == 7
    wording(line for line in ran.stdout.splitlines() if "  rollout  " in line)
    assert any(
        "error[output.record]" in line and "No space left on device" in line
        for line in ran.stderr.splitlines()
    )


def test_a_rollout_that_fails_is_in_it_with_why_and_without_secrets(tmp_path: Path) -> None:
    record = tmp_path / "run.jsonl"
    unit = write_unit(tmp_path / "unit", secret=SECRET, job=JOB)
    scenario = write_unit(tmp_path, scenario=FAILS) / "scenario.yaml"

    ran = type_in("sync", unit, "--sandbox", "--scenario", scenario, "--record", record)

    assert ran.code == 4, ran.stderr
    assert lines_of(record)[-1]["event"] == "rollout.explained"
    assert "***" in record.read_text()
    assert "specified backoff" not in record.read_text()

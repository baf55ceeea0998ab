"""`tidegate verify` by records alone: simulated clusters are gone with their rollouts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.in_process_cli import type_in
from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import FIRST, ROOT, config_map, write_unit

KEPT = "examples/runs/first.jsonl"
Line = dict[str, object]


def recorded(path: Path, change: Callable[[list[Line]], list[Line]]) -> Path:
    """The record of the first example with its lines changed."""
    lines = [json.loads(line) for line in (ROOT / KEPT).read_text().splitlines()]
    record = path / "run.jsonl"
    record.write_text("".join(f"{json.dumps(line)}\n" for line in change(lines)))
    return record


def test_the_example_is_what_is_recorded_today(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    record = tmp_path / "run.jsonl"
    type_in("sync", FIRST, "--sandbox", "--record", str(record))
    if pytestconfig.getoption("--golden"):
        (ROOT / KEPT).write_bytes(record.read_bytes())

    assert record.read_bytes() == (ROOT / KEPT).read_bytes()


@pytest.mark.parametrize("name", ["platform", "ladder"])
def test_rollouts_of_tidegate_keep_their_order(
    wording: RecordedWording, name: str, tmp_path: Path
) -> None:
    record = tmp_path / "run.jsonl"
    synced = type_in("sync", f"examples/{name}", "--sandbox", "--offline", "--record", str(record))
    assert synced.code == 0, synced.stderr

    ran = type_in("verify", "--record", str(record))

    assert ran.code == 0, ran.stdout
    wording(ran.lines[-1].partition(":")[0])


def test_a_step_that_began_too_early_is_named_with_both_times(tmp_path: Path) -> None:
    def early(lines: list[Line]) -> list[Line]:
        """The migration begins a moment before its database has passed."""
        at = next(
            number
            for number, line in enumerate(lines)
            if line.get("event") == "step.passed" and str(line["step"]).endswith("/-2")
        )
        passed = lines.pop(at)
        begins = next(n for n in range(at, len(lines)) if lines[n]["event"] == "step.applying")
        return [*lines[: begins + 1], passed, *lines[begins + 1 :]]

    record = recorded(tmp_path, early)

    ran = type_in("verify", "--record", str(record))
    document = json.loads(type_in("verify", "--record", record, "-o", "json").stdout)

    assert ran.code == 3
    assert any(
        "wave -1" in line and "wave -2" in line and line.count(" 88.0s") == 2 for line in ran.lines
    )
    (pair,) = (pair for pair in document["pairs"] if pair["state"] == "broken")
    assert pair["before"]["at"] == pair["after"]["at"] == "2026-01-01T00:01:28.011Z"


def test_a_record_that_ends_in_the_middle_of_a_line_is_read_up_to_there(
    wording: RecordedWording, tmp_path: Path
) -> None:
    record = tmp_path / "run.jsonl"
    record.write_text((ROOT / KEPT).read_text()[:-20])

    ran = type_in("verify", "--record", str(record))

    assert ran.code == 0
    wording(ran.stderr)


@pytest.mark.parametrize(
    "text",
    ["", "hello\n", '{"kind":"List"}\n', '{"kind":"TidegateRun","version":9}\n'],
    ids=["empty", "no JSON", "another kind", "another version"],
)
def test_an_invalid_record_is_rejected(wording: RecordedWording, text: str, tmp_path: Path) -> None:
    record = tmp_path / "run.jsonl"
    record.write_text(text)

    ran = type_in("verify", "--record", str(record))

    assert ran.code == 3
    assert "error[file.record]" in ran.stderr
    wording(line for line in ran.stderr.splitlines() if "error[file.record]" in line)


def test_a_line_that_is_no_event_is_reported_with_its_location(tmp_path: Path) -> None:
    record = recorded(tmp_path, lambda lines: [lines[0], {"event": "nonsense"}, *lines[1:]])

    ran = type_in("verify", "--record", str(record))

    assert ran.code == 3
    assert f"{record}:2" in ran.stderr


def test_a_record_and_a_time_cannot_be_combined() -> None:
    assert type_in("verify", "--record", KEPT, "--since", "2026-11-17T10:00:00Z").code == 2


MIGRATION = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {argocd.argoproj.io/hook: PreSync}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "busybox:1"}]
"""


@pytest.mark.parametrize("turns", [0, 60, 90])
def test_steps_that_an_earlier_rollout_finished_are_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    sandbox = PersistentSandbox.make(tmp_path, monkeypatch)
    waves = {name: config_map(name, wave=wave) for name, wave in (("early", "1"), ("late", "2"))}
    unit, record = write_unit(tmp_path / "shop", migrate=MIGRATION, **waves), tmp_path / "run.jsonl"
    if turns:
        sandbox.killed(unit, turns=turns)
    else:
        sandbox.sync(unit)

    for _ in range(2):
        sandbox.sync(unit, "--record", str(record))
        ran = sandbox.run("verify", "--record", record, "-o", "json")

        assert ran.code == 0, ran.stdout
        assert {pair["state"] for pair in json.loads(ran.stdout)["pairs"]} == {"kept"}
    events = [json.loads(line) for line in record.read_text().splitlines()[1:]]
    settled = [event["step"] for event in events if event["event"] == "step.settled"]
    assert settled == ["default/shop/presync/0"]

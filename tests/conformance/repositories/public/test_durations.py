"""How long things take, from outside: ranges of a simulation, profiles that a cluster writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conformance.repositories.public.test_simulation_accuracy import API, ISSUED, tidegate
from tests.support.recorded_wording import RecordedWording
from tidegate.cli.main import cli
from tidegate.model.times import SECOND

DUMP = Path(__file__).parents[4] / "examples" / "seen" / "dump.json"
TIGHT = """
apiVersion: batch/v1
kind: Job
metadata: {name: tight}
spec:
  activeDeadlineSeconds: 40
  template: {spec: {restartPolicy: Never, containers: [{name: run, image: "run:1"}]}}
"""


PROMETHEUS = """
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: web}
spec: {replicas: 1}
"""


def endings(result: str) -> list[dict[str, object]]:
    documents = [json.loads(line) for line in result.splitlines()]
    return [document for document in documents if document["event"] == "engine.finished"]


def test_a_range_goes_from_short_to_long_for_each_engine(tmp_path: Path) -> None:
    words = ("--duration-range", "--engine", "tidegate,argocd", "-o", "json", "--seed", "3")

    code, result, _ = tidegate("simulate", tmp_path, API + ISSUED, *words)

    matches = [(ending["engine"], ending["durationEstimate"]) for ending in endings(result)]
    kinds = ("optimistic", "likely", "pessimistic")
    assert code == 0, result
    assert matches == [(engine, kind) for engine in ("tidegate", "argocd") for kind in kinds]
    short, likely, long = (ending["duration"] for ending in endings(result)[:3])
    assert isinstance(short, int)
    assert isinstance(likely, int)
    assert isinstance(long, int)
    assert short < likely < long


def test_the_likely_run_of_a_range_equals_the_run_without_a_range(tmp_path: Path) -> None:
    _, alone, _ = tidegate("simulate", tmp_path, API + ISSUED, "-o", "json")
    _, spread, _ = tidegate("simulate", tmp_path, API + ISSUED, "-o", "json", "--duration-range")

    likely = [
        {key: value for key, value in item.items() if key != "durationEstimate"}
        for item in map(json.loads, spread.splitlines())
        if item.get("durationEstimate") == "likely"
    ]
    assert likely == [item for item in map(json.loads, alone.splitlines()) if "engine" in item]


def test_the_same_seed_gives_the_same_range(tmp_path: Path, wording: RecordedWording) -> None:
    first, second = (
        tidegate("simulate", tmp_path, API + ISSUED, "--duration-range", "--seed", "7")
        for _ in range(2)
    )

    assert first == second
    wording(line for line in first[1].splitlines() if line.startswith("tidegate "))


def test_a_deadline_shorter_than_the_longest_duration_is_reported(
    tmp_path: Path, wording: RecordedWording
) -> None:
    code, result, _ = tidegate("simulate", tmp_path, TIGHT, "--duration-range")

    assert code == 4
    wording(line for line in result.splitlines() if line.startswith("tidegate, "))


def test_slow_objects_pass_with_the_longest_durations(tmp_path: Path) -> None:
    code, result, aside = tidegate(
        "simulate", tmp_path, PROMETHEUS, "--duration-range", "-o", "json"
    )

    assert code == 0, aside
    outcomes = [(ending["durationEstimate"], ending["outcome"]) for ending in endings(result)]
    assert outcomes == [(name, "passed") for name in ("optimistic", "likely", "pessimistic")]


def learn(*args: str) -> tuple[int, str, str]:
    ran = CliRunner().invoke(cli, ["simulate", "learn", *args])
    return ran.exit_code, ran.stdout, ran.stderr


def test_a_simulation_takes_the_learned_durations(tmp_path: Path) -> None:
    profile = tmp_path / "ours.yaml"
    ran = CliRunner().invoke(cli, ["simulate", "learn", str(DUMP)], standalone_mode=False)
    profile.write_text(ran.stdout)
    unit = tmp_path / "unit"

    _, before, _ = tidegate("simulate", unit, ISSUED, "-o", "json")
    _, after, _ = tidegate("simulate", unit, ISSUED, "-o", "json", "--profile", str(profile))

    (usual,), (learned,) = endings(before), endings(after)
    assert isinstance(usual["duration"], int)
    assert learned["duration"] == usual["duration"] + (31 - 5) * SECOND


@pytest.mark.parametrize("args", [(), (str(DUMP), "--context", "a"), ("--kubeconfig", "x")])
def test_a_dump_or_a_cluster_is_required(args: tuple[str, ...]) -> None:
    code, result, aside = learn(*args)

    assert (code, result) == (2, "")
    assert "--context" in aside

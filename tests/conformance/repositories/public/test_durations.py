"""How long things take, from outside: ranges of a simulation, profiles that a cluster writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conformance.repositories.public.test_truth import API, ISSUED, tidegate
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


def endings(told: str) -> list[dict[str, object]]:
    documents = [json.loads(line) for line in told.splitlines()]
    return [one for one in documents if one["event"] == "engine.ended"]


def test_a_range_goes_from_short_to_long_for_each_engine(tmp_path: Path) -> None:
    words = ("--spread", "--engine", "tidegate,argocd", "-o", "json", "--seed", "3")

    code, told, _ = tidegate("simulate", tmp_path, API + ISSUED, *words)

    found = [(one["engine"], one["expecting"]) for one in endings(told)]
    kinds = ("optimistic", "likely", "pessimistic")
    assert code == 0, told
    assert found == [(engine, one) for engine in ("tidegate", "argocd") for one in kinds]
    short, likely, long = (one["lasted"] for one in endings(told)[:3])
    assert isinstance(short, int)
    assert isinstance(likely, int)
    assert isinstance(long, int)
    assert short < likely < long


def test_the_likely_run_of_a_range_is_the_run_without_one(tmp_path: Path) -> None:
    _, alone, _ = tidegate("simulate", tmp_path, API + ISSUED, "-o", "json")
    _, spread, _ = tidegate("simulate", tmp_path, API + ISSUED, "-o", "json", "--spread")

    likely = [
        {key: value for key, value in one.items() if key != "expecting"}
        for one in map(json.loads, spread.splitlines())
        if one.get("expecting") == "likely"
    ]
    assert likely == [one for one in map(json.loads, alone.splitlines()) if "engine" in one]


def test_the_same_seed_gives_the_same_range(tmp_path: Path) -> None:
    first, second = (
        tidegate("simulate", tmp_path, API + ISSUED, "--spread", "--seed", "7") for _ in range(2)
    )

    assert first == second
    assert "tidegate opens      optimistic          likely     pessimistic" in first[1]


def test_a_deadline_that_is_too_short_for_a_bad_day_is_told(tmp_path: Path) -> None:
    code, told, _ = tidegate("simulate", tmp_path, TIGHT, "--spread")

    assert code == 4
    assert "tidegate, likely: passed after" in told
    assert "tidegate, pessimistic: failed after" in told


def test_what_is_only_slow_passes_on_a_bad_day_too(tmp_path: Path) -> None:
    code, told, aside = tidegate("simulate", tmp_path, PROMETHEUS, "--spread", "-o", "json")

    assert code == 0, aside
    outcomes = [(one["expecting"], one["outcome"]) for one in endings(told)]
    assert outcomes == [(one, "passed") for one in ("optimistic", "likely", "pessimistic")]


def learn(*words: str) -> tuple[int, str, str]:
    ran = CliRunner().invoke(cli, ["profile", "learn", *words])
    return ran.exit_code, ran.stdout, ran.stderr


def test_what_was_learned_is_what_a_simulation_takes(tmp_path: Path) -> None:
    profile = tmp_path / "ours.yaml"
    ran = CliRunner().invoke(cli, ["profile", "learn", str(DUMP)], standalone_mode=False)
    profile.write_text(ran.stdout)
    unit = tmp_path / "unit"

    _, before, _ = tidegate("simulate", unit, ISSUED, "-o", "json")
    _, after, _ = tidegate("simulate", unit, ISSUED, "-o", "json", "--profile", str(profile))

    (usual,), (learned,) = endings(before), endings(after)
    assert isinstance(usual["lasted"], int)
    assert learned["lasted"] == usual["lasted"] + (31 - 5) * SECOND


@pytest.mark.parametrize("words", [(), (str(DUMP), "--context", "a"), ("--kubeconfig", "x")])
def test_a_dump_or_a_cluster_is_asked_for(words: tuple[str, ...]) -> None:
    code, told, aside = learn(*words)

    assert (code, told) == (2, "")
    assert "--context" in aside

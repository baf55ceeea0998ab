"""One directory in several simulated clusters, from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.in_process_cli import type_in
from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import FIRST, config_map, tidegate, write_unit
from tidegate.clusters.sandboxes import CONTEXT, KUBECONFIG

BOTH = ("--cluster", "east", "--cluster", "west")


def events(text: str, kind: str) -> list[dict[str, object]]:
    return [event for line in text.splitlines() if (event := json.loads(line))["event"] == kind]


def test_a_directory_is_rolled_out_to_each_cluster_in_waves() -> None:
    ran = tidegate("sync", FIRST, "--sandbox", *BOTH, "-o", "json")

    written = events(ran.stdout, "object.written")
    ended = events(ran.stdout, "unit.finished")
    assert ran.returncode == 0, ran.stderr
    assert [item["cluster"] for item in written].count("east") == 10
    assert [item["cluster"] for item in written].count("west") == 10
    assert {item["cluster"]: item["reason"] for item in ended} == {
        "east": "passed",
        "west": "passed",
    }
    assert events(ran.stdout, "rollout.finished")[0]["reason"] == "passed"


def test_two_clusters_are_rolled_out_in_parallel_and_named_in_each_line(
    wording: RecordedWording,
) -> None:
    ran = tidegate("sync", FIRST, "--sandbox", *BOTH)

    lines = ran.stdout.splitlines()
    for cluster in ("east", "west"):
        steps = [line.split()[3] for line in lines if f" {cluster}:default/first wave " in line]
        assert [*dict.fromkeys(steps)] == ["-3", "-2", "-1", "0", "1"]
    wording(line for line in lines if " wave -3 " in line or " rollout " in line)


def test_one_cluster_takes_as_long_as_several_in_parallel(wording: RecordedWording) -> None:
    alone = tidegate("sync", FIRST, "--sandbox", "--cluster", "east")

    assert alone.returncode == 0
    wording(alone.stdout.splitlines()[-1])


def test_each_step_is_reported_with_its_cluster(tmp_path: Path) -> None:
    unit = write_unit(tmp_path / "unit", a=config_map("a"), b=config_map("b", wave="1"))

    ran = tidegate("sync", unit, "--sandbox", *BOTH, "-o", "json")

    steps = [(event["cluster"], event["step"]) for event in events(ran.stdout, "step.passed")]
    assert sorted(steps) == [
        (cluster, f"{cluster}/default/unit/sync/{wave}")
        for cluster in ("east", "west")
        for wave in (0, 1)
    ]


@pytest.mark.parametrize(
    "args",
    [
        ("--sandbox", "--cluster", "east", "--cluster", "east"),
        ("--cluster", "east"),
        ("--sandbox", "--cluster", "=prod"),
        ("--sandbox", "--cluster", "east="),
    ],
    ids=["duplicate", "without-context", "empty-name", "empty-context"],
)
def test_invalid_clusters_are_refused(wording: RecordedWording, args: tuple[str, ...]) -> None:
    ran = tidegate("sync", FIRST, *args)

    assert ran.returncode == 2
    wording(ran.stderr.splitlines()[-1])


def test_without_its_kubeconfig_the_sandbox_context_has_a_hint(
    tmp_path: Path,
) -> None:
    login = tmp_path / "tidegate" / "sandbox" / KUBECONFIG
    args = ("status", FIRST, "--context", CONTEXT)

    down = type_in(*args, XDG_STATE_HOME=str(tmp_path))
    login.parent.mkdir(parents=True)
    login.touch()
    up = type_in(*args, XDG_STATE_HOME=str(tmp_path))

    assert (down.code, up.code) == (3, 3)
    assert "`tidegate sandbox up`" in down.stderr
    assert "export KUBECONFIG" not in down.stderr
    assert f"`export KUBECONFIG={login}`" in up.stderr
    assert f"`--kubeconfig {login}`" in up.stderr

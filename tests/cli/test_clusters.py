"""One directory in several simulated clusters, from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.tidegate_runs import FIRST, config_map, tidegate, write_unit
from tests.support.typed import type_in
from tidegate.clusters.sandboxes import CONTEXT, KUBECONFIG

BOTH = ("--cluster", "east", "--cluster", "west")


def events(text: str, kind: str) -> list[dict[str, object]]:
    return [event for line in text.splitlines() if (event := json.loads(line))["event"] == kind]


def test_a_directory_goes_to_each_cluster_by_its_own_waves() -> None:
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


def test_both_clusters_are_rolled_out_side_by_side_and_told_apart() -> None:
    ran = tidegate("sync", FIRST, "--sandbox", *BOTH)

    lines = [line for line in ran.stdout.splitlines() if " applied " in line]
    assert len([line for line in lines if "east:default/first wave" in line]) == 5
    assert len([line for line in lines if "west:default/first wave" in line]) == 5
    assert "passed in 120.0s: 20 written" in ran.stdout


def test_a_cluster_alone_is_rolled_out_as_fast_as_beside_others() -> None:
    alone = tidegate("sync", FIRST, "--sandbox", "--cluster", "east")

    assert alone.returncode == 0
    assert "passed in 120.0s: 10 written" in alone.stdout


def test_each_step_is_told_with_its_cluster(tmp_path: Path) -> None:
    unit = write_unit(tmp_path / "unit", a=config_map("a"), b=config_map("b", wave="1"))

    ran = tidegate("sync", unit, "--sandbox", *BOTH, "-o", "json")

    steps = [(event["cluster"], event["step"]) for event in events(ran.stdout, "step.passed")]
    assert sorted(steps) == [
        (cluster, f"{cluster}/default/unit/sync/{wave}")
        for cluster in ("east", "west")
        for wave in (0, 1)
    ]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--sandbox", "--cluster", "east", "--cluster", "east"), "two clusters `east`"),
        (("--cluster", "east"), "`east` has no context"),
        (("--sandbox", "--cluster", "=prod"), "`=prod` is not NAME=CONTEXT"),
        (("--sandbox", "--cluster", "east="), "`east=` is not NAME=CONTEXT"),
    ],
)
def test_clusters_that_cannot_be_meant_are_refused(words: tuple[str, ...], problem: str) -> None:
    ran = tidegate("sync", FIRST, *words)

    assert ran.returncode == 2
    assert problem in ran.stderr


def test_who_asks_for_the_simulated_cluster_that_stays_is_told_the_way_to_it(
    tmp_path: Path,
) -> None:
    login = tmp_path / "tidegate" / "sandbox" / KUBECONFIG
    words = ("status", FIRST, "--context", CONTEXT)

    down = type_in(*words, XDG_STATE_HOME=str(tmp_path))
    login.parent.mkdir(parents=True)
    login.touch()
    up = type_in(*words, XDG_STATE_HOME=str(tmp_path))

    assert (down.code, up.code) == (3, 3)
    assert "hint: `tidegate sandbox up` starts it, and says where its kubeconfig is" in down.stderr
    assert f"hint: `export KUBECONFIG={login}`, or `--kubeconfig {login}`" in up.stderr

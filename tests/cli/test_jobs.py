"""`tidegate jobs`: which Job is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kept_sandbox import KeptSandbox
from tests.support.repositories import (
    Repository,
    git_repository,
    job,
    kustomization,
    setting,
    three_levels,
)
from tests.support.tidegate_runs import FIRST, kubeconfig, tidegate, write_unit
from tests.support.typed import type_in
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import JsonObject, Kind


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("migrat", "did you mean `migrate`?"),
        ("shop", "there is no Job and no hook `shop` here"),
    ],
)
def test_a_name_that_no_job_has(name: str, told: str) -> None:
    ran = type_in("jobs", "rerun", name, "-C", FIRST, "--sandbox")

    assert (ran.code, ran.stdout) == (2, "")
    assert "error[usage.job]" in ran.stderr
    assert told in ran.stderr


def test_a_name_that_several_have_is_asked_about(tmp_path: Path) -> None:
    item, other = job("load"), job("load")
    other["metadata"]["namespace"] = "kube-system"  # type: ignore[index,call-overload]
    unit = write_unit(tmp_path / "unit", one=to_yaml(item), other=to_yaml(other))

    both = type_in("jobs", "rerun", "load", "-C", unit, "--sandbox")
    exact = type_in("jobs", "rerun", "kube-system/load", "-C", unit, "--sandbox")

    assert both.code == 2
    assert "several are called `load`: Job default/load" in both.stderr
    assert exact.code == 0, exact.stderr
    assert "Job kube-system/load" in exact.stdout
    assert "Job default/load" not in exact.stdout


def test_where_there_are_none_it_is_said(tmp_path: Path) -> None:
    unit = write_unit(tmp_path / "unit", one=to_yaml(setting("one")))

    assert (
        "there are no Jobs and no hooks here"
        in type_in("jobs", "list", "-C", unit, "--sandbox").lines
    )


def test_where_nobody_can_be_asked_nothing_is_run(tmp_path: Path) -> None:
    login = kubeconfig(tmp_path, "https://127.0.0.1:1")

    ran = tidegate("jobs", "rerun", "migrate", "-C", FIRST, "--kubeconfig", login)

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "add --yes to go on without being asked" in ran.stderr


def test_what_waits_for_it_in_other_units_is_run_again_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = KeptSandbox.make(tmp_path, monkeypatch), Repository(tmp_path / "platform")
    made.put("clusters/main/source.yaml", git_repository())
    units: dict[str, tuple[str, ...]] = {
        "ground": (),
        "data": ("ground",),
        "web": ("data",),
        "aside": ("ground",),
    }
    for name, needs in units.items():
        layer = kustomization(name, f"./{name}", after=needs, into="default")
        made.put(f"clusters/main/{name}.yaml", layer)
        made.put(f"{name}/all.yaml", job(f"{name}-job"), setting(f"{name}-setting"))
    assert cluster.sync(made.root).code == 0
    before = {name: get_text(item, "metadata", "uid") for name, item in runs(cluster).items()}
    words = ("jobs", "rerun", "data-job", "-C", made.root, "--sandbox")

    ran = cluster.run(*words)
    after = {name: get_text(item, "metadata", "uid") for name, item in runs(cluster).items()}
    alone = cluster.run(*words, "--unit", "Kustomization/flux-system/data")
    last = {name: get_text(item, "metadata", "uid") for name, item in runs(cluster).items()}
    again = cluster.sync(made.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert {name for name in before if before[name] != after[name]} == {"data-job", "web-job"}
    assert ran.stdout.index("Job default/data-job") < ran.stdout.index("Job default/web-job")
    assert alone.code == 0, alone.stdout + alone.stderr
    assert {name for name in after if after[name] != last[name]} == {"data-job"}
    assert "nothing changed" in again.stdout, "all units are as much done as they were"


def test_later_waves_of_a_parent_follow_a_hook_of_what_it_brings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = three_levels(tmp_path / "platform")
    cluster = KeptSandbox.make(tmp_path, monkeypatch)

    assert cluster.sync(made.root).code == 0
    before = runs(cluster, "shop")
    ran = cluster.run("jobs", "rerun", "base-prepare", "-C", made.root, "--sandbox")
    after = runs(cluster, "shop")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert {*before} == {*after} == {"base-prepare", "base-after"}
    renewed = [get_text(after[item], "metadata", "uid") not in str(before[item]) for item in before]
    assert all(renewed)
    passed = [line[11:26].strip() for line in ran.stdout.splitlines() if " passed in " in line]
    assert passed[3:] == [
        *("base PostSync", "root wave 1", "teams wave 0", "red wave 0", "red wave 1"),
        *("teams wave 1", "blue wave 0", "blue wave 1", "root wave 2", "rollout"),
    ]
    assert "Namespace shop" not in ran.stdout, "it comes before"
    assert "nothing changed" in cluster.sync(made.root).stdout


def runs(cluster: KeptSandbox, home: str = "default") -> dict[str, JsonObject]:
    return cluster.all(Kind("batch", "v1", "Job"), home)

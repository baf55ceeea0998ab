"""`tidegate jobs`: list Jobs and hooks, and run one again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.in_process_cli import type_in
from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import (
    Repository,
    git_repository,
    job,
    kustomization,
    setting,
    three_levels,
)
from tests.support.tidegate_command import CommandResult
from tests.support.tidegate_runs import FIRST, kubeconfig, tidegate, write_unit
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import JsonObject, Kind


@pytest.mark.parametrize(
    ("name", "closest"),
    [("migrat", "`migrate`"), ("shop", "")],
)
def test_an_unknown_name_is_a_usage_error(name: str, closest: str) -> None:
    ran = type_in("jobs", "rerun", name, FIRST, "--sandbox")

    assert (ran.code, ran.stdout) == (2, "")
    assert "error[usage.job]" in ran.stderr
    assert (closest or f"`{name}`") in ran.stderr
    assert ("`migrate`" in ran.stderr) is bool(closest)


def test_an_ambiguous_name_is_a_usage_error(tmp_path: Path) -> None:
    item, other = job("load"), job("load")
    other["metadata"]["namespace"] = "kube-system"  # type: ignore[index,call-overload]
    unit = write_unit(tmp_path / "unit", job=to_yaml(item), other=to_yaml(other))

    both = type_in("jobs", "rerun", "load", unit, "--sandbox")
    exact = type_in("jobs", "rerun", "kube-system/load", unit, "--sandbox")

    assert both.code == 2
    assert "error[usage.job]" in both.stderr
    assert "`load`" in both.stderr
    assert "Job default/load" in both.stderr
    assert "Job kube-system/load" in both.stderr
    assert exact.code == 0, exact.stderr
    assert "Job kube-system/load" in exact.stdout
    assert "Job default/load" not in exact.stdout


def test_an_empty_list_of_jobs_is_reported(wording: RecordedWording, tmp_path: Path) -> None:
    unit = write_unit(tmp_path / "unit", job=to_yaml(setting("one")))

    wording(type_in("jobs", "list", unit, "--sandbox").lines[-1])


def test_without_a_terminal_nothing_is_run(tmp_path: Path) -> None:
    login = kubeconfig(tmp_path, "https://127.0.0.1:1")

    ran = tidegate("jobs", "rerun", "migrate", FIRST, "--kubeconfig", login)

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--yes" in ran.stderr


def test_jobs_of_units_that_depend_on_it_run_again_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = PersistentSandbox.make(tmp_path, monkeypatch), Repository(tmp_path / "platform")
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
    args = ("jobs", "rerun", "data-job", made.root, "--sandbox")

    ran = cluster.run(*args)
    after = {name: get_text(item, "metadata", "uid") for name, item in runs(cluster).items()}
    alone = cluster.run(*args, "--unit", "Kustomization/flux-system/data")
    last = {name: get_text(item, "metadata", "uid") for name, item in runs(cluster).items()}
    again = cluster.sync(made.root, "-o", "json")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert {name for name in before if before[name] != after[name]} == {"data-job", "web-job"}
    assert ran.stdout.index("Job default/data-job") < ran.stdout.index("Job default/web-job")
    assert alone.code == 0, alone.stdout + alone.stderr
    assert {name for name in after if after[name] != last[name]} == {"data-job"}
    assert_nothing_changed(again)


def test_later_waves_of_a_parent_run_after_a_hook_of_its_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = three_levels(tmp_path / "platform")
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)

    assert cluster.sync(made.root).code == 0
    before = runs(cluster, "shop")
    ran = cluster.run("jobs", "rerun", "base-prepare", made.root, "--sandbox", "-o", "json")
    after = runs(cluster, "shop")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert {*before} == {*after} == {"base-prepare", "base-after"}
    renewed = [get_text(after[item], "metadata", "uid") not in str(before[item]) for item in before]
    assert all(renewed)
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    passed = [event["step"] for event in events if event["event"] == "step.passed"]
    assert [step.removeprefix("Application/argocd/") for step in passed][3:] == [
        *("base/postsync/0", "root/sync/1", "teams/sync/0", "red/sync/0", "red/sync/1"),
        *("teams/sync/1", "blue/sync/0", "blue/sync/1", "root/sync/2"),
    ]
    assert events[-1]["event"] == "rollout.finished"
    assert not any(event.get("kind") == "Namespace" for event in events), "it comes before"
    assert_nothing_changed(cluster.sync(made.root, "-o", "json"))


def assert_nothing_changed(ran: CommandResult) -> None:
    """A rollout without any write."""
    types = {json.loads(line)["event"] for line in ran.stdout.splitlines()}
    assert ran.code == 0, ran.stderr
    assert "rollout.finished" in types
    assert types.isdisjoint({"object.written", "object.pruned", "hook.finished"})


def runs(cluster: PersistentSandbox, namespace: str = "default") -> dict[str, JsonObject]:
    return cluster.all(Kind("batch", "v1", "Job"), namespace)

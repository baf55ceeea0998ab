"""Three levels of Applications in a kept simulated cluster: killed, broken, pruned, deleted.

The order is read from the record of the cluster; tests/e2e/test_unit_trees.py checks the same on a
real server.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.persistent_sandbox import APPLICATION, PersistentSandbox
from tests.support.repositories import (
    FINALIZER,
    OBJECTS,
    OF_CHILDREN,
    ORDER,
    Repository,
    application,
    argo_settings,
    deployment,
    job,
    namespace,
    setting,
    three_levels,
)
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Kind

SERVED = pytest.mark.parametrize("served", [False, True])
PREFLIGHT = 3
CLUSTERS = pytest.mark.parametrize(("served", "ruled"), [(False, False), (True, True)])
CONFIG_MAP, JOB = Kind("", "v1", "ConfigMap"), Kind("batch", "v1", "Job")


def creation_order(cluster: PersistentSandbox) -> dict[str, int]:
    """When each object was made."""
    made = [
        change.removeprefix("create ")
        for change in cluster.changes()
        if change.startswith("create ")
    ]
    return {name: at for at, name in enumerate(dict.fromkeys(made)) if name in OBJECTS}


def assert_in_order(cluster: PersistentSandbox) -> None:
    at = creation_order(cluster)
    assert set(at) == OBJECTS
    assert [pair for pair in ORDER if at[pair[0]] >= at[pair[1]]] == []


def repository(root: Path, *, ruled: bool = False, finalizer: bool = False) -> Repository:
    made = three_levels(root, finalizer=finalizer)
    if ruled:
        made.put("argocd/cm.yaml", argo_settings(OF_CHILDREN))
    return made


@CLUSTERS
def test_a_rollout_killed_ten_times_ends_the_same_in_the_same_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, served: bool, ruled: bool
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, served=served)
    made = repository(tmp_path / "platform", ruled=ruled)
    for number in range(10):
        cluster.killed(made.root, turns=6 + 5 * number)
    reached = len(creation_order(cluster))

    ran = cluster.sync(made.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert_in_order(cluster)
    made_hooks = [change for change in cluster.changes() if change == "create jobs/base-prepare"]
    assert len(made_hooks) == 1, "a hook that has finished does not run again"
    assert 0 < reached < len(OBJECTS), "it was killed before the end"
    before = len(cluster.changes())
    again = cluster.sync(made.root)
    assert (again.code, cluster.changes()[before:]) == (0, [])


@CLUSTERS
def test_a_failed_child_blocks_only_later_steps_until_it_is_fixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, served: bool, ruled: bool
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, served=served, failing=["red-job"])
    made = repository(tmp_path / "platform", ruled=ruled)
    made.put("red/all.yaml", job("red-job"), setting("red-late", wave=1))
    made.put("clusters/main/beside.yaml", setting("beside", "shop", wave=1))

    failed = cluster.sync(made.root)
    reached = {*creation_order(cluster)}
    settings = {*cluster.all(CONFIG_MAP, "shop")}
    before = len(cluster.changes())
    made.put("red/all.yaml", deployment("red-web"), setting("red-late", wave=1))
    fixed = cluster.sync(made.root)

    later = {"configmaps/red-late", "configmaps/blue-early", "deployments/blue-web"}
    later |= {"configmaps/end"}
    assert failed.code == 4, failed.stdout + failed.stderr
    assert reached == OBJECTS - later - {"deployments/red-web"}
    assert "beside" in settings, "it is in the wave of the teams and does not wait"
    assert fixed.code == 0, fixed.stdout + fixed.stderr
    done = {
        change.split()[1] for change in cluster.changes()[before:] if change.startswith("create ")
    }
    assert done & OBJECTS == later | {"deployments/red-web"}
    assert "red-job" not in cluster.all(JOB, "shop"), "it is not in Git any more"


@SERVED
def test_the_objects_of_a_child_that_left_git_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, served: bool
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, served=served)
    made = repository(tmp_path / "platform", finalizer=True)
    first = cluster.sync(made.root)
    before = len(cluster.changes())
    made.drop("teams/red.yaml")

    ran = cluster.sync(made.root)

    assert (first.code, ran.code) == (0, 0), ran.stdout + ran.stderr
    gone = [
        change.removeprefix("delete ")
        for change in cluster.changes()[before:]
        if "delete " in change
    ]
    assert [item for item in gone if item in OBJECTS] == [
        "configmaps/red-late",
        "deployments/red-web",
    ]
    if served:
        assert {*cluster.all(APPLICATION, "argocd")} == {"base", "blue", "teams"}


@SERVED
def test_a_child_with_a_new_directory_keeps_the_objects_that_are_there_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, served: bool
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, served=served)
    made = repository(tmp_path / "platform")
    first = cluster.sync(made.root)
    before = len(cluster.changes())
    made.put("crimson/all.yaml", deployment("red-web"))
    made.put("teams/red.yaml", application("red", "crimson"))

    ran = cluster.sync(made.root)

    assert (first.code, ran.code) == (0, 0), ran.stdout + ran.stderr
    touched = {change.split()[1] for change in cluster.changes()[before:]}
    assert touched & OBJECTS == {"configmaps/red-late"}
    assert "red-late" not in cluster.all(CONFIG_MAP, "shop")


@SERVED
def test_children_of_a_unit_that_left_git_are_deleted_before_their_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, served: bool
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, served=served)
    made = repository(tmp_path / "platform", finalizer=True)
    made.put("teams/den.yaml", namespace("den", wave=-1))
    first = cluster.sync(made.root)
    cluster.put(setting("stranger", "den"))
    before = len(cluster.changes())
    for name in ("clusters/main/teams", "teams/red", "teams/blue", "teams/den"):
        made.drop(f"{name}.yaml")

    refused = cluster.sync(made.root)
    untouched = cluster.changes()[before:]
    ran = cluster.sync(made.root, "--yes-delete-contents")

    assert (first.code, ran.code) == (0, 0), ran.stdout + ran.stderr
    assert (refused.code, untouched) == (PREFLIGHT, []), refused.stdout
    assert "error[preflight.contents]: Namespace den: " in refused.stderr
    assert "ConfigMap den/stranger" in refused.stderr
    gone = [
        change.removeprefix("delete ")
        for change in cluster.changes()[before:]
        if "delete " in change
    ]
    at = {name: place for place, name in enumerate(gone)}
    blue = ("deployments/blue-web", "configmaps/blue-early")
    red = ("configmaps/red-late", "deployments/red-web")
    pairs = [blue, red, (blue[1], "namespaces/den"), (red[1], "namespaces/den")]
    if served:  # the waves of the two are known from their live objects
        pairs.append((blue[1], red[0]))
    assert [pair for pair in pairs if at[pair[0]] >= at[pair[1]]] == []


def test_of_two_removed_units_the_later_wave_is_deleted_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)
    made = repository(tmp_path / "platform", finalizer=True)
    made.put("teams/den.yaml", namespace("den", wave=-1))
    first = cluster.sync(made.root)
    before = len(cluster.changes())
    for name in ("red", "blue"):
        made.drop(f"teams/{name}.yaml")

    ran = cluster.sync(made.root)

    assert (first.code, ran.code) == (0, 0), ran.stdout + ran.stderr
    gone = [
        change.removeprefix("delete ")
        for change in cluster.changes()[before:]
        if "delete " in change
    ]
    blue = ["deployments/blue-web", "configmaps/blue-early"]
    red = ["configmaps/red-late", "deployments/red-web"]
    assert [item for item in gone if item in (*blue, *red)] == [*blue, *red]


@CLUSTERS
def test_deletion_runs_in_reverse_order_across_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, served: bool, ruled: bool
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, served=served)
    made = repository(tmp_path / "platform", ruled=ruled, finalizer=True)
    first = cluster.sync(made.root)
    before = len(cluster.changes())

    ran = cluster.run("delete", made.root, "--sandbox")

    assert (first.code, ran.code) == (0, 0), ran.stdout + ran.stderr
    gone = [
        change.removeprefix("delete ")
        for change in cluster.changes()[before:]
        if "delete " in change
    ]
    at = {name: place for place, name in enumerate(gone)}
    kept = [pair for pair in ORDER if not any(item.startswith("jobs/") for item in pair)]
    assert {name for pair in kept for name in pair} <= set(at)
    assert [pair for pair in kept if at[pair[0]] <= at[pair[1]]] == []


@pytest.mark.parametrize("way", ["", "/foreground", "/background"])
def test_the_finalizer_of_an_application_sets_the_propagation_of_its_deletion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)
    made = repository(tmp_path / "platform")
    base = application("base", "base")
    other = "" if way == "/background" else "/background"  # the first one counts
    get_mapping(base, "metadata")["finalizers"] = [f"{FINALIZER}{way}", f"{FINALIZER}{other}"]
    made.put("clusters/main/base.yaml", base)
    first = cluster.sync(made.root)
    before = len(cluster.changes())

    ran = cluster.run("delete", made.root, "--sandbox")

    gone = cluster.changes()[before:]
    assert (first.code, ran.code) == (0, 0), ran.stdout + ran.stderr
    assert "delete deployments/base-web" in gone
    waits = "change deployments/base-web" in gone  # it is held until its pods are gone
    assert waits is (way != "/background")


@SERVED
@pytest.mark.parametrize("way", ["", "/foreground", "/background"])
def test_the_finalizer_of_a_child_that_left_git_sets_the_propagation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, *, served: bool
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, served=served)
    made = repository(tmp_path / "platform", finalizer=True)
    red = application("red", "red", finalizer=True)
    red["metadata"] = {**get_mapping(red, "metadata"), "finalizers": [f"{FINALIZER}{way}"]}
    made.put("teams/red.yaml", red)
    cluster.sync(made.root)
    before = len(cluster.changes())
    made.drop("teams/red.yaml")

    ran = cluster.sync(made.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    changes = [change for change in cluster.changes()[before:] if "/red-web" in change]
    outlives = changes[-1] == "change deployments/red-web"
    assert "delete deployments/red-web" in changes
    assert outlives is (way != "/background"), changes


def test_the_live_finalizers_of_an_application_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)
    made = repository(tmp_path / "platform", finalizer=True)
    cluster.sync(made.root)
    cluster.patch(APPLICATION, "argocd", "red", {"metadata": {"finalizers": None}})
    made.drop("teams/red.yaml")

    ran = cluster.sync(made.root)

    assert "warning[units.orphan]: `Application/argocd/red` " in ran.stderr
    assert {*cluster.all(CONFIG_MAP, "shop")} >= {"red-late"}

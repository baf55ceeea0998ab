"""`-n`: for a path, where objects go that name no namespace; for a name, whose unit is meant."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.support.in_process_command import CommandOutput, run_in_process
from tests.support.served_cluster import served_cluster
from tests.support.tidegate_runs import config_map, write_unit
from tidegate.clusters.sandboxes import KUBECONFIG

KUSTOMIZATION = (
    "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
    "metadata: {{name: web, namespace: {0}}}\n"
    "spec: {{interval: 5m, prune: true, path: ./{0}, targetNamespace: {0},"
    " sourceRef: {{kind: GitRepository, name: repo}}}}\n"
)
SOURCE = (
    "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n"
    "metadata: {{name: repo, namespace: {0}}}\n"
    "spec: {{interval: 5m, url: https://git.example.com/a.git}}\n"
)
NAMED = (
    ("flux", "build", "ks", "web", "-o", "names"),
    ("flux", "build", "ks", "--all", "-o", "names"),
    ("flux", "diff", "ks", "web"),
    ("flux", "reconcile", "ks", "web", "--sandbox"),
    ("flux", "reconcile", "source", "repo", "--sandbox"),
    ("flux", "tree", "ks", "web"),
)

APP_VERBS = ("get", "resources", "history")


@pytest.fixture
def teams(tmp_path: Path) -> Path:
    """Two teams, each with a Kustomization of one name."""
    for team in ("red", "blue"):
        write_unit(tmp_path / team, settings=config_map(f"of-{team}"))
        write_unit(tmp_path / "clusters", **{team: KUSTOMIZATION.format(team)})
        write_unit(tmp_path / "clusters", **{f"{team}-source": SOURCE.format(team)})
    return tmp_path


def run(folder: Path, *args: str) -> CommandOutput:
    environment = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    return run_in_process(folder, environment, args)


@pytest.mark.parametrize("args", NAMED, ids=" ".join)
def test_the_namespace_selects_one_of_two_objects_with_the_same_name(
    args: tuple[str, ...], teams: Path
) -> None:
    red = run(teams, *args, "-n", "red", "--offline")

    assert red.code == 0, red.stderr
    assert "of-red" in red.stdout
    assert "of-blue" not in red.stdout


@pytest.mark.parametrize(
    "args",
    [*NAMED, ("flux", "suspend", "ks", "web"), ("argocd", "app", "manifests", "web")],
    ids=" ".join,
)
def test_an_object_of_another_namespace_is_not_found(args: tuple[str, ...], teams: Path) -> None:
    ran = run(teams, *args, "--namespace", "green", "--offline")

    assert (ran.code, ran.stdout) == (2, "")
    assert "`green`" in ran.stderr


@pytest.mark.parametrize("command", ["flux logs", *(f"argocd app {verb}" for verb in APP_VERBS)])
async def test_a_unit_of_another_namespace_is_not_found_on_a_cluster(
    command: str, teams: Path
) -> None:
    folder = teams / "cluster"
    folder.mkdir()
    async with served_cluster(folder, served=False):
        args = (*command.split(), "web", "-n", "green", "--offline")
        target = ("--kubeconfig", str(folder / KUBECONFIG))
        ran = await asyncio.to_thread(run, teams, *args, *target)

    assert (ran.code, ran.stdout) == (2, "")
    assert "error[usage.unit]" in ran.stderr
    assert "`green`" in ran.stderr


def test_an_object_without_a_namespace_gets_the_given_one(tmp_path: Path) -> None:
    folder = write_unit(tmp_path, web=config_map("web"))

    played = run(folder, "sandbox", "run", "web.yaml", "-n", "kube-public")
    listed = run(folder, "units", ".", "-n", "shop")

    assert "ConfigMap kube-public/web  " in played.stdout
    assert "ConfigMap default/web" not in played.stdout
    assert listed.stdout.splitlines()[1].startswith("shop/")

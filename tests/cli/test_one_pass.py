"""A command finds the units of a repository, renders each of them and plans once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import pytest

from tests.support.counted_calls import counter, read_counts
from tests.support.file_trees import commit, run_git
from tests.support.served_cluster import served_cluster
from tests.support.warm_start import WarmRun
from tidegate.cli.main import cli
from tidegate.clusters.sandboxes import KUBECONFIG

URL = "https://git.example.com/shop/platform.git"
APPLICATION = """apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: {url}, path: {path}, targetRevision: HEAD}}
  destination: {{server: {server}, namespace: default}}
  syncPolicy: {{automated: {{}}}}
"""
SERVER = "https://kubernetes.default.svc"
KUSTOMIZATION = """apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: {name}, namespace: flux-system}}
spec:
  interval: 10m
  path: ./{path}
  prune: true
  sourceRef: {{kind: GitRepository, name: flux-system}}
"""
SOURCE = f"""apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: flux-system, namespace: flux-system}}
spec: {{interval: 1m, url: "{URL}", ref: {{branch: main}}}}
"""
MAP = """apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: default}}
data: {{a: b}}
"""
ISSUER = """apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: internal}
spec: {selfSigned: {}}
"""
UNITS = 3
"""A root unit and its two children, each with a ConfigMap."""
MAX_REQUESTS = 26
"""Requests of a sync of two objects in two child units, with those of its lease and its records."""
MAX_PLAIN_REQUESTS = 22
"""Requests of a sync of two objects in a directory."""
WITHOUT_A_CLUSTER = {
    "lint": 1,
    "lint --empty-cluster": 1,
    "plan": 1,
    "simulate": 1,
    "simulate --empty-cluster": 1,
    "graph": 1,
    "waves": 1,
    "sync --sandbox": 1,
    "sync --sandbox --dry-run": 1,
    "delete --sandbox": 1,
    "tree": 1,
    "tree --unit api": 1,
    "trace ConfigMap/api": 1,
    "units": 0,
    "render": 0,
    "argocd app manifests api": 0,
    "argocd app set api --sync-policy none": 0,
    "argocd app unset api --sync-policy": 0,
    "argocd app edit api": 0,
    "argocd app patch api --patch {}": 0,
}
"""Commands that read Git alone, each with its number of plans."""
ON_A_CLUSTER = {
    "plan": 1,
    "sync --dry-run": 1,
    "sync --yes": 1,
    "status": 1,
    "verify": 1,
    "tree": 1,
    "tree --unit api": 1,
    "trace ConfigMap/api": 1,
    "logs": 1,
    "logs --unit api": 1,
    "events": 1,
    "jobs list": 1,
    "jobs rerun migrate --yes": 1,
    "suspend --unit api": 0,
    "resume --unit api": 0,
    "approve --unit api": 0,
}
"""Commands on a cluster, in this order, each with its number of plans."""
OF_ARGOCD = {
    "argocd app list": 1,
    "argocd app get api --refresh": 1,
    "argocd app resources api": 1,
    "argocd app history api": 1,
    "argocd app diff api": 1,
    "argocd app wait api --health": 1,
    "argocd app sync api --yes": 1,
    "argocd app sync --all --yes": 1,
    "argocd app delete api --yes": 1,
}
OF_FLUX = {
    "flux get kustomizations -A": 1,
    "flux get sources -A": 0,
    "flux get all -A": 1,
    "flux diff kustomization api": 1,
    "flux tree kustomization api": 1,
    "flux trace ConfigMap/api": 1,
    "flux logs api": 1,
    "flux events": 1,
    "flux suspend kustomization api": 0,
    "flux resume kustomization api": 0,
    "flux reconcile kustomization api --yes": 1,
    "flux reconcile source git flux-system --yes": 1,
}
BUILD = "flux build kustomization api"
COMPARISON = "diff"
"""The command that reads two revisions."""
WITHOUT_UNITS = {
    *("rule", "kinds", "health", "sandbox", "config", "cache", "doctor", "completion"),
    *("help", "version", "argocd appset"),
}
"""Commands that read no units of a repository."""
JOB = """apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: default}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: shop/migrate:1}]
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository of Argo CD: a root and two children."""
    folder = tmp_path / "repository"
    (folder / "apps").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "root.yaml").write_text(application("root", "apps"))
    for name in ("api", "web"):
        (folder / name).mkdir()
        (folder / "apps" / f"{name}.yaml").write_text(application(name, name))
        (folder / name / "map.yaml").write_text(MAP.format(name=name))
    (folder / "api" / "job.yaml").write_text(JOB)
    return folder


def application(name: str, path: str, server: str = SERVER) -> str:
    return APPLICATION.format(name=name, path=path, url=URL, server=server)


@pytest.fixture
def flux_repository(tmp_path: Path) -> Path:
    """Return a repository of Flux: a root and two children."""
    folder = tmp_path / "fleet"
    (folder / "cluster").mkdir(parents=True)
    (folder / "apps").mkdir()
    (folder / ".git").mkdir()
    (folder / "cluster" / "root.yaml").write_text(KUSTOMIZATION.format(name="root", path="apps"))
    (folder / "apps" / "source.yaml").write_text(SOURCE)
    for name in ("api", "web"):
        (folder / name).mkdir()
        child = KUSTOMIZATION.format(name=name, path=name)
        (folder / "apps" / f"{name}.yaml").write_text(child)
        (folder / name / "map.yaml").write_text(MAP.format(name=name))
    return folder


def count(repository: Path, *words: str | Path) -> Mapping[str, int]:
    """Run a command on a repository, and return how often it did what."""
    log = repository.parent / "counts"
    known = {"PATH": "/usr/bin:/bin", "HOME": str(repository.parent)}
    command = [*map(str, words)]
    ran = WarmRun(command, repository, known, first=counter(log)).to_its_end()
    assert "error[bug]" not in ran.stderr, ran.stderr
    return read_counts(log)


def once(plans: int = 1) -> dict[str, int]:
    return {"discoveries": 1, "renders": UNITS, "plans": plans}


async def count_on_cluster(
    repository: Path, commands: Mapping[str, int], *, prepares: bool = False
) -> dict[str, dict[str, int]]:
    """Run commands on one cluster, and return the counts of each without its requests."""
    folder = repository.parent / "cluster"
    folder.mkdir()
    counts: dict[str, dict[str, int]] = {}
    async with served_cluster(folder, served=False):
        target = ("--offline", "--kubeconfig", folder / KUBECONFIG)
        for command in [*(["sync --yes"] if prepares else []), *commands]:
            counted = await asyncio.to_thread(count, repository, *command.split(), *target)
            counts[command] = {name: counted[name] for name in once()}
    return {command: counts[command] for command in commands}


@pytest.mark.parametrize(("words", "plans"), WITHOUT_A_CLUSTER.items(), ids=WITHOUT_A_CLUSTER)
def test_a_command_without_a_cluster_does_everything_once(
    repository: Path, words: str, plans: int
) -> None:
    counts = count(repository, *words.split(), "--offline")

    assert counts == {**once(plans), "requests": 0}


async def test_a_command_on_a_cluster_does_everything_once(repository: Path) -> None:
    counts = await count_on_cluster(repository, ON_A_CLUSTER)

    assert counts == {command: once(plans) for command, plans in ON_A_CLUSTER.items()}


async def test_a_command_of_argocd_does_everything_once(repository: Path) -> None:
    counts = await count_on_cluster(repository, OF_ARGOCD, prepares=True)

    assert counts == {command: once(plans) for command, plans in OF_ARGOCD.items()}


def test_a_build_of_flux_does_everything_once(flux_repository: Path) -> None:
    counts = count(flux_repository, *BUILD.split(), "--offline")

    assert counts == {**once(0), "requests": 0}


async def test_a_command_of_flux_does_everything_once(flux_repository: Path) -> None:
    counts = await count_on_cluster(flux_repository, OF_FLUX, prepares=True)

    assert counts == {command: once(plans) for command, plans in OF_FLUX.items()}


def test_a_comparison_does_everything_once_for_each_revision(repository: Path) -> None:
    (repository / ".git").rmdir()
    run_git(repository, "init", "--quiet", "--initial-branch=main")
    commit(repository)
    (repository / "web" / "map.yaml").write_text(MAP.format(name="changed"))

    counts = count(repository, COMPARISON, "--base", "main", "--offline")

    once_each = {name: 2 * number for name, number in once().items()}
    assert counts == {**once_each, "requests": 0}


def test_every_command_is_counted() -> None:
    counted = {*WITHOUT_A_CLUSTER, *ON_A_CLUSTER, *OF_ARGOCD, *OF_FLUX, BUILD, COMPARISON}
    known = {*counted, *WITHOUT_UNITS}

    uncounted = [
        name
        for name in leaf_commands(cli, click.Context(cli, **cli.context_settings))
        if not any(f"{command} ".startswith(f"{name} ") for command in known)
        and not any(f"{name} ".startswith(f"{group} ") for group in WITHOUT_UNITS)
    ]

    assert uncounted == []


def leaf_commands(group: click.Group, context: click.Context) -> Iterator[str]:
    """Yield the commands below a group; all kinds of a command of Flux are one command."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group) and context.info_name != "flux":
            below = click.Context(command, context, info_name=name)
            yield from (f"{name} {leaf}" for leaf in leaf_commands(command, below))
        else:
            yield name


@pytest.mark.parametrize("words", ["lint", "plan", "graph", "simulate", "sync --sandbox"])
def test_a_second_cluster_needs_no_second_pass(repository: Path, words: str) -> None:
    remote = application("web", "web", "https://east.example.com")
    (repository / "apps" / "web.yaml").write_text(remote)

    counts = count(repository, *words.split(), "--offline")

    assert counts == {**once(), "requests": 0}


@pytest.mark.parametrize("words", ["simulate", "sync --sandbox"])
def test_an_assumed_operator_needs_no_second_pass(repository: Path, words: str) -> None:
    (repository / "api" / "issuer.yaml").write_text(ISSUER)

    counts = count(repository, *words.split(), "--offline")

    assert counts == {**once(), "requests": 0}


async def test_a_confirmed_sync_sends_few_requests(repository: Path) -> None:
    (repository / "api" / "job.yaml").unlink()
    folder = repository.parent / "cluster"
    folder.mkdir()
    async with served_cluster(folder, served=False):
        words = ("sync", "--yes", "--offline", "--kubeconfig", folder / KUBECONFIG)
        counts = await asyncio.to_thread(count, repository, *words)

    assert counts["requests"] <= MAX_REQUESTS


async def test_a_sync_of_a_directory_sends_few_requests(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "maps.yaml").write_text("---\n".join(MAP.format(name=name) for name in "ab"))
    (tmp_path / "cluster").mkdir()
    async with served_cluster(tmp_path / "cluster", served=False):
        config = tmp_path / "cluster" / KUBECONFIG
        counts = await asyncio.to_thread(count, folder, "sync", "--yes", "--kubeconfig", config)

    assert {name: counts[name] for name in once()} == {**once(), "renders": 1}
    assert counts["requests"] <= MAX_PLAIN_REQUESTS

"""A command finds the units of a repository, renders each of them and plans once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.counted_calls import counter, read_counts
from tests.support.served_cluster import served_cluster
from tests.support.warm_start import WarmRun
from tidegate.clusters.sandboxes import KUBECONFIG

URL = "https://git.example.com/shop/platform.git"
APPLICATION = """apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: {url}, path: {path}, targetRevision: HEAD}}
  destination: {{server: https://kubernetes.default.svc, namespace: default}}
  syncPolicy: {{automated: {{}}}}
"""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: b}}\n"
UNITS = 3
"""A root Application and its two children, each with a ConfigMap."""
MAX_REQUESTS = 26
"""Requests of a sync of two objects in two child units, with those of its lease and its records."""
MAX_PLAIN_REQUESTS = 22
"""Requests of a sync of two objects in a directory."""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "apps").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "root.yaml").write_text(APPLICATION.format(name="root", url=URL, path="apps"))
    for name in ("api", "web"):
        (folder / name).mkdir()
        (folder / "apps" / f"{name}.yaml").write_text(
            APPLICATION.format(name=name, url=URL, path=name)
        )
        (folder / name / "map.yaml").write_text(MAP.format(name=name))
    return folder


def count(repository: Path, *words: str | Path) -> Mapping[str, int]:
    """Run a command on a repository, and return how often it did what."""
    log = repository.parent / "counts"
    known = {"PATH": "/usr/bin:/bin", "HOME": str(repository.parent)}
    command = [*map(str, words)]
    ran = WarmRun(command, repository, known, first=counter(log)).to_its_end()
    assert ran.returncode in {0, 3}, ran.stderr
    return read_counts(log)


@pytest.mark.parametrize("words", ["lint", "plan", "graph", "waves", "sync --sandbox"])
def test_a_command_that_plans_does_everything_once(repository: Path, words: str) -> None:
    counts = count(repository, *words.split(), "--offline")

    assert counts == {"discoveries": 1, "renders": UNITS, "plans": 1, "requests": 0}


@pytest.mark.parametrize("words", ["units", "render"])
def test_a_command_without_a_plan_renders_once(repository: Path, words: str) -> None:
    counts = count(repository, *words.split(), "--offline")

    assert counts == {"discoveries": 1, "renders": UNITS, "plans": 0, "requests": 0}


async def test_a_confirmed_sync_does_everything_once(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    async with served_cluster(tmp_path / "cluster", served=False):
        config = tmp_path / "cluster" / KUBECONFIG
        counts = await asyncio.to_thread(
            count, repository, "sync", "--yes", "--offline", "--kubeconfig", config
        )

    assert {**counts, "requests": 0} == {
        "discoveries": 1,
        "renders": UNITS,
        "plans": 1,
        "requests": 0,
    }
    assert counts["requests"] <= MAX_REQUESTS


async def test_a_sync_of_a_directory_sends_few_requests(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "maps.yaml").write_text("---\n".join(MAP.format(name=name) for name in "ab"))
    (tmp_path / "cluster").mkdir()
    async with served_cluster(tmp_path / "cluster", served=False):
        config = tmp_path / "cluster" / KUBECONFIG
        counts = await asyncio.to_thread(count, folder, "sync", "--yes", "--kubeconfig", config)

    assert {**counts, "requests": 0} == {
        "discoveries": 1,
        "renders": 1,
        "plans": 1,
        "requests": 0,
    }
    assert counts["requests"] <= MAX_PLAIN_REQUESTS

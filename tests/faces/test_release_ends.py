"""Releases that left Git, or became others: they end as Helm ends them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.kept_sandbox import KeptSandbox
from tests.fakes.releases import (
    CONFIG_MAP,
    ChartRepository,
    config_map,
    hook,
    records,
    stands,
)
from tests.fakes.repositories import Repository, git_repository, kustomization, namespace
from tests.fakes.tidegate_command import Ran

APPS = "apps/release.yaml"


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptSandbox:
    home = tmp_path / "home"
    home.mkdir()
    return KeptSandbox.make(home, monkeypatch, namespace("shop"), served=False)


@pytest.fixture
def shop(tmp_path: Path) -> ChartRepository:
    """A release in a file that a Kustomization applies, which prunes."""
    made = ChartRepository(tmp_path / "repository", file=APPS)
    apps = kustomization("apps", "./apps", into="")
    Repository(made.root).put("clusters/main/all.yaml", git_repository(), apps)
    made.put("values.yaml", "to: one\n")
    made.put("templates/web.yaml", config_map("web", to="'{{ .Values.to }}'"))
    made.put("templates/service.yaml", SERVICE)
    made.put("templates/before.yaml", hook("before", "pre-delete", policy="hook-succeeded"))
    made.put("templates/behind.yaml", hook("behind", "post-delete", policy="hook-succeeded"))
    return made


SERVICE = """apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  ports: [{port: 80}]
"""


def leave(shop: ChartRepository) -> None:
    Repository(shop.root).put(APPS, namespace(shop.home))


def deeds_since(sandbox: KeptSandbox, before: int) -> list[str]:
    """What was done to objects of the release, its hooks and its records."""
    words = ("jobs/before", "jobs/behind", "services/web", "configmaps/web", "secrets/sh.helm")
    done = [one for one in sandbox.deeds()[before:] if one.split()[1].startswith(words)]
    return [one for one in done if one.split()[0] in {"create", "delete"}]


def test_a_release_that_left_git_is_uninstalled_as_helm_does(
    sandbox: KeptSandbox, shop: ChartRepository
) -> None:
    first = sandbox.sync(shop.root)
    assert first.code == 0, first.stderr
    shop.release(values={"to": "two"})
    sandbox.sync(shop.root)
    before = len(sandbox.deeds())
    leave(shop)

    ended = sandbox.sync(shop.root)

    assert ended.code == 0, ended.stdout + ended.stderr
    assert "`HelmRelease/shop/web` has left Git; what it has brought is deleted" in ended.stderr
    assert records(sandbox) == []
    assert deeds_since(sandbox, before) == [
        "create jobs/before",
        "delete services/web",
        "delete configmaps/web",
        "create jobs/behind",
        "delete jobs/before",
        "delete jobs/behind",
        "delete secrets/sh.helm.release.v1.web.v1",
        "delete secrets/sh.helm.release.v1.web.v2",
    ]
    again = sandbox.sync(shop.root)
    assert (again.code, "has left Git" in again.stderr) == (0, False)

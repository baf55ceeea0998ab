"""A sync of chosen objects of an Application."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.argocd.stage import case
from tests.support.persistent_sandbox import APPLICATION, PersistentSandbox
from tests.support.repositories import Repository, application, deployment, job, namespace
from tidegate.model.k8s.json_fields import get_list, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind

SERVICE, JOB = Kind("", "v1", "Service"), Kind("batch", "v1", "Job")
DEPLOYMENT = Kind("apps", "v1", "Deployment")


def service(name: str, inside: str) -> JsonObject:
    spec: Json = {"selector": {"app": name}, "ports": [{"port": 80}]}
    head: JsonObject = {"apiVersion": "v1", "kind": "Service"}
    return {**head, "metadata": {"name": name, "namespace": inside}, "spec": spec}


def a_shop(root: Path) -> Repository:
    """One Application with two Services of one name, a Deployment and a hook."""
    made = Repository(root)
    made.put("apps/all.yaml", application("all", "own", into="argocd"))
    made.put("own/web.yaml", application("web", "web", into="shop"))
    made.put(
        "web/all.yaml",
        service("x", "shop"),
        service("x", "other"),
        deployment("web"),
        job("before", hook="PreSync"),
    )
    return made


@case(66)
def test_a_selective_sync_runs_no_hooks_and_writes_no_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spaces = namespace("shop"), namespace("other")
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, *spaces)
    made = a_shop(tmp_path / "platform")
    in_repository = ("-C", made.root, "--sandbox", "--offline")

    ran = cluster.run("argocd", "app", "sync", "web", "--resource", ":Service:x", *in_repository)
    web = cluster.all(APPLICATION, "argocd").get("web", {})

    assert ran.code == 0, ran.stdout + ran.stderr
    assert [*cluster.all(SERVICE, "shop"), *cluster.all(SERVICE, "other")] == ["x", "x"]
    assert not cluster.all(DEPLOYMENT, "shop")
    assert not get_list(web, "status", "history")
    assert get_text(web, "status", "sync", "status") != "Synced"

    both = ("--resource", ":Service:x", "--resource", "apps:Deployment:web")
    every = cluster.run("argocd", "app", "sync", "web", *both, *in_repository)

    assert every.code == 0, every.stdout + every.stderr
    assert [*cluster.all(DEPLOYMENT, "shop")] == ["web"]
    assert not cluster.all(JOB, "shop"), "hooks are not run even if all else is chosen"

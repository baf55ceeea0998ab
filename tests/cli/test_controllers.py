"""Verbs of Flux and Argo CD where their controllers run: they send requests and wait."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.cli.test_statuses import a_chain
from tests.cli.test_takeover import ARGO, FLUX, a_controller
from tests.support.persistent_sandbox import APPLICATION, KUSTOMIZATION, PersistentSandbox
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import (
    application,
    deployment,
    git_repository,
    kustomization,
    setting,
    three_levels,
)
from tests.support.served_cluster import flux_answer, served_cluster
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject, Kind

CONFIG_MAP = Kind("", "v1", "ConfigMap")
GIT = Kind("source.toolkit.fluxcd.io", "v1", "GitRepository")
REFRESH = "argocd.argoproj.io/refresh"
REQUESTED = "reconcile.fluxcd.io/requestedAt"


def is_progress(line: str) -> bool:
    """Whether a line is not one that Flux's own command prints."""
    return line.startswith("◎ ") and not line.endswith(" reconciliation")


def source_controller() -> JsonObject:
    pod = a_controller({"app": "source-controller"})
    return {**pod, "metadata": {**get_mapping(pod, "metadata"), "name": "source-controller-0"}}


async def test_reconcile_annotates_the_objects_of_a_running_flux_and_waits_for_it(
    tmp_path: Path,
) -> None:
    made = a_chain(tmp_path / "platform")
    given = (
        a_controller(FLUX),
        source_controller(),
        kustomization("web", "./web"),
        git_repository(),
    )
    async with (
        served_cluster(tmp_path, *given) as cluster,
        cluster.answering(KUSTOMIZATION, flux_answer),
        cluster.answering(GIT, flux_answer),
    ):
        ran = await cluster.run("flux", "reconcile", "ks", "web", "--with-source", "-C", made.root)

        assert ran.code == 0, ran.stdout + ran.stderr
        assert ran.stdout.startswith("target: ")
        lines = [line for line in ran.stderr.splitlines() if line[:1] in "►✔◎✗"]
        assert len({line for line in lines if is_progress(line)}) <= 1
        assert [line for line in lines if not is_progress(line)] == [
            "► annotating GitRepository platform in flux-system namespace",
            "✔ GitRepository annotated",
            "◎ waiting for GitRepository reconciliation",
            "✔ fetched revision main@sha1:abc",
            "► annotating Kustomization web in flux-system namespace",
            "✔ Kustomization annotated",
            "◎ waiting for Kustomization reconciliation",
            "✔ applied revision main@sha1:abc",
        ]
        web = await cluster.body(KUSTOMIZATION, "flux-system", "web")
        assert get_text(web, "metadata", "annotations", REQUESTED)
        assert await cluster.names(CONFIG_MAP, "default") == {"kube-root-ca.crt"}, "nothing else"


async def test_reconcile_prints_why_a_unit_is_not_ready_while_it_waits(
    tmp_path: Path,
) -> None:
    made = a_chain(tmp_path / "platform")
    given = (a_controller(FLUX), kustomization("web", "./web"))
    async with (
        served_cluster(tmp_path, *given) as cluster,
        cluster.answering(KUSTOMIZATION, partial(flux_answer, ready=False)),
    ):
        ran = await cluster.run(
            "flux", "reconcile", "ks", "web", "--timeout", "2s", "-C", made.root
        )

    assert ran.code == 8, ran.stdout + ran.stderr
    assert "◎ dependency 'flux-system/data' is not ready" in ran.stderr
    assert "✗ context deadline exceeded" in ran.stderr
    assert "error[cluster.wait-timeout]: `Kustomization/flux-system/web` " in ran.stderr


async def test_a_running_argo_cd_gets_the_operation_of_its_own_command(
    wording: RecordedWording, tmp_path: Path
) -> None:
    made = three_levels(tmp_path / "platform")
    red: JsonObject = {
        **application("red", "red"),
        "status": {"operationState": {"startedAt": "earlier"}},
    }

    def answer(resource: JsonObject) -> JsonObject | None:
        if get_text(resource, "metadata", "annotations", REFRESH):
            return {"metadata": {"annotations": {REFRESH: None}}}
        if get_value(resource, "operation") is None:
            return None
        state: Json = {
            "phase": "Succeeded",
            "message": "successfully synced (all tasks run)",
            "startedAt": get_text(resource, "metadata", "resourceVersion"),
            "operation": resource["operation"],
            "syncResult": {"revision": "abc"},
        }
        return {"operation": None, "status": {"operationState": state}}

    async with (
        served_cluster(tmp_path, a_controller(ARGO), red) as cluster,
        cluster.answering(APPLICATION, answer, status=False),
    ):
        sync = ("argocd", "app", "sync", "red", "-C", made.root)
        ran = await cluster.run(*sync, "--prune", "--force", "--revision", "v2")
        whole = await cluster.body(APPLICATION, "argocd", "red")
        few = await cluster.run(*sync, "--resource", "apps:Deployment:red-web")
        last = await cluster.body(APPLICATION, "argocd", "red")
        got = await cluster.run("argocd", "app", "get", "red", "--refresh", "-C", made.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    wording(ran.stderr.splitlines()[0])
    assert ran.stderr.splitlines()[-1] == "✔ successfully synced (all tasks run) (abc)"
    assert get_mapping(whole, "status", "operationState", "operation", "sync") == {
        "revision": "v2",
        "prune": True,
        "syncStrategy": {"hook": {"force": True}},
    }
    assert few.code == 0, few.stdout + few.stderr
    assert get_list(last, "status", "operationState", "operation", "sync", "resources") == [
        {"group": "apps", "kind": "Deployment", "name": "red-web"}
    ]
    assert got.code == 0, got.stdout + got.stderr
    assert REFRESH not in get_mapping(last, "metadata", "annotations")


def test_force_recreates_an_object_with_an_immutable_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = (
        PersistentSandbox.make(tmp_path, monkeypatch),
        three_levels(tmp_path / "platform"),
    )
    cluster.sync(made.root)
    other = deployment("red-web")
    get_mapping(other, "spec", "selector", "matchLabels")["tier"] = "front"
    get_mapping(other, "spec", "template", "metadata", "labels")["tier"] = "front"
    made.put("red/all.yaml", other, setting("red-late", wave=1))
    args = ("argocd", "app", "sync", "red", "-C", made.root, "--sandbox")

    refused = cluster.run(*args)
    forced = cluster.run(*args, "--force")
    without_controller = cluster.run(*args, "--revision", "v1")

    assert refused.code == 3, refused.stdout + refused.stderr
    assert forced.code == 0, forced.stdout + forced.stderr
    live = cluster.all(Kind("apps", "v1", "Deployment"), "shop")["red-web"]
    assert get_text(live, "spec", "selector", "matchLabels", "tier") == "front"
    assert without_controller.code == 2
    assert "error[usage.revision]: " in without_controller.stderr
    assert "`git worktree add ../at v1`" in without_controller.stderr
    assert "`-C ../at`" in without_controller.stderr

"""`suspend` and `resume`, by the object of a unit or by a record; `sync` follows both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_takeover import ARGO, SKIPS, a_controller
from tests.support.persistent_sandbox import APPLICATION, KUSTOMIZATION
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import (
    Repository,
    application,
    git_repository,
    kustomization,
    namespace,
    setting,
)
from tests.support.served_cluster import served_cluster
from tests.support.tidegate_runs import FIRST, tidegate
from tidegate.model.k8s.json_fields import get_mapping, get_text, get_value
from tidegate.model.k8s.objects import JsonObject, Kind

CONFIG_MAP = Kind("", "v1", "ConfigMap")
GIT = Kind("source.toolkit.fluxcd.io", "v1", "GitRepository")


def two_layers(root: Path) -> Repository:
    made = Repository(root)
    made.put("clusters/main/source.yaml", git_repository())
    made.put("clusters/main/ground.yaml", kustomization("ground", "./ground", into=""))
    made.put("clusters/main/web.yaml", kustomization("web", "./web", after=("ground",)))
    made.put("ground/all.yaml", namespace("shop"))
    made.put("web/all.yaml", setting("web"))
    return made


@pytest.mark.parametrize("served", [True, False])
async def test_nothing_is_done_to_a_unit_until_it_is_resumed(
    wording: RecordedWording, tmp_path: Path, *, served: bool
) -> None:
    made = two_layers(tmp_path / "platform")
    given = (kustomization("web", "./web"),) if served else ()
    async with served_cluster(tmp_path, *given, served=served) as cluster:
        suspended = await cluster.run("flux", "suspend", "ks", "web", "-C", made.root)
        left = await cluster.roll_out("sync", made.root, "--yes")
        refused = await cluster.roll_out("flux", "reconcile", "ks", "web", "--yes", "-C", made.root)
        before = await cluster.names(CONFIG_MAP, "shop")
        resumed = await cluster.run("flux", "resume", "kustomizations", "--all", "-C", made.root)
        done = await cluster.roll_out("sync", made.root, "--yes")
        after = await cluster.names(CONFIG_MAP, "shop")

    assert suspended.code == 0, suspended.stderr
    lines = suspended.stderr.splitlines()
    assert lines[0] == "► suspending kustomization web in flux-system namespace"
    assert lines[1] == "✔ kustomization suspended"
    wording(suspended.stderr)
    assert left.code == 0, left.stdout + left.stderr
    assert any(
        "note[units.suspended]" in line and "`Kustomization/flux-system/web`" in line
        for line in left.stderr.splitlines()
    )
    assert "web" not in before
    assert (refused.code, refused.stdout) == (5, ""), refused.stderr
    assert any(
        "error[cluster.suspended]" in line and "`Kustomization/flux-system/web`" in line
        for line in refused.stderr.splitlines()
    )
    assert "✔ kustomization resumed" in resumed.stderr
    assert done.code == 0, done.stdout + done.stderr
    assert "web" in after


async def test_sources_and_applications_are_suspended_with_the_terms_of_their_tools(
    tmp_path: Path,
) -> None:
    made = two_layers(tmp_path / "platform")
    made.put("apps/red.yaml", application("red", "web"))
    given = (git_repository(), application("red", "web"))
    async with served_cluster(tmp_path, *given) as cluster:
        source = await cluster.run("flux", "suspend", "source", "git", "platform", "-C", made.root)
        app = await cluster.run("suspend", made.root, "--unit", "app/red", "-o", "json")
        suspended = await cluster.body(GIT, "flux-system", "platform")
        skipped = await cluster.body(APPLICATION, "argocd", "red")
        await cluster.run("flux", "resume", "source", "platform", "-C", made.root)
        await cluster.run("resume", made.root, "--unit", "red")
        platform = await cluster.body(GIT, "flux-system", "platform")
        red = await cluster.body(APPLICATION, "argocd", "red")

    assert source.code == 0, source.stderr
    assert get_value(suspended, "spec", "suspend") is True
    assert get_text(skipped, "metadata", "annotations", SKIPS) == "true"
    assert json.loads(app.stdout)["suspended"] is True
    assert get_value(platform, "spec", "suspend") is False
    assert not get_text(red, "metadata", "annotations", SKIPS)


async def test_no_reconciliation_is_requested_for_a_suspended_unit(tmp_path: Path) -> None:
    made = two_layers(tmp_path / "platform")
    flux = a_controller({"app": "kustomize-controller"})
    web = kustomization("web", "./web", suspend=True)
    async with served_cluster(tmp_path, flux, web) as cluster:
        ran = await cluster.run("flux", "reconcile", "ks", "web", "-C", made.root)
        live = await cluster.body(KUSTOMIZATION, "flux-system", "web")

    assert ran.code == 5, ran.stdout + ran.stderr
    assert "`tidegate resume --unit Kustomization/flux-system/web`" in ran.stderr
    assert get_value(live, "metadata", "annotations") is None


async def test_resume_reports_where_git_suspends_a_unit(tmp_path: Path) -> None:
    made = two_layers(tmp_path / "platform")
    made.put("clusters/main/web.yaml", kustomization("web", "./web", suspend=True))
    async with served_cluster(tmp_path) as cluster:
        ran = await cluster.run("flux", "resume", "ks", "web", "-C", made.root)

    assert ran.code == 0, ran.stderr
    assert any(
        "warning: " in line
        and "`Kustomization/flux-system/web`" in line
        and "clusters/main/web.yaml:1" in line
        for line in ran.stderr.splitlines()
    )


def resumed_flux(resource: JsonObject) -> JsonObject | None:
    """A controller of Flux's that takes up what is no longer suspended."""
    generation = get_value(resource, "metadata", "generation")
    is_known = get_value(resource, "status", "observedGeneration") == generation
    if get_value(resource, "spec", "suspend") is True or is_known:
        return None
    condition: JsonObject = {
        "type": "Ready",
        "status": "True",
        "message": "Applied revision: main@1",
    }
    status: JsonObject = {
        "observedGeneration": generation,
        "lastAppliedRevision": "main@1",
        "conditions": [condition],
    }
    return {"status": status}


async def test_resuming_one_unit_waits_for_its_controller(
    tmp_path: Path,
) -> None:
    made = two_layers(tmp_path / "platform")
    flux = a_controller({"app": "kustomize-controller"})
    web = kustomization("web", "./web", suspend=True)
    async with served_cluster(tmp_path, flux, web) as cluster:
        timed_out = await cluster.run(
            "flux", "resume", "ks", "web", "--timeout", "1s", "-C", made.root
        )
        await cluster.run("flux", "suspend", "ks", "web", "-C", made.root)
        at_once = await cluster.run("flux", "resume", "ks", "web", "--no-wait", "-C", made.root)
        await cluster.run("flux", "suspend", "ks", "web", "-C", made.root)
        async with cluster.answering(KUSTOMIZATION, resumed_flux):
            resume = ("flux", "resume", "ks", "web", "--timeout", "1m", "-C", made.root)
            ran = await cluster.run(*resume)
            document = await cluster.run(*resume, "-o", "json")

    assert timed_out.code == 8, timed_out.stderr
    assert "✗ context deadline exceeded" in timed_out.stderr
    assert at_once.code == 0, at_once.stderr
    assert "◎ waiting" not in at_once.stderr
    assert ran.code == 0, ran.stderr
    lines = [
        line
        for line in ran.stderr.splitlines()
        if not line.startswith("◎ ") or line.endswith(" reconciliation")
    ]
    assert lines == [
        "► resuming kustomization web in flux-system namespace",
        "✔ kustomization resumed",
        "◎ waiting for Kustomization reconciliation",
        "✔ Kustomization web reconciliation completed",
        "✔ applied revision main@1",
    ]
    result = json.loads(document.stdout)
    assert (result["suspended"], result["state"], result["revision"]) == (False, "done", "main@1")


async def test_an_application_that_is_resumed_is_waited_for_until_argo_cd_is_content(
    tmp_path: Path,
) -> None:
    made = two_layers(tmp_path / "platform")
    made.put("apps/red.yaml", application("red", "web"))
    before: JsonObject = {**application("red", "web"), "status": {"reconciledAt": "earlier"}}
    get_mapping(before, "metadata")["annotations"] = {SKIPS: "true"}

    def answer(resource: JsonObject) -> JsonObject | None:
        if get_text(resource, "metadata", "annotations", SKIPS):
            return None
        at = get_text(resource, "status", "reconciledAt")
        if at == "now":
            return None
        health = "Healthy" if at == "soon" else "Progressing"
        status: JsonObject = {
            "reconciledAt": "now" if at == "soon" else "soon",
            "sync": {"status": "Synced"},
            "health": {"status": health},
        }
        return {"status": status}

    async with (
        served_cluster(tmp_path, a_controller(ARGO), before) as cluster,
        cluster.answering(APPLICATION, answer, status=False),
    ):
        ran = await cluster.run("resume", made.root, "--unit", "app/red", "--timeout", "1m")

    assert ran.code == 0, ran.stderr
    assert ran.stderr.splitlines()[-2:] == [
        "✔ Application red reconciliation completed",
        "✔ Synced, Healthy",
    ]


async def test_resume_reports_that_no_controller_is_running(tmp_path: Path) -> None:
    made = two_layers(tmp_path / "platform")
    async with served_cluster(tmp_path, kustomization("web", "./web", suspend=True)) as cluster:
        ran = await cluster.run("flux", "resume", "ks", "web", "-C", made.root)

    assert ran.code == 0, ran.stderr
    assert any(
        "note: " in line
        and "`Kustomization/flux-system/web`" in line
        and "`tidegate flux reconcile kustomization web`" in line
        for line in ran.stderr.splitlines()
    )


def test_a_plain_directory_has_nothing_to_suspend(wording: RecordedWording) -> None:
    ran = tidegate("suspend", FIRST, "--all")

    assert (ran.returncode, ran.stdout) == (2, "")
    wording(ran.stderr)

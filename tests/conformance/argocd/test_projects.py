"""Projects: what they do not allow, what belongs to others, and when they hold a sync."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conformance.argocd.stage import ArgoStage, case
from tests.support.builders import make_config_map
from tests.support.projects import of_project, two_units, written
from tests.support.repositories import setting
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.objects import Json
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import HOUR, SECOND, Ms
from tidegate.model.units.sync_window import SyncWindow
from tidegate.sandbox.world import START

NIGHT = SyncWindow(allows=False, schedule="0 0 * * *", duration=HOUR, where="team.yaml:9")
"""A simulation begins at midnight."""


def errors(ran: subprocess.CompletedProcess[str]) -> list[dict[str, str]]:
    """The errors that a run with `-o json` printed."""
    findings = [json.loads(line) for line in ran.stderr.splitlines()]
    return [finding for finding in findings if finding["severity"] == "error"]


@case(52)
def test_a_namespace_that_the_project_forbids_fails_the_sync_before_the_first_write(
    tmp_path: Path,
) -> None:
    repository = two_units(tmp_path, destinations=[{"server": "*", "namespace": "shop"}])
    repository.put("web/all.yaml", setting("web"), setting("stray", "kube-system", wave=1))

    ran = tidegate("simulate", repository.root, "-o", "json")

    assert ran.returncode == 4
    (error,) = errors(ran)
    assert (error["code"], error["location"]) == ("argo.project", "apps/web.yaml:1:1")
    assert all(name in error["message"] for name in ("`team`", "`kube-system`", "argocd/web`"))
    assert not written(ran) & {"web", "stray"}
    assert "free" in written(ran), "others are not held up"


@case(54)
@pytest.mark.parametrize("strict", [True, False])
def test_an_object_of_another_application_is_adopted_unless_fail_on_shared_resource(
    tmp_path: Path, *, strict: bool
) -> None:
    repository = two_units(tmp_path / "repo")
    options: list[Json] = ["FailOnSharedResource=true"] if strict else []
    policy: Json = {"automated": {}, "syncOptions": options}
    repository.put("apps/web.yaml", of_project("web", "web", syncPolicy=policy))
    scenario = tmp_path / "given.yaml"
    notes = '{"argocd.argoproj.io/tracking-id": "other:/ConfigMap:shop/web"}'
    scenario.write_text(
        "given:\n  objects:\n"
        "  - {apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n"
        "  - {apiVersion: v1, kind: ConfigMap,"
        f" metadata: {{name: web, namespace: shop, annotations: {notes}}}}}\n"
    )

    ran = tidegate("sync", repository.root, "--sandbox", "--scenario", scenario, "-o", "json")

    events = [json.loads(line) for line in ran.stdout.splitlines()]
    if strict:
        (error,) = errors(ran)
        assert ran.returncode == 3
        assert (error["code"], error["location"]) == ("plan.shared", "web/all.yaml:1:1")
        assert "ConfigMap shop/web " in error["message"]
        assert "`Application/argocd/other`" in error["message"]
        assert events == []
    else:
        (adopted,) = [event for event in events if event["event"] == "object.adopted"]
        assert ran.returncode == 0, ran.stderr
        assert (adopted["kind"], adopted["namespace"], adopted["name"]) == (
            "ConfigMap",
            "shop",
            "web",
        )


@case(55)
async def test_a_closed_window_delays_the_sync_until_it_opens(
    stage: ArgoStage,
) -> None:
    syncing = await stage.begin_sync(make_config_map(), windows=(NIGHT,))
    await stage.passes(Ms(HOUR - SECOND))
    before = await stage.exists(make_config_map())

    run = await syncing.ends()

    (held,) = run.events_of(EventType.STEP_WAITING)
    assert not before
    assert (held.reason, held.until) == ("Window", START + HOUR)
    assert all(text in held.message for text in ("`deny`", "`0 0 * * *`", "team.yaml:9"))
    assert run.result == "passed"
    assert await stage.exists(make_config_map())


@case(55)
async def test_a_closed_window_does_not_delay_a_unit_that_is_in_sync(stage: ArgoStage) -> None:
    await stage.sync(make_config_map())

    run = await stage.sync(make_config_map(), windows=(NIGHT,))

    assert run.result == "passed"
    assert run.events_of(EventType.STEP_WAITING) == []

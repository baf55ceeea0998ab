"""Repositories of units on simulated clusters, from outside."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.repositories import (
    Repository,
    application,
    deployment,
    git_repository,
    kustomization,
    namespace,
    setting,
    three_levels,
)
from tests.support.tidegate_runs import tidegate
from tests.support.unit_commands import Checkout
from tidegate.model.k8s.objects import Json

Ran = CompletedProcess[str]
BEGINS = "step.applying"


def moments(ran: Ran, event_type: str = BEGINS, engine: str = "") -> dict[str, float]:
    """By step, the second of its last event of this type."""
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    engine_events = [
        event for event in events if event.get("engine", "") == engine and "at" in event
    ]
    return {
        item["step"].rpartition("argocd/")[2].rpartition("flux-system/")[2]: (
            round((item["at"] - engine_events[0]["at"]) / 1000, 1)
        )
        for item in engine_events
        if item["event"] == event_type
    }


def json_lines(output: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in output.splitlines()]


def findings(ran: Ran, code: str) -> list[dict[str, str]]:
    return [item for item in json_lines(ran.stderr) if item.get("code") == code]


def written_names(ran: Ran) -> list[str]:
    events = json_lines(ran.stdout)
    return sorted(event["name"] for event in events if event["event"] == "object.written")


def simulated(repository: Repository, engine: str, *args: str) -> Ran:
    return tidegate("simulate", repository.root, "--engine", engine, "-o", "json", *args)


def test_three_levels_are_rolled_out_in_order_and_parents_wait_for_them(tmp_path: Path) -> None:
    ran = tidegate("sync", three_levels(tmp_path).root, "--sandbox", "-o", "json")

    assert ran.returncode == 0, ran.stderr
    begins, ends = moments(ran), moments(ran, "step.passed")
    assert list(begins)[:3] == ["root/sync/-2", "root/sync/-1", "base/presync/0"]
    for before, after in (
        ("base/postsync/0", "red/sync/0"),
        ("red/sync/1", "blue/sync/0"),
        ("blue/sync/1", "root/sync/2"),
    ):
        assert ends[before] <= begins[after], (before, after)


def test_with_argo_cd_semantics_a_parent_continues_while_its_children_sync(
    tmp_path: Path,
) -> None:
    repository = three_levels(tmp_path)

    ran = simulated(repository, "native")
    same = simulated(repository, "argocd")

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == same.stdout
    begins = moments(ran, engine="argocd")
    root = [begins[f"root/sync/{wave}"] for wave in (-2, -1, 2)]
    assert root == [0.0, 2.0, 8.0], "two seconds for each wave, and one for each of children"
    assert begins["base/presync/0"] == 4.0, "with the wave that creates it"
    assert begins["red/sync/0"] == 6.0, "with the next one, though `base` is not done"
    assert begins["blue/sync/0"] == 8.0, "two seconds later, in the waves of `teams`"


def test_with_argo_cd_semantics_a_child_without_automated_sync_is_not_synced(
    tmp_path: Path,
) -> None:
    repository = three_levels(tmp_path)
    repository.put("teams/red.yaml", application("red", "red", sync={}))
    repository.put("clusters/main/teams.yaml", application("teams", "teams", into="argocd"))

    by_argo = simulated(repository, "argocd")
    by_us = simulated(repository, "tidegate")

    (manual,) = findings(by_argo, "argo.manual")
    assert manual["severity"] == "warning"
    assert "`Application/argocd/red`" in manual["message"]
    assert manual["location"].startswith("teams/red.yaml:1:1")
    assert not any(moment.startswith("red/") for moment in moments(by_argo, engine="argocd"))
    assert "red/sync/0" in moments(by_us, engine="tidegate")
    assert "argo.manual" not in by_us.stderr


def a_chain(root: Path) -> Repository:
    """Units of Flux: `ground`, then `data`, then `web`; and a parent of all."""
    made = Repository(root)
    made.put("clusters/main/source.yaml", git_repository())
    made.put("clusters/main/apps.yaml", kustomization("apps", "./apps", into="", wait=False))
    made.put("apps/ground.yaml", kustomization("ground", "./ground", into=""))
    made.put("apps/data.yaml", kustomization("data", "./data", after=("ground",)))
    made.put("apps/web.yaml", kustomization("web", "./web", after=("data",)))
    made.put("ground/all.yaml", namespace("shop"))
    made.put("data/all.yaml", deployment("data"))
    made.put("web/all.yaml", setting("web"))
    return made


def test_with_flux_semantics_dependencies_are_checked_every_thirty_seconds(tmp_path: Path) -> None:
    repository = a_chain(tmp_path)

    by_flux, by_us = simulated(repository, "native"), simulated(repository, "tidegate")

    slow, fast = moments(by_flux, engine="flux"), moments(by_us, engine="tidegate")
    names = ("ground/definitions", "data/rest", "web/rest")
    assert [slow[name] for name in names] == [0.0, 30.0, 60.0]
    assert [fast[name] for name in names] == [0.0, 0.0, 3.0]


def test_a_suspended_unit_is_not_applied_and_not_waited_for(
    tmp_path: Path,
) -> None:
    repository = a_chain(tmp_path)
    suspended = kustomization("data", "./data", after=("ground",), suspend=True)
    repository.put("apps/data.yaml", suspended)

    ran = tidegate("sync", repository.root, "--sandbox", "-o", "json")

    assert ran.returncode == 0, ran.stderr
    (ignored,) = findings(ran, "units.suspended")
    assert "`Kustomization/flux-system/data`" in ignored["message"]
    (dependency,) = findings(ran, "units.dependency-suspended")
    assert dependency["message"].startswith("`Kustomization/flux-system/web` ")
    assert dependency["message"].endswith(" `Kustomization/flux-system/data`")
    assert set(moments(ran)) == {"ground/definitions", "web/rest"}


def test_an_object_of_flux_without_a_namespace_is_refused_with_its_location(tmp_path: Path) -> None:
    repository = a_chain(tmp_path)
    repository.put("apps/web.yaml", kustomization("web", "./web", into="", after=("data",)))

    refused = tidegate("sync", repository.root, "--sandbox")
    rest = tidegate("sync", repository.root, "--sandbox", "--skip-broken", "-o", "json")

    assert refused.returncode == 3
    (error,) = [line for line in refused.stderr.splitlines() if "error[dialect.namespace]" in line]
    assert "ConfigMap `web`" in error
    assert "at web/all.yaml:1:1" in refused.stderr
    assert rest.returncode == 4, rest.stderr
    assert set(moments(rest)) == {"ground/definitions", "data/rest"}


def test_units_that_wait_for_an_unrendered_unit_are_left_out(
    tmp_path: Path,
) -> None:
    repository = three_levels(tmp_path)
    repository.put("red/all.yaml", setting("red"))
    (repository.root / "red/kustomization.yaml").write_text("resources: [nowhere.yaml]\n")

    refused = tidegate("sync", repository.root, "--sandbox")
    rest = tidegate("sync", repository.root, "--sandbox", "--skip-broken", "-o", "json")

    assert refused.returncode == 3
    assert "error[render.kustomize.missing]: `Application/argocd/red` " in refused.stderr
    assert rest.returncode == 4, rest.stderr
    units = {moment.partition("/")[0] for moment in moments(rest)}
    assert units == {"root", "base"}, "`blue` is after `red`, and so is the end of `root`"
    assert "root/sync/2" not in moments(rest)


def test_a_namespace_is_created_by_a_unit_with_the_option_or_else_missing(
    tmp_path: Path,
) -> None:
    repository = Repository(tmp_path)
    repository.put("root.yaml", application("root", "web", into="fresh"))
    repository.put("web/all.yaml", setting("web"))
    missed = tidegate("sync", repository.root, "--sandbox", "--empty-cluster", "-o", "json")
    assumed = tidegate("sync", repository.root, "--sandbox")
    options: Json = {"automated": {}, "syncOptions": ["CreateNamespace=true"]}
    repository.put("root.yaml", application("root", "web", into="fresh", sync=options))

    made = tidegate("sync", repository.root, "--sandbox", "-o", "json")

    assert missed.returncode == 3
    (error,) = findings(missed, "preflight.no-namespace")
    assert error["message"].startswith("ConfigMap fresh/web: ")
    (missing_dependency,) = [
        line for line in missed.stderr.splitlines() if "cluster.missing-dependency" in line
    ]
    assert json.loads(missing_dependency) == {
        "event": "cluster.missing-dependency",
        "type": "namespace",
        "name": "fresh",
        "neededBy": ["ConfigMap fresh/web"],
    }
    assert (assumed.returncode, "  namespaces: [fresh]\n" in assumed.stderr) == (0, True)
    assert made.returncode == 0, made.stdout + made.stderr
    assert written_names(made) == ["fresh", "web"]


def test_units_are_applied_to_their_destination_clusters(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    sync: Json = {"automated": {}, "syncOptions": ["CreateNamespace=true"]}
    for name in ("east", "west"):
        unit = application(f"web-{name}", "web", cluster=name, into="web", sync=sync)
        repository.put(f"apps/{name}.yaml", unit)
    repository.put("root.yaml", application("root", "apps", into="argocd"))
    repository.put("web/all.yaml", setting("web"))

    ran = tidegate("sync", repository.root, "--sandbox", "-o", "json")

    assert ran.returncode == 0, ran.stderr
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    written = [event for event in events if event["event"] == "object.written"]
    places = [(item["cluster"], item["name"]) for item in written]
    assert sorted(places) == [("east", "web"), ("east", "web"), ("west", "web"), ("west", "web")]


@pytest.mark.parametrize(
    "args",
    [
        ("--namespace", "x"),
        ("--name", "x"),
        ("--set", "a=b"),
        ("--sync-option", "CreateNamespace=true"),
        ("--ignore-waves",),
    ],
)
def test_options_for_a_plain_directory_are_refused_for_units(
    tmp_path: Path, args: tuple[str, ...]
) -> None:
    repository = three_levels(tmp_path)

    ran = tidegate("sync", repository.root, "--sandbox", *args)

    assert ran.returncode == 2
    assert ran.stderr.startswith(f"error[usage.plain]: `{args[0]}` ")
    assert ran.stdout == ""


def test_single_objects_of_units_can_be_selected(tmp_path: Path) -> None:
    repository = three_levels(tmp_path)
    chosen = ("--resource", ":Namespace:shop", "--resource", ":ConfigMap:end")

    ran = tidegate("sync", repository.root, "--sandbox", "-o", "json", *chosen)
    both = tidegate("sync", repository.root, "--sandbox", "--prune", *chosen)

    assert ran.returncode == 0, ran.stderr
    assert written_names(ran) == ["end", "shop"]
    assert both.returncode == 3
    assert both.stderr.startswith("error[plan.partial]")


def test_a_unit_that_is_not_fully_known_prunes_nothing_and_is_reported(tmp_path: Path) -> None:
    shape = Checkout.for_shape("flux-bootstrapped", tmp_path)

    ran = tidegate("plan", shape.root, "--offline", "--prune")

    (warning,) = [line for line in ran.stderr.splitlines() if "warning[units.unpruned]" in line]
    assert "`Kustomization/flux-system/apps`" in warning

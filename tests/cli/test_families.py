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


def moments(ran: Ran, result: str = BEGINS, engine: str = "") -> dict[str, float]:
    """By step, the second in which something was told of it last."""
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    mine = [event for event in events if event.get("engine", "") == engine and "at" in event]
    return {
        item["step"].rpartition("argocd/")[2].rpartition("flux-system/")[2]: (
            round((item["at"] - mine[0]["at"]) / 1000, 1)
        )
        for item in mine
        if item["event"] == result
    }


def simulated(repository: Repository, engine: str, *words: str) -> Ran:
    return tidegate("simulate", repository.root, "--engine", engine, "-o", "json", *words)


def test_three_levels_come_in_order_and_their_parents_wait_for_them(tmp_path: Path) -> None:
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


def test_by_argo_cd_a_parent_goes_on_while_its_children_have_waves_of_their_own(
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
    assert begins["base/presync/0"] == 4.0, "with the wave that brings it"
    assert begins["red/sync/0"] == 6.0, "with the next one, though `base` is not done"
    assert begins["blue/sync/0"] == 8.0, "two seconds behind, in the waves of `teams`"


def test_by_argo_cd_nobody_syncs_a_child_that_is_not_automated(tmp_path: Path) -> None:
    repository = three_levels(tmp_path)
    repository.put("teams/red.yaml", application("red", "red", sync={}))
    repository.put("clusters/main/teams.yaml", application("teams", "teams", into="argocd"))

    by_argo = simulated(repository, "argocd")
    by_us = simulated(repository, "tidegate")

    findings = [json.loads(line) for line in by_argo.stderr.splitlines()]
    (manual,) = [finding for finding in findings if finding["code"] == "argo.manual"]
    assert manual["severity"] == "warning"
    assert manual["message"] == "nobody syncs `Application/argocd/red`: it is left out"
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


def test_by_flux_a_unit_looks_at_what_it_depends_on_every_thirty_seconds(tmp_path: Path) -> None:
    repository = a_chain(tmp_path)

    by_flux, by_us = simulated(repository, "native"), simulated(repository, "tidegate")

    slow, fast = moments(by_flux, engine="flux"), moments(by_us, engine="tidegate")
    names = ("ground/definitions", "data/rest", "web/rest")
    assert [slow[name] for name in names] == [0.0, 30.0, 60.0]
    assert [fast[name] for name in names] == [0.0, 0.0, 3.0]


def test_a_suspended_unit_is_left_alone_with_what_it_brings_and_nobody_waits_for_it(
    tmp_path: Path,
) -> None:
    repository = a_chain(tmp_path)
    suspended = kustomization("data", "./data", after=("ground",), suspend=True)
    repository.put("apps/data.yaml", suspended)

    ran = tidegate("sync", repository.root, "--sandbox", "-o", "json")

    assert ran.returncode == 0, ran.stderr
    assert "nothing is done to `Kustomization/flux-system/data`" in ran.stderr
    assert "`Kustomization/flux-system/web` does not wait for `Kustomization/flux-system/data`" in (
        ran.stderr
    )
    assert set(moments(ran)) == {"ground/definitions", "web/rest"}


def test_an_object_of_flux_without_any_namespace_is_refused_at_its_place(tmp_path: Path) -> None:
    repository = a_chain(tmp_path)
    repository.put("apps/web.yaml", kustomization("web", "./web", into="", after=("data",)))

    refused = tidegate("sync", repository.root, "--sandbox")
    rest = tidegate("sync", repository.root, "--sandbox", "--skip-broken", "-o", "json")

    assert refused.returncode == 3
    assert "ConfigMap `web` has no namespace, nor does its unit give it one" in refused.stderr
    assert "at web/all.yaml:1:1" in refused.stderr
    assert rest.returncode == 4, rest.stderr
    assert set(moments(rest)) == {"ground/definitions", "data/rest"}


def test_what_waits_for_a_unit_that_could_not_be_rendered_is_left_out_with_it(
    tmp_path: Path,
) -> None:
    repository = three_levels(tmp_path)
    repository.put("red/all.yaml", setting("red"))
    (repository.root / "red/kustomization.yaml").write_text("resources: [nowhere.yaml]\n")

    refused = tidegate("sync", repository.root, "--sandbox")
    rest = tidegate("sync", repository.root, "--sandbox", "--skip-broken", "-o", "json")

    assert refused.returncode == 3
    assert "`Application/argocd/red` is not rendered" in refused.stderr
    assert rest.returncode == 4, rest.stderr
    units = {moment.partition("/")[0] for moment in moments(rest)}
    assert units == {"root", "base"}, "`blue` is behind `red`, and so is the end of `root`"
    assert "root/sync/2" not in moments(rest)


def test_a_namespace_comes_with_a_unit_that_creates_it_and_is_missed_where_none_does(
    tmp_path: Path,
) -> None:
    repository = Repository(tmp_path)
    repository.put("root.yaml", application("root", "web", into="fresh"))
    repository.put("web/all.yaml", setting("web"))
    missed = tidegate("sync", repository.root, "--sandbox", "--empty-cluster")
    assumed = tidegate("sync", repository.root, "--sandbox")
    options: Json = {"automated": {}, "syncOptions": ["CreateNamespace=true"]}
    repository.put("root.yaml", application("root", "web", into="fresh", sync=options))

    made = tidegate("sync", repository.root, "--sandbox")

    assert missed.returncode == 3
    assert "there is no namespace `fresh`, nor does the plan bring it" in missed.stderr
    assert "missing: namespaces\n  fresh  for ConfigMap fresh/web\n" in missed.stderr
    assert (assumed.returncode, "  namespaces: [fresh]\n" in assumed.stderr) == (0, True)
    assert made.returncode == 0, made.stdout + made.stderr
    assert "2 written" in made.stdout


def test_units_go_to_the_clusters_that_they_name(tmp_path: Path) -> None:
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
    "words",
    [
        ("--namespace", "x"),
        ("--name", "x"),
        ("--set", "a=b"),
        ("--sync-option", "CreateNamespace=true"),
        ("--ignore-waves",),
    ],
)
def test_words_for_a_plain_unit_are_refused_where_units_say_it_themselves(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    repository = three_levels(tmp_path)

    ran = tidegate("sync", repository.root, "--sandbox", *words)

    assert ran.returncode == 2
    assert ran.stderr.startswith(f"error[usage.plain]: `{words[0]}` is for a plain directory")
    assert ran.stdout == ""


def test_single_objects_of_units_that_prune_can_be_chosen(tmp_path: Path) -> None:
    repository = three_levels(tmp_path)
    chosen = ("--resource", ":Namespace:shop", "--resource", ":ConfigMap:end")

    ran = tidegate("sync", repository.root, "--sandbox", *chosen)
    both = tidegate("sync", repository.root, "--sandbox", "--prune", *chosen)

    assert ran.returncode == 0, ran.stderr
    assert "2 written" in ran.stdout
    assert both.returncode == 3
    assert both.stderr.startswith("error[plan.partial]")


def test_a_unit_of_which_not_all_is_known_prunes_nothing_and_that_is_told(tmp_path: Path) -> None:
    shape = Checkout.of("flux-bootstrapped", tmp_path)

    ran = tidegate("plan", shape.root, "--offline", "--prune")

    assert "warning[units.unpruned]: nothing of `Kustomization/flux-system/apps` is pruned" in (
        ran.stderr
    )

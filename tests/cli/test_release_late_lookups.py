"""A chart that looks up objects of another unit of the same rollout sees them at its turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.persistent_sandbox import PersistentSandbox, definition
from tests.support.recorded_wording import RecordedWording
from tests.support.releases import (
    CONFIG_MAP,
    ChartRepository,
    config_map,
    helm_release,
    records,
    revision_statuses,
)
from tests.support.repositories import Repository, git_repository, kustomization, namespace
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind

FOUND = """'{{ with lookup "v1" "ConfigMap" "sea" "base" }}{{ .data.to }}{{ else }}none{{ end }}'"""
NEEDED = """'{{ (lookup "v1" "ConfigMap" "sea" "base").data.to }}'"""
COUNTED = """'{{ len (lookup "v1" "ConfigMap" "shop" "").items }}'"""
MORE = """\
{{- if eq (lookup "v1" "ConfigMap" "sea" "base").data.to "the truth" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: more}
{{- end }}
"""
BUOY = Kind("sea.example", "v1", "Buoy")
FOUND_BUOY = """lookup "sea.example/v1" "Buoy" "flux-system" "red\""""
KINDS = f"'{{{{ with {FOUND_BUOY} }}}}{{{{ .kind }}}}{{{{ else }}}}no{{{{ end }}}}'"


def base(to: str = "the truth") -> JsonObject:
    metadata: Json = {"name": "base", "namespace": "sea"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"to": to}}


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PersistentSandbox:
    user_home = tmp_path / "home"
    user_home.mkdir()
    return PersistentSandbox.make(user_home, monkeypatch, namespace("shop"), served=False)


@pytest.fixture
def shop(tmp_path: Path) -> ChartRepository:
    """A release of one Kustomization that looks up an object of an earlier Kustomization."""
    made = ChartRepository(tmp_path / "repository", file="apps/release.yaml")
    first, then = kustomization("base", "./base", into=""), kustomization("apps", "./apps", into="")
    then["spec"] = {**get_mapping(then, "spec"), "dependsOn": [{"name": "base"}]}
    Repository(made.root).put("clusters/main/all.yaml", git_repository(), first, then)
    Repository(made.root).put("base/all.yaml", namespace("sea"), base())
    made.put("templates/seen.yaml", config_map("seen", to=FOUND))
    return made


def seen(sandbox: PersistentSandbox) -> dict[str, Json]:
    return get_mapping(sandbox.all(CONFIG_MAP, "shop")["seen"], "data")


@pytest.mark.parametrize("template", [FOUND, NEEDED])
def test_a_release_looks_up_objects_deployed_before_it_in_the_rollout(
    sandbox: PersistentSandbox, shop: ChartRepository, template: str
) -> None:
    shop.put("templates/seen.yaml", config_map("seen", to=template))

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert seen(sandbox) == {"to": "the truth"}
    assert revision_statuses(sandbox) == [(1, "deployed")]
    assert "the truth" in records(sandbox)[0].manifest
    again = sandbox.sync(shop.root)
    assert (again.code, revision_statuses(sandbox)) == (0, [(1, "deployed")])


def test_releases_that_look_up_each_other_are_ordered(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    """The second needs what the first makes of what came before that."""
    text = """'{{ (lookup "v1" "ConfigMap" .Values.from .Values.what).data.to }}'"""
    shop.put("templates/seen.yaml", config_map("{{ .Values.into }}", to=text))
    first = helm_release("shop", values={"from": "sea", "what": "base", "into": "seen"})
    then = helm_release("shop", values={"from": "shop", "what": "seen", "into": "again"})
    then["metadata"] = {"name": "then", "namespace": "shop"}
    then["spec"] = {**get_mapping(then, "spec"), "dependsOn": [{"name": "web"}]}
    Repository(shop.root).put("apps/release.yaml", namespace("shop"), first, then)

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    settings = sandbox.all(CONFIG_MAP, "shop")
    assert [get_text(settings[name], "data", "to") for name in ("seen", "again")] == [
        "the truth"
    ] * 2
    assert revision_statuses(sandbox) == [(1, "deployed"), (1, "deployed")]


def test_an_upgrade_sees_what_was_changed_before_it(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    Repository(shop.root).put("base/all.yaml", namespace("sea"), base("another truth"))
    shop.release(values={"to": "two"})

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert seen(sandbox) == {"to": "another truth"}
    assert revision_statuses(sandbox) == [(1, "superseded"), (2, "deployed")]


def test_objects_of_a_kind_installed_by_the_rollout_are_found(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    metadata: Json = {"name": "red", "namespace": "flux-system"}
    buoy: JsonObject = {"apiVersion": "sea.example/v1", "kind": "Buoy", "metadata": metadata}
    Repository(shop.root).put("base/all.yaml", definition(BUOY, "buoys", status=False), buoy)
    shop.put("templates/seen.yaml", config_map("seen", to=KINDS, count=COUNTED))

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert seen(sandbox)["to"] == "Buoy"


@pytest.mark.parametrize("turns", [6, 12, 18, 24, 30])
def test_killed_at_any_turn_it_is_released_once_with_what_was_there(
    sandbox: PersistentSandbox, shop: ChartRepository, turns: int
) -> None:
    shop.put("templates/seen.yaml", config_map("seen", to=NEEDED))
    sandbox.killed(shop.root, turns=turns)

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert seen(sandbox) == {"to": "the truth"}
    assert revision_statuses(sandbox) == [(1, "deployed")]


def test_a_plan_reports_what_is_known_later(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/seen.yaml", config_map("seen", to=NEEDED))

    planned = sandbox.reach("plan", shop.root)

    assert planned.code == 0, planned.stdout + planned.stderr
    assert any(
        "note[flux.lookup-late]" in line
        and "`HelmRelease/shop/web`" in line
        and "ConfigMap sea/base" in line
        and "`Kustomization/flux-system/base`" in line
        for line in planned.stderr.splitlines()
    )
    assert any(
        "note[render.lookup]" in line
        and "`HelmRelease/shop/web`" in line
        and "nil pointer evaluating interface {}.to" in line
        for line in planned.stderr.splitlines()
    )


def test_a_plan_of_what_is_known_later_is_not_saved(
    wording: RecordedWording, sandbox: PersistentSandbox, shop: ChartRepository, tmp_path: Path
) -> None:
    file = tmp_path / "shop.plan"

    planned = sandbox.reach("plan", shop.root, "--save", file)

    assert planned.stderr.startswith("warning[preflight.not-saved]: ")
    wording(planned.stderr.splitlines()[:2])
    assert not file.exists()


def test_objects_in_the_cluster_are_not_reported_as_late_lookups(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.put(namespace("sea"))
    sandbox.put(base())

    planned = sandbox.reach("plan", shop.root)

    assert planned.code == 0, planned.stdout + planned.stderr
    assert "flux.lookup-late" not in planned.stderr


def test_a_lookup_of_an_unknown_object_is_an_error_before_the_first_write(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/seen.yaml", config_map("seen", to=NEEDED.replace('"base"', '"none"')))
    before = len(sandbox.changes())

    ran = sandbox.sync(shop.root)

    assert ran.code != 0
    assert "error[render.helm" in ran.stderr
    assert sandbox.changes()[before:] == []


def test_a_deployed_release_no_longer_needs_its_lookups(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/seen.yaml", config_map("seen", to=NEEDED))
    sandbox.sync(shop.root)
    Repository(shop.root).put("base/all.yaml", namespace("sea"))

    first, again = sandbox.sync(shop.root), sandbox.sync(shop.root)

    assert (first.code, again.code) == (0, 0), first.stderr + again.stderr
    assert "base" not in sandbox.all(CONFIG_MAP, "sea")
    assert seen(sandbox) == {"to": "the truth"}
    assert revision_statuses(sandbox) == [(1, "deployed")]


def test_a_lookup_that_times_out_fails_only_its_release(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    """Nothing has it wait for what it needs."""
    shop.put("templates/seen.yaml", config_map("seen", to=NEEDED))
    last = kustomization("base", "./base", into="", after=("apps",))
    first = kustomization("apps", "./apps", into="")
    Repository(shop.root).put("clusters/main/all.yaml", git_repository(), first, last)

    ran = sandbox.sync(shop.root)

    assert ran.code != 0
    assert "nil pointer" in ran.stdout + ran.stderr
    assert records(sandbox) == []


@pytest.mark.parametrize("engine", ["flux", "tidegate"])
def test_a_simulation_repeats_late_lookups(shop: ChartRepository, engine: str) -> None:
    shop.put("templates/seen.yaml", config_map("seen", to=NEEDED))
    shop.put("templates/more.yaml", MORE)

    ran = tidegate("simulate", shop.root, "--engine", engine, "-o", "json")

    assert ran.returncode == 0, ran.stdout + ran.stderr
    messages = [json.loads(line) for line in ran.stdout.splitlines()]
    written = [get_text(item, "name") for item in messages if item["event"] == "object.written"]
    assert {"base", "seen", "more"} <= {*written}

"""Unavailable sources: reported with their dependents before the first write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.flux.stage import case, lines_with
from tests.support.flux_repository import UNIT, Layers, begins
from tests.support.persistent_sandbox import KUSTOMIZATION, PersistentSandbox
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import setting
from tests.support.unit_conditions import CONFIG_MAP, condition
from tidegate.model.k8s.objects import Json, JsonObject

FLAG = "--no-cross-namespace-refs=true"


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    made = Layers(tmp_path / "platform")
    made.put("apps/a.yaml", setting("a"))
    made.put("other/b.yaml", setting("b"))
    return made


def controller(*arguments: str) -> JsonObject:
    container: Json = {
        "name": "manager",
        "image": "ghcr.io/fluxcd/kustomize-controller:v1.9.4",
        "args": list(arguments),
    }
    labels: Json = {"app": "kustomize-controller"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kustomize-controller", "namespace": "flux-system"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


@case(1)
def test_an_undeclared_source_is_reported_and_its_units_are_excluded(
    layers: Layers,
) -> None:
    layers.unit("apps", sourceRef={"kind": "GitRepository", "name": "nowhere"})
    layers.unit("other")

    refused = layers.run("sync", "--sandbox", "--empty-cluster")
    rest = layers.run("sync", "--sandbox", "--empty-cluster", "--skip-broken", "-o", "json")
    layers.unit("apps")
    fixed = layers.run("sync", "--sandbox", "--empty-cluster")

    assert refused.returncode == 3
    assert lines_with(refused.stderr, "error[source.object]", f"`{UNIT}apps`", "nowhere`")
    assert "clusters/main/all.yaml:" in refused.stderr
    assert rest.returncode == 4
    assert "other/rest" in begins(rest)
    assert "apps/rest" not in begins(rest)
    assert fixed.returncode == 0, fixed.stderr


@case(2)
def test_a_source_that_cannot_be_fetched_is_reported_with_its_unit(layers: Layers) -> None:
    far: JsonObject = {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "GitRepository",
        "metadata": {"name": "far", "namespace": "flux-system"},
        "spec": {"interval": "10m", "url": "https://git.invalid/far.git"},
    }
    layers.more = [far]
    layers.unit("apps", path="./far", sourceRef={"kind": "GitRepository", "name": "far"})

    ran = layers.run("sync", "--sandbox", "--empty-cluster", "--offline")

    assert ran.returncode == 3
    assert lines_with(ran.stderr, "error[source.offline]", f"`{UNIT}apps`")
    assert "git.invalid/far.git" in ran.stderr


@case(4)
def test_a_path_that_is_not_in_the_source_is_reported(layers: Layers) -> None:
    layers.unit("apps", path="./nowhere")
    layers.unit("other")

    ran = layers.run("sync", "--sandbox")

    assert ran.returncode == 3
    assert lines_with(ran.stderr, "error[source.path]", f"`{UNIT}apps`", "`nowhere`")


@case(5, 19)
def test_no_cross_namespace_refs_blocks_sources_but_not_dependencies(
    layers: Layers,
) -> None:
    elsewhere: JsonObject = {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "GitRepository",
        "metadata": {"name": "theirs", "namespace": "shop"},
        "spec": {"interval": "10m", "url": "https://git.example.com/shop/platform.git"},
    }
    layers.more = [elsewhere]
    reference: Json = {"kind": "GitRepository", "name": "theirs", "namespace": "shop"}
    layers.unit("apps", sourceRef=reference)
    layers.unit("other")
    team: JsonObject = {**layers.units["other"], "metadata": {"name": "team", "namespace": "shop"}}
    team["spec"] = {
        **layers.units["other"]["spec"],  # type: ignore[dict-item]
        "path": "./team",
        "sourceRef": reference,
        "dependsOn": [{"name": "other", "namespace": "flux-system"}],
    }
    layers.put("team/c.yaml", setting("c"))
    layers.units["team"] = team

    opened = layers.run("simulate", "-o", "json")
    layers.more = [elsewhere, controller(FLAG)]
    closed = layers.run("sync", "--sandbox")

    assert opened.returncode == 0, opened.stderr
    assert "flux.access" not in opened.stderr
    assert begins(opened)["Kustomization/shop/team/rest"] == 30.0
    assert closed.returncode == 3
    (denied,) = lines_with(closed.stderr, "error[flux.access]")
    assert f"`{UNIT}apps`" in denied
    assert "team" not in denied


@case(6)
def test_an_external_artifact_cannot_be_fetched_and_is_reported(
    layers: Layers, wording: RecordedWording
) -> None:
    artifact: JsonObject = {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "ExternalArtifact",
        "metadata": {"name": "made", "namespace": "flux-system"},
        "spec": {"sourceRef": {"kind": "X", "name": "y"}},
    }
    layers.more = [artifact]
    layers.unit("apps", sourceRef={"kind": "ExternalArtifact", "name": "made"})

    ran = layers.run("sync", "--sandbox", "--empty-cluster")

    assert ran.returncode == 3
    (line,) = lines_with(ran.stderr, "error[source.object]")
    assert f"`{UNIT}apps`" in line
    wording(line)


@case(8)
def test_a_suspended_unit_is_not_reconciled(layers: Layers) -> None:
    layers.unit("apps", suspend=True)
    layers.unit("other")

    ran = layers.run("sync", "--sandbox", "-o", "json")

    assert ran.returncode == 0, ran.stderr
    assert lines_with(ran.stderr, '"units.suspended"', f"`{UNIT}apps`")
    assert "apps/rest" not in begins(ran)


@case(5)
def test_a_unit_without_access_to_its_source_is_stalled_and_not_retried(
    layers: Layers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs: JsonObject = {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "GitRepository",
        "metadata": {"name": "theirs", "namespace": "shop"},
        "spec": {"interval": "10m", "url": "https://git.example.com/shop/platform.git"},
    }
    layers.more = [theirs, controller(FLAG)]
    reference: Json = {"kind": "GitRepository", "name": "theirs", "namespace": "shop"}
    layers.unit("apps", sourceRef=reference)
    layers.unit("other")
    layers.unit("flux-system", path="./clusters/main", into="", wait=False)
    layers.write_units()
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)

    ran = cluster.sync(layers.root, "--skip-broken")

    assert ran.code == 4, ran.stdout + ran.stderr
    units = cluster.all(KUSTOMIZATION, "flux-system")
    message = (
        "can't access 'GitRepository/shop/theirs', cross-namespace references have been blocked"
    )
    assert condition(units["apps"], "Ready") == ("False", "AccessDenied", message)
    assert condition(units["apps"], "Stalled") == ("True", "AccessDenied", message)
    other = condition(units["other"], "Ready")
    assert other is not None
    assert other[0] == "True"


@case(8)
def test_objects_of_a_suspended_unit_are_kept_when_it_is_deleted(
    layers: Layers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers.unit("apps", into="default")
    layers.unit("other", into="default")
    layers.write_units()
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)
    synced = cluster.sync(layers.root)
    layers.unit("apps", into="default", suspend=True)
    layers.write_units()

    gone = cluster.run("delete", layers.root, "--sandbox", "--yes")

    assert (synced.code, gone.code) == (0, 0), gone.stdout + gone.stderr
    assert {*cluster.all(CONFIG_MAP, "default")} & {"a", "b"} == {"a"}

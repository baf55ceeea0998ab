"""Building: which files are taken, what the unit changes of them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.flux.stage import FluxStage, case, lines_with
from tests.conformance.flux.test_apply import setting as an_object
from tests.support.flux_repository import Layers
from tests.support.repositories import deployment, setting
from tidegate.model.k8s.json_fields import get_mapping, get_value
from tidegate.model.k8s.objects import Json, JsonObject


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    return Layers(tmp_path)


@case(21)
def test_a_directory_without_a_kustomization_gets_one_with_its_yaml_files(layers: Layers) -> None:
    layers.put("apps/a.yaml", setting("a"))
    layers.put("apps/sub/b.yml", setting("b"))
    layers.write(
        "apps/c.json", '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}'
    )
    layers.write("apps/overlay/kustomization.yaml", "resources: [d.yaml]\nnamePrefix: over-\n")
    layers.put("apps/overlay/d.yaml", setting("d"))
    layers.unit("apps")

    assert set(layers.rendered("apps")) == {"a", "b", "over-d"}


@case(22)
def test_a_file_that_is_not_an_object_fails_the_build_unless_ignored(layers: Layers) -> None:
    layers.put("apps/a.yaml", setting("a"))
    layers.write("apps/.sops.yaml", "creation_rules: []\n")
    layers.unit("apps")
    usual = layers.render("apps")
    ignoring: Json = {
        "interval": "10m",
        "url": "https://git.example.com/shop/platform.git",
        "ignore": "*.md",
    }
    source: JsonObject = {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "GitRepository",
        "metadata": {"name": "own", "namespace": "flux-system"},
        "spec": ignoring,
    }
    layers.more = [source]
    layers.unit("apps", sourceRef={"kind": "GitRepository", "name": "own"})

    admitted = layers.render("apps")

    assert usual.returncode == 0, "it is among what is left out by default"
    assert admitted.returncode == 3
    assert lines_with(admitted.stderr, '"render.kustomize.resource"', ".sops.yaml")


@case(24)
def test_a_missing_component_fails_the_build_unless_ignore_missing_components(
    layers: Layers,
) -> None:
    layers.put("apps/a.yaml", setting("a"))
    layers.unit("apps", components=["../missing"])
    layers.unit("calm", path="./apps", components=["../missing"], ignoreMissingComponents=True)

    refused = layers.render("apps")

    assert refused.returncode == 3
    assert lines_with(refused.stderr, '"render.kustomize.missing"', "`../missing`")
    assert set(layers.rendered("calm")) == {"a"}


@case(25)
def test_images_of_the_unit_are_merged_into_those_of_the_file(layers: Layers) -> None:
    layers.put("apps/a.yaml", deployment("a"))
    layers.write(
        "apps/kustomization.yaml",
        "resources: [a.yaml]\nimages: [{name: main, newTag: '1.0', newName: x}]\n",
    )
    digest = f"sha256:{'0' * 64}"
    layers.unit("named", path="./apps", images=[{"name": "main", "newName": "y"}])
    layers.unit("pinned", path="./apps", images=[{"name": "main", "digest": digest}])

    images = [
        get_value(layers.rendered(name)["a"], "spec", "template", "spec", "containers")[0]["image"]  # type: ignore[index,call-overload]
        for name in ("named", "pinned")
    ]

    assert images == ["y:1.0", f"x@{digest}"]


@case(27)
def test_a_link_out_of_the_tree_is_rejected_without_its_contents(
    layers: Layers, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.yaml"
    outside.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kea-in-winter}\n")
    layers.put("apps/a.yaml", setting("a"))
    (layers.root / "apps" / "b.yaml").symlink_to(outside)
    layers.unit("apps")

    ran = layers.render("apps")

    assert ran.returncode == 3
    assert "kea-in-winter" not in ran.stdout + ran.stderr


@case(28)
def test_common_metadata_is_added_to_all_objects_and_removed_with_its_entry(layers: Layers) -> None:
    layers.put("apps/a.yaml", setting("a"), setting("b"))
    layers.unit("apps", commonMetadata={"labels": {"team": "red"}})
    first = layers.rendered("apps")
    layers.unit("apps")
    second = layers.rendered("apps")

    assert [get_value(item, "metadata", "labels", "team") for item in first.values()] == [
        "red",
        "red",
    ]
    assert [get_value(item, "metadata", "labels", "team") for item in second.values()] == [
        None,
        None,
    ]


@case(28)
async def test_a_label_removed_from_git_is_removed_from_the_live_object(
    each_flux: FluxStage,
) -> None:
    flux, item = each_flux, an_object("one")
    metadata: Json = {**get_mapping(item, "metadata"), "labels": {"team": "red"}}
    await flux.reconcile({**item, "metadata": metadata})
    before = get_value(await flux.body(item), "metadata", "labels", "team")

    await flux.reconcile(item)

    assert before == "red"
    assert get_value(await flux.body(item), "metadata", "labels", "team") is None

"""Components that an Application adds to an overlay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.overlays import OverlayCase
from tidegate.documents import Document
from tidegate.errors import RenderError
from tidegate.model.units.rendering import ArgoOverrides, Overlay
from tidegate.render.kustomize import build

FILES = {
    "app/kustomization.yaml": "resources: [a.yaml]\n",
    "app/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    "app/own/kustomization.yaml": "kind: Component\ncommonAnnotations: {own: 'yes'}\n",
    "parts/b/kustomization.yaml": "kind: Component\nnamePrefix: b-\n",
    "parts/c/kustomization.yaml": "kind: Component\nnamePrefix: c-\n",
}


async def built(root: Path, *components: str, ignore: bool = False) -> Document:
    OverlayCase(files=FILES).write(root)
    overrides = ArgoOverrides(components=components, ignore_missing_components=ignore)
    (document,) = await build(Overlay(root=root, path="app", overrides=overrides))
    return document


def name_of(document: Document) -> object:
    metadata = document.body["metadata"]
    return metadata["name"] if isinstance(metadata, dict) else None


async def test_a_pattern_matches_components_in_their_order(tmp_path: Path) -> None:
    document = await built(tmp_path, "../parts/*")

    assert name_of(document) == "c-b-a"


async def test_a_missing_component_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RenderError) as caught:
        await built(tmp_path, "../parts/absent")

    assert caught.value.code == "render.kustomize.missing"


async def test_missing_components_are_ignored_below_the_directory_only(tmp_path: Path) -> None:
    document = await built(tmp_path, "own", "absent", "../parts/b", ignore=True)

    assert name_of(document) == "a", "as in Argo CD"
    assert document.body["metadata"] == {"name": "a", "annotations": {"own": "yes"}}


async def test_a_pattern_cannot_lead_out_of_the_source(tmp_path: Path) -> None:
    with pytest.raises(RenderError) as caught:
        await built(tmp_path, "../../*")

    assert caught.value.code == "render.kustomize.outside"


async def test_a_broken_pattern_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RenderError) as caught:
        await built(tmp_path, "../parts/[b")

    assert caught.value.code == "render.kustomize.component"

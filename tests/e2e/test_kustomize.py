"""Our builds against kustomize itself: the same objects, in the same order."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.overlay_seeds import random_case
from tests.support.overlays import (
    OverlayCase,
    all_cases,
    both_outputs,
    read_case,
    real_output,
    texts,
)
from tidegate.errors import RenderError
from tidegate.render.kustomize import build

pytestmark = pytest.mark.kube

SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
WRONG = {
    "a field nobody knows": {"app/kustomization.yaml": "resource: [a.yaml]"},
    "a missing file": {"app/kustomization.yaml": "resources: [a.yaml]"},
    "a missing base": {"app/kustomization.yaml": "resources: [../base]"},
    "a base without a kustomization": {
        "app/kustomization.yaml": "resources: [../base]",
        "base/a.yaml": SETTINGS,
    },
    "two kustomizations": {"app/kustomization.yaml": "namespace: a", "app/Kustomization": "{}"},
    "a kustomization that says nothing": {"app/kustomization.yaml": "kind: Kustomization"},
    "a list that is none": {"app/kustomization.yaml": "resources: a.yaml", "app/a.yaml": SETTINGS},
    "a directory that names itself": {"app/kustomization.yaml": "resources: [.]"},
    "a file elsewhere": {"app/kustomization.yaml": "resources: [../a.yaml]", "a.yaml": SETTINGS},
    "an object twice": {
        "app/kustomization.yaml": "resources: [a.yaml, b.yaml]",
        "app/a.yaml": SETTINGS,
        "app/b.yaml": SETTINGS,
    },
    "a patch without a target": {
        "app/kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml}]",
        "app/a.yaml": SETTINGS,
        "app/p.yaml": SETTINGS.replace("name: a", "name: b"),
    },
    "a component as a resource": {
        "app/kustomization.yaml": "resources: [../part]",
        "part/kustomization.yaml": "kind: Component\nnamespace: a",
    },
    "a plugin that is not built in": {
        "app/kustomization.yaml": "generators: [g.yaml]",
        "app/g.yaml": "apiVersion: example.dev/v1\nkind: Maker\nmetadata: {name: m}\n",
    },
    "annotations that are not there to be removed": {
        "app/kustomization.yaml": (
            "resources: [a.yaml]\npatches:\n- target: {kind: ConfigMap}\n"
            "  patch: '- {op: remove, path: /metadata/annotations/x}'\n"
        ),
        "app/a.yaml": SETTINGS,
    },
}


@pytest.mark.parametrize("name", all_cases())
async def test_an_overlay_renders_like_kustomize(name: str, tmp_path: Path) -> None:
    case = read_case(name)

    ours, real = await both_outputs(case, tmp_path)

    assert texts(ours) == texts(real)


@pytest.mark.parametrize("seed", range(60))
async def test_a_random_overlay_renders_like_kustomize(seed: int, tmp_path: Path) -> None:
    case = random_case(seed)

    ours, real = await both_outputs(case, tmp_path)

    assert texts(ours) == texts(real)


@pytest.mark.parametrize("name", WRONG)
async def test_input_that_kustomize_rejects_is_rejected(name: str, tmp_path: Path) -> None:
    case = OverlayCase(files=WRONG[name])
    case.write(tmp_path)

    with pytest.raises(subprocess.CalledProcessError):
        real_output(case, tmp_path)
    with pytest.raises(RenderError) as caught:
        await build(case.overlay(tmp_path))

    assert caught.value.location is not None

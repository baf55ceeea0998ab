"""Errors of kustomize, and the errors that we make of them. The texts are those of kustomize."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.model.units.rendering import Overlay
from tidegate.render.kustomize.collect import OverlayInputs
from tidegate.render.kustomize.errors import kustomize_error
from tidegate.render.kustomize.tree import BuildCopy

SCRATCH = "/dev/shm/tidegate-scratch-7-ab12_x/tree"  # noqa: S108  (nothing is written there)


def inputs_of(*files: str) -> OverlayInputs:
    copy = BuildCopy(files={f"tree/{path}": b"" for path in files})
    overlay = Overlay(root=Path("/nowhere"), path="app")
    return OverlayInputs(overlay, copy=copy, top_file="tree/app/kustomization.yaml")


ERRORS = {
    "render.kustomize.duplicate app/b.yaml": (
        "accumulating resources: accumulation err='merging resources from 'b.yaml': may not add"
        " resource with an already registered id: ConfigMap.v1.[noGrp]/a.[noNs]': must build at"
        f" directory: '{SCRATCH}/app/b.yaml': file is not directory"
    ),
    "render.kustomize.duplicate base": (
        f"accumulating resources: accumulation err='accumulating resources from '../base':"
        f" '{SCRATCH}/base' must resolve to a file': recursed merging from path '{SCRATCH}/base':"
        " may not add resource with an already registered id: Deployment.v1.apps/a.b.shop"
    ),
    "render.kustomize.target app": (
        'no resource matches strategic merge patch "ConfigMap.v1.[noGrp]/zz.[noNs]": no matches'
        " for Id ConfigMap.v1.[noGrp]/zz.[noNs]; failed to find unique target for patch"
    ),
    "render.kustomize.resource base/s/a.yaml": (
        f"accumulating resources: accumulation err='accumulating resources from '../base':"
        f" '{SCRATCH}/base' must resolve to a file': recursed accumulation of path"
        f" '{SCRATCH}/base': accumulating resources: accumulating resources from 's/a.yaml':"
        " MalformedYAMLError: yaml: mapping values are not allowed in this context in File:"
        " s/a.yaml"
    ),
    "render.kustomize.resource app/b.yaml": (
        "accumulating resources: accumulation err='accumulating resources from 'b.yaml': missing"
        " metadata.name in object {{v1 Secret} {{ } map[] map[password:hunter2]}}': must build"
    ),
    "render.kustomize.patch app": (
        "trouble configuring builtin PatchTransformer with config: `\npatch: 'password: hunter2'\n"
        '`: unable to parse SM or JSON patch from [patch: "password: hunter2"]'
    ),
    "render.kustomize.component app": (
        "accumulating components: accumulateDirectory: \"expected kind 'Component' for path"
        f" '{SCRATCH}/parts' but got 'Kustomization'\""
    ),
    "render.kustomize.none app": "kustomization.yaml is empty",
    "render.kustomize.build app": (
        "trouble configuring builtin SecretGenerator with config: `\nliterals:\n- x=hunter2\n`: no"
    ),
}


@pytest.mark.parametrize("expected", ERRORS)
def test_an_error_of_kustomize_gets_a_code_and_a_location(expected: str) -> None:
    warning = "# Warning: 'bases' is deprecated. Please use 'resources' instead.\n"
    stderr = f"{warning}error: {ERRORS[expected]}\n".encode()

    error = kustomize_error(stderr, inputs_of("app/b.yaml", "base/s/a.yaml"))

    assert f"{error.code} {error.location}" == expected


@pytest.mark.parametrize("text", ERRORS.values())
def test_no_error_shows_a_document_or_the_scratch_directory(text: str) -> None:
    error = kustomize_error(f"error: {text}\n".encode(), inputs_of("app/b.yaml"))

    assert "hunter2" not in str(error)
    assert "tidegate-" not in str(error)


def test_a_duplicate_resource_is_named() -> None:
    text = ERRORS["render.kustomize.duplicate base"]

    error = kustomize_error(text.encode(), inputs_of())

    assert error.code == "render.kustomize.duplicate"
    assert "Deployment `a.b`" in error.problem


def test_an_unknown_error_is_shown_without_its_context() -> None:
    text = "accumulating resources: replace operation does not apply: doc is missing path: /spec/x"

    error = kustomize_error(text.encode(), inputs_of())

    assert error.code == "render.kustomize.build"
    assert "accumulating resources" not in error.problem
    assert error.problem.endswith(
        ": replace operation does not apply: doc is missing path: /spec/x"
    )

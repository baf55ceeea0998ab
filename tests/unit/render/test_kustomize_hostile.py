"""Overlays that try to read files outside their tree. None of them may reach kustomize."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.overlays import OverlayCase
from tidegate.errors import DocumentError, RenderError
from tidegate.model.units.rendering import FetchedTree, FluxOverrides, LoadRestriction, Overlay
from tidegate.render.kustomize.collect import collect_inputs

PLUGIN = "apiVersion: builtin\nkind: {kind}\nmetadata: {{name: p}}\n{rest}\n"
SECRET = "hunter2-hunter2"


def tree(root: Path, files: dict[str, str], links: dict[str, str] | None = None) -> Overlay:
    """An overlay `app` in a tree, with a secret beside the tree; whole-tree loading is on."""
    (root / "secret").write_text(SECRET)
    OverlayCase(files=files, links=links or {}).write(root / "tree")
    return Overlay(root=root / "tree", path="app", restriction=LoadRestriction.NONE)


def refused(overlay: Overlay) -> RenderError:
    with pytest.raises(RenderError) as caught:
        collect_inputs(overlay)
    assert SECRET not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("path", ["../../secret", "/etc/passwd", "x/../../../secret", "a\\0b"])
@pytest.mark.parametrize(
    "field",
    [
        'resources: ["%s"]',
        'bases: ["%s"]',
        'components: ["%s"]',
        'crds: ["%s"]',
        'configurations: ["%s"]',
        'generators: ["%s"]',
        'transformers: ["%s"]',
        'validators: ["%s"]',
        'patchesStrategicMerge: ["%s"]',
        'patches: [{path: "%s"}]',
        'patchesJson6902: [{PATH: "%s"}]',
        'replacements: [{path: "%s"}]',
        'configMapGenerator: [{files: ["%s"]}]',
        'configMapGenerator: [{Files: ["key=%s"]}]',
        'secretGenerator: [{envs: ["%s"]}]',
        'secretGenerator: [{env: "%s"}]',
        'openapi: {path: "%s"}',
        'helmCharts: [{name: c, valuesFile: "%s"}]',
        'helmCharts: [{name: c, additionalValuesFiles: ["%s"]}]',
        '{helmGlobals: {chartHome: "%s"}, helmCharts: [{name: c}]}',
    ],
)
def test_no_field_leads_out_of_the_tree(tmp_path: Path, field: str, path: str) -> None:
    overlay = tree(tmp_path, {"app/kustomization.yaml": field % path, "app/charts/c/x": ""})

    assert refused(overlay).code == "render.kustomize.outside"


def test_the_name_of_a_chart_does_not_lead_out_of_the_tree(tmp_path: Path) -> None:
    overlay = tree(tmp_path, {"app/kustomization.yaml": "helmCharts: [{name: ../../../secret}]\n"})

    assert refused(overlay).code == "render.kustomize.outside"


@pytest.mark.parametrize(
    ("kind", "rest"),
    [
        ("PatchTransformer", "path: ../../secret"),
        ("PatchTransformer", "PATH: /etc/passwd"),
        ("PatchJson6902Transformer", "path: ../../secret"),
        ("PatchStrategicMergeTransformer", "paths: [../../secret]"),
        ("ReplacementTransformer", "replacements: [{path: ../../secret}]"),
        ("ValueAddTransformer", "targetFilePath: ../../secret"),
        ("ConfigMapGenerator", "files: [a=../../secret]"),
        ("SecretGenerator", "envs: [../../secret]"),
        ("HelmChartInflationGenerator", "name: c\nchartHome: ../.."),
        ("HelmChartInflationGenerator", "name: c\nvaluesFile: ../../secret"),
    ],
)
@pytest.mark.parametrize("how", ["inline", "file", "directory"])
def test_no_plugin_leads_out_of_the_tree(tmp_path: Path, kind: str, rest: str, how: str) -> None:
    config = PLUGIN.format(kind=kind, rest=rest)
    indented = config.replace("\n", "\n  ")
    named = {"inline": f"|\n  {indented}", "file": "p/p.yaml", "directory": "p"}[how]
    overlay = tree(
        tmp_path,
        {
            "app/kustomization.yaml": f"transformers:\n- {named}\n",
            "app/p/kustomization.yaml": "resources: [p.yaml]\n",
            "app/p/p.yaml": config,
            "app/charts/c/Chart.yaml": "",
        },
    )

    assert refused(overlay).code == "render.kustomize.outside"


def test_a_directory_of_plugins_cannot_make_paths_of_its_own(tmp_path: Path) -> None:
    overlay = tree(
        tmp_path,
        {
            "app/kustomization.yaml": "transformers: [p]\n",
            "app/p/kustomization.yaml": (
                "resources: [p.yaml]\npatches:\n- target: {kind: PatchTransformer}\n"
                "  patch: '- {op: add, path: /path, value: ../../secret}'\n"
            ),
            "app/p/p.yaml": PLUGIN.format(kind="PatchTransformer", rest=""),
        },
    )

    assert refused(overlay).code == "render.kustomize.plugin"


def test_a_text_that_is_half_a_patch_and_half_a_path_is_a_path(tmp_path: Path) -> None:
    overlay = tree(
        tmp_path,
        {"app/kustomization.yaml": "patchesStrategicMerge: ['a: ../../../../secret']\n"},
    )

    assert refused(overlay).code == "render.kustomize.outside"


@pytest.mark.parametrize("target", ["../../secret", "/etc/passwd", "../.."])
def test_no_link_leads_out_of_the_tree(tmp_path: Path, target: str) -> None:
    overlay = tree(
        tmp_path, {"app/kustomization.yaml": "resources: [link]\n"}, {"app/link": target}
    )

    assert refused(overlay).code == "render.kustomize.outside"


def test_a_link_through_a_directory_cannot_lead_out(tmp_path: Path) -> None:
    overlay = tree(
        tmp_path,
        {"app/kustomization.yaml": "configMapGenerator: [{files: [up/secret]}]\n"},
        {"app/up": "../.."},
    )

    assert refused(overlay).code == "render.kustomize.outside"


def test_the_kustomization_itself_may_not_be_a_link_out(tmp_path: Path) -> None:
    overlay = tree(tmp_path, {"app/x": ""}, {"app/kustomization.yaml": "../../secret"})

    assert refused(overlay).code == "render.kustomize.outside"


def test_with_load_restrictions_the_kustomization_must_be_inside(tmp_path: Path) -> None:
    overlay = tree(tmp_path, {"k.yaml": "resources: []\n"}, {"app/kustomization.yaml": "../k.yaml"})

    error = refused(Overlay(root=overlay.root, path="app"))

    assert error.code == "render.kustomize.restricted"


def test_a_manifest_that_flux_would_read_may_not_be_a_link_out(tmp_path: Path) -> None:
    overlay = tree(tmp_path, {"app/x": ""}, {"app/a.yaml": "../../secret"})
    flux = Overlay(root=overlay.root, path="app", overrides=FluxOverrides())

    assert refused(flux).code == "render.kustomize.outside"


@pytest.mark.parametrize("path", ["..", "/etc", "../tree/../.."])
def test_the_overlay_itself_must_be_in_the_tree(tmp_path: Path, path: str) -> None:
    overlay = tree(tmp_path, {"app/kustomization.yaml": "resources: []\n"})

    assert refused(Overlay(root=overlay.root, path=path)).code == "render.kustomize.outside"


def test_link_cycles_are_rejected(tmp_path: Path) -> None:
    overlay = tree(
        tmp_path,
        {"app/kustomization.yaml": "resources: [a]\n"},
        {"app/a": "b", "app/b": "a"},
    )

    assert refused(overlay).code in {"render.kustomize.file", "render.kustomize.missing"}


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    overlay = tree(tmp_path, {"app/kustomization.yaml": "resources: [pipe.yaml]\n"})
    os.mkfifo(tmp_path / "tree" / "app" / "pipe.yaml")

    assert refused(overlay).code == "render.kustomize.missing"


@pytest.mark.parametrize("base", [".", "..", "../base"])
def test_directories_that_include_each_other_are_rejected(tmp_path: Path, base: str) -> None:
    overlay = tree(
        tmp_path,
        {
            "app/kustomization.yaml": f"resources: [{base}]\n",
            "base/kustomization.yaml": "resources: [../app]\n",
            "kustomization.yaml": "resources: []\n",
        },
    )

    assert refused(overlay).code == "render.kustomize.cycle"


def test_a_chart_with_links_that_multiply_is_refused(tmp_path: Path) -> None:
    links = {f"app/charts/c/{a}/{b}": f"../{b}" for a in "wxyz" for b in "wxyz" if a != b}
    overlay = tree(
        tmp_path,
        {"app/kustomization.yaml": "helmCharts: [{name: c}]\n", "app/charts/c/Chart.yaml": ""},
        links,
    )

    assert refused(overlay).code == "render.kustomize.size"


def test_an_endless_row_of_bases_is_refused(tmp_path: Path) -> None:
    files = {f"{n}/kustomization.yaml": f"resources: [../{n + 1}]\n" for n in range(600)}
    overlay = tree(tmp_path, {"app/kustomization.yaml": "resources: [../0]\n", **files})

    assert refused(overlay).code in {"render.kustomize.size", "render.kustomize.missing"}


def test_a_fetched_tree_keeps_to_its_own_directory(tmp_path: Path) -> None:
    away = tmp_path / "away"
    OverlayCase(
        files={"base/kustomization.yaml": "patches: [{path: ../p.yaml}]\n", "p.yaml": ""}
    ).write(away)
    overlay = tree(tmp_path, {"app/kustomization.yaml": "resources: ['github.com/a/b']\n"})
    fetched = {"github.com/a/b": FetchedTree(away, "base")}

    error = refused(
        Overlay(root=overlay.root, path="app", restriction=overlay.restriction, fetched=fetched)
    )

    assert error.code == "render.kustomize.restricted"


LAUGHS = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
)


@pytest.mark.parametrize("text", ["spec: &me\n  again: *me\n", LAUGHS], ids=["loop", "laughs"])
@pytest.mark.parametrize("field", ["resources: [a.yaml]", "patches: [{path: a.yaml}]"])
def test_aliases_that_never_end_are_not_written_out(tmp_path: Path, field: str, text: str) -> None:
    body = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n{text}\n"
    overlay = tree(tmp_path, {"app/kustomization.yaml": field, "app/a.yaml": body})

    with pytest.raises(DocumentError, match=r"documents\.alias\."):
        collect_inputs(overlay)


def test_text_that_resembles_an_alias_is_not_changed(tmp_path: Path) -> None:
    files = {
        "app/kustomization.yaml": "resources: [a.yaml]\nconfigMapGenerator:\n- files: [b]\n",
        "app/a.yaml": "kind: ConfigMap\ntext: 'x: &a [*a]'\n",
        "app/b": "x: &a [*a]\n",
    }

    assert len(collect_inputs(tree(tmp_path, files)).copy.files) == len(files)

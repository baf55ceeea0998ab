"""Whether the output of a chart or an overlay may contain a text, without rendering it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.overlays import OverlayCase
from tidegate.model.units.chart_request import (
    ChartRequest,
    InlineValues,
    Parameter,
    ValuesFile,
    ValuesText,
)
from tidegate.model.units.rendering import ArgoOverrides, KustomizePatch, Overlay
from tidegate.render.kustomize.collect import collect_inputs
from tidegate.render.prescan import chart_may_contain, overlay_may_contain

PATTERN = re.compile(rb"sought")
WEB = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
CHART = {
    "chart/Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
    "chart/templates/web.yaml": WEB,
    "prod.yaml": "name: web\n",
}
OVERLAY = {
    "app/kustomization.yaml": "resources: [../base]\n",
    "base/kustomization.yaml": "resources: [web.yaml]\n",
    "base/web.yaml": WEB,
}


def chart(root: Path, files: Mapping[str, str], **more: object) -> ChartRequest:
    OverlayCase(files={**CHART, **files}).write(root)
    return ChartRequest(root=str(root), chart="chart", name="web", **more)  # type: ignore[arg-type]


def test_a_chart_without_the_text_does_not_contain_it(tmp_path: Path) -> None:
    layers = (
        ValuesFile("/prod.yaml"),
        ValuesText("a: b", "values"),
        InlineValues(),
        Parameter("c", "d"),
    )

    assert not chart_may_contain(
        PATTERN, chart(tmp_path, {}, layers=layers, api_versions=("sought",))
    )


@pytest.mark.parametrize(
    "files",
    [
        {"chart/templates/_helpers.tpl": "sought"},
        {"chart/charts/part/crds/one.yaml": "sought"},
        {"chart/files/some.txt": "sought"},
        {"chart/charts/part-1.0.0.tgz": "packed"},
        {"chart/Chart.yaml": f"{CHART['chart/Chart.yaml']}dependencies: []\n"},
    ],
)
def test_a_chart_may_contain_the_text_of_its_files_and_of_files_that_are_not_here(
    files: dict[str, str], tmp_path: Path
) -> None:
    assert chart_may_contain(PATTERN, chart(tmp_path, files))


@pytest.mark.parametrize(
    "layer", [ValuesFile("/prod.yaml"), ValuesText("a: sought", "values"), Parameter("a", "sought")]
)
def test_a_chart_may_contain_the_text_of_its_values(
    layer: ValuesFile | ValuesText | Parameter, tmp_path: Path
) -> None:
    release = chart(tmp_path, {"prod.yaml": "name: sought\n"}, layers=(layer,))

    assert chart_may_contain(PATTERN, release)


def test_a_chart_with_a_link_may_contain_any_text(tmp_path: Path) -> None:
    release = chart(tmp_path, {})
    (tmp_path / "chart" / "link").symlink_to("../prod.yaml")

    assert chart_may_contain(PATTERN, release)


@pytest.mark.parametrize(
    ("files", "may"),
    [
        ({}, False),
        ({"base/web.yaml": f"{WEB}# sought\n"}, True),
        ({"app/kustomization.yaml": "resources: [../base, https://host/a/b]\n"}, True),
        ({"other.yaml": "sought"}, False),
    ],
)
def test_an_overlay_may_contain_the_text_of_its_inputs(
    files: dict[str, str],
    may: bool,  # noqa: FBT001 - a row of the table
    tmp_path: Path,
) -> None:
    OverlayCase(files={**OVERLAY, **files}).write(tmp_path)

    assert overlay_may_contain(PATTERN, collect_inputs(Overlay(root=tmp_path, path="app"))) is may


def test_an_overlay_may_contain_the_text_of_patches_of_its_unit(tmp_path: Path) -> None:
    OverlayCase(files=OVERLAY).write(tmp_path)
    overrides = ArgoOverrides(
        patches=(KustomizePatch(patch="- sought", target={"kind": "ConfigMap"}),)
    )

    assert overlay_may_contain(
        PATTERN, collect_inputs(Overlay(root=tmp_path, path="app", overrides=overrides))
    )

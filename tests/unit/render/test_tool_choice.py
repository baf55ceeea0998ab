"""Which tool Argo CD takes for a source."""

from __future__ import annotations

import pytest

from tidegate.errors import RenderError
from tidegate.model.objects import Json
from tidegate.model.rendering import Tool
from tidegate.render.tool_choice import ALL_TOOLS, choose_tool


@pytest.mark.parametrize(
    ("source", "tool"),
    [
        ({"kustomize": {"namePrefix": "a-"}}, Tool.KUSTOMIZE),
        ({"helm": {"releaseName": "web"}}, Tool.HELM),
        ({"directory": {"recurse": True}}, Tool.DIRECTORY),
        ({"directory": {"jsonnet": {"libs": ["vendor"]}}}, Tool.DIRECTORY),
        ({"plugin": {}}, Tool.PLUGIN),
        ({"chart": "web"}, Tool.HELM),
    ],
)
def test_a_block_of_the_source_decides(source: dict[str, Json], tool: Tool) -> None:
    assert choose_tool(source, ["kustomization.yaml", "Chart.yaml"]) is tool


@pytest.mark.parametrize(
    "block",
    [{}, {"recurse": False}, {"recurse": False, "include": "", "jsonnet": {"extVars": []}}],
)
def test_a_directory_block_that_says_nothing_does_not_count(block: dict[str, Json]) -> None:
    source: dict[str, Json] = {"directory": block}

    assert choose_tool(source, ["kustomization.yaml"]) is Tool.KUSTOMIZE


def test_a_label_without_a_value_is_something_said() -> None:
    source: dict[str, Json] = {"kustomize": {"commonLabels": {"team": ""}}}

    assert choose_tool(source, []) is Tool.KUSTOMIZE


def test_two_blocks_are_refused() -> None:
    source: dict[str, Json] = {"helm": {"values": "a: 1"}, "kustomize": {"namePrefix": "a-"}}

    with pytest.raises(RenderError) as caught:
        choose_tool(source, [])

    assert caught.value.code == "render.tool.several"
    assert caught.value.problem == "the source has more than one tool: `kustomize` and `helm`"


def test_a_second_block_that_says_nothing_is_not_a_second_tool() -> None:
    source: dict[str, Json] = {"helm": {"values": "a: 1"}, "kustomize": {}, "directory": {}}

    assert choose_tool(source, []) is Tool.HELM


@pytest.mark.parametrize(
    ("names", "tool"),
    [
        ([], Tool.DIRECTORY),
        (["web.yaml", "chart.yaml"], Tool.DIRECTORY),
        (["Chart.yaml", "values.yaml"], Tool.HELM),
        (["myChart.yaml"], Tool.HELM),
        (["kustomization.yml"], Tool.KUSTOMIZE),
        (["Kustomization"], Tool.KUSTOMIZE),
        (["Chart.yaml", "kustomization.yaml"], Tool.KUSTOMIZE),
        (["zChart.yaml", "kustomization.yaml"], Tool.HELM),
    ],
)
def test_without_a_block_the_last_name_that_speaks_for_a_tool_wins(
    names: list[str], tool: Tool
) -> None:
    assert choose_tool({}, names) is tool


def test_a_tool_that_is_switched_off_is_not_detected() -> None:
    enabled = ALL_TOOLS - {Tool.KUSTOMIZE}

    assert choose_tool({}, ["kustomization.yaml"], enabled=enabled) is Tool.DIRECTORY

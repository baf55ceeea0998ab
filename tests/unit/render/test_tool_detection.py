"""Which tool renders a directory, by the names of its files."""

from __future__ import annotations

import pytest

from tidegate.model.units.rendering import Tool
from tidegate.render.tool_detection import ALL_TOOLS, detect_tool


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
def test_the_last_file_name_of_a_tool_decides(names: list[str], tool: Tool) -> None:
    assert detect_tool(names) is tool


def test_a_tool_that_is_switched_off_is_not_detected() -> None:
    enabled = ALL_TOOLS - {Tool.KUSTOMIZE}

    assert detect_tool(["kustomization.yaml"], enabled=enabled) is Tool.DIRECTORY

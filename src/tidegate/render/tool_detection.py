"""Which tool the files of a directory speak for, by Argo CD's rules."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.units.rendering import Tool
from tidegate.render.kustomize.tree import KUSTOMIZATION_NAMES

ALL_TOOLS = frozenset(Tool)
CHART_ENDING = "Chart.yaml"


def detect_tool(names: Iterable[str], *, enabled: frozenset[Tool] = ALL_TOOLS) -> Tool:
    """The tool that the files speak for. Argo CD walks them by name, and the last one wins."""
    found = Tool.DIRECTORY
    for name in sorted(names, key=lambda name: name.encode(errors="surrogateescape")):
        if name.endswith(CHART_ENDING) and Tool.HELM in enabled:
            found = Tool.HELM
        if name in KUSTOMIZATION_NAMES and Tool.KUSTOMIZE in enabled:
            found = Tool.KUSTOMIZE
    return found

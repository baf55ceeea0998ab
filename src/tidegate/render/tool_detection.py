"""Detection of the tool of a directory by its files, with Argo CD's rules."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.units.rendering import Tool
from tidegate.render.kustomize.tree import KUSTOMIZATION_NAMES

ALL_TOOLS = frozenset(Tool)
CHART_SUFFIX = "Chart.yaml"


def detect_tool(names: Iterable[str], *, enabled: frozenset[Tool] = ALL_TOOLS) -> Tool:
    """Return the tool of a directory. Argo CD walks the files by name; the last match wins.

    Like `Discover` in `util/app/discovery/discovery.go` of Argo CD 3.5.6.
    """
    tool = Tool.DIRECTORY
    for name in sorted(names, key=lambda name: name.encode(errors="surrogateescape")):
        if name.endswith(CHART_SUFFIX) and Tool.HELM in enabled:
            tool = Tool.HELM
        if name in KUSTOMIZATION_NAMES and Tool.KUSTOMIZE in enabled:
            tool = Tool.KUSTOMIZE
    return tool

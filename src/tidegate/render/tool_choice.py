"""Which tool renders an Application's source, by Argo CD's rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.errors import RenderError
from tidegate.model.objects import Json
from tidegate.model.rendering import Tool
from tidegate.render.kustomize.tree import KUSTOMIZATION_NAMES

ALL_TOOLS = frozenset(Tool)
CHART_ENDING = "Chart.yaml"
BLOCKS = {
    "kustomize": Tool.KUSTOMIZE,
    "helm": Tool.HELM,
    "directory": Tool.DIRECTORY,
    "plugin": Tool.PLUGIN,
}


def choose_tool(
    source: Mapping[str, Json], names: Iterable[str], *, enabled: frozenset[Tool] = ALL_TOOLS
) -> Tool:
    """The tool for a source. `names` are those of the files right in its directory.

    A block of the source decides, unless it says nothing. Else the names decide.
    """
    said = said_tool(source)
    return detected_tool(names, enabled=enabled) if said is None else said


def said_tool(source: Mapping[str, Json]) -> Tool | None:
    """The tool whose block stands in the source. A chart always is Helm's."""
    blocks = [name for name in BLOCKS if _says_something(name, source.get(name))]
    if len(blocks) > 1:
        named = " and ".join(f"`{name}`" for name in blocks)
        problem = f"the source has more than one tool: {named}"
        raise RenderError("render.tool.several", problem, hint="keep one of the blocks")
    if blocks:
        return BLOCKS[blocks[0]]
    return Tool.HELM if source.get("chart") else None


def detected_tool(names: Iterable[str], *, enabled: frozenset[Tool] = ALL_TOOLS) -> Tool:
    """The tool that the files speak for. Argo CD walks them by name, and the last one wins."""
    found = Tool.DIRECTORY
    for name in sorted(names, key=lambda name: name.encode(errors="surrogateescape")):
        if name.endswith(CHART_ENDING) and Tool.HELM in enabled:
            found = Tool.HELM
        if name in KUSTOMIZATION_NAMES and Tool.KUSTOMIZE in enabled:
            found = Tool.KUSTOMIZE
    return found


def _says_something(name: str, block: Json) -> bool:
    """An empty plugin block counts too: it asks for whichever plugin claims the source."""
    if name == "plugin" or not isinstance(block, dict):
        return block is not None
    return any(not _is_zero(field, value) for field, value in block.items())


def _is_zero(field: str, value: Json) -> bool:
    if field == "jsonnet" and isinstance(value, dict):
        return not any(value.values())
    return not value

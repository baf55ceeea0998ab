"""Diagrams in Mermaid and DOT."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.units.unit import Strength
from tidegate.report.graph.layout import Diagram, DiagramArrow, DiagramBox


def mermaid_lines(diagram: Diagram) -> Iterator[str]:
    """Yield a flowchart with a group for each unit and for each of its waves."""
    yield "flowchart LR"
    for box in diagram.boxes:
        yield from _mermaid_box(box)
    for arrow in diagram.arrows:
        yield f"  {arrow.before} {_mermaid_arrow(arrow)} {arrow.after}"
    for index, arrow in enumerate(diagram.arrows):
        if arrow.is_inverted:
            yield f"  linkStyle {index} stroke:#c62828,stroke-width:2px"


def _mermaid_box(box: DiagramBox) -> Iterator[str]:
    if not box.waves:
        yield f'  {box.key}["{mermaid_text(box.label)}"]'
        return
    yield f'  subgraph {box.key}["{mermaid_text(box.label)}"]'
    for index, wave in enumerate(box.waves):
        yield f'    subgraph {box.key}w{index}["{mermaid_text(wave.label)}"]'
        for item in wave.items:
            yield f'      {item.key}["{mermaid_text(item.label)}"]'
        yield "    end"
    yield "  end"


def _mermaid_arrow(arrow: DiagramArrow) -> str:
    line = "-.->" if arrow.strength is Strength.SOFT else "-->"
    return f'{line}|"{mermaid_text(arrow.label)}"|' if arrow.label else line


def mermaid_text(text: str) -> str:
    """Return a label with quotes and special characters as entity codes."""
    codes = {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "`": "#96;"}
    return "".join(codes.get(character, character) for character in text)


def dot_lines(diagram: Diagram) -> Iterator[str]:
    """Yield a digraph with a cluster for each unit and for each of its waves."""
    yield "digraph tidegate {"
    yield "  rankdir=LR; compound=true; node [shape=box, style=rounded, fontsize=10];"
    yield "  graph [fontsize=11, style=rounded];"
    anchors = {}
    for box in diagram.boxes:
        anchors[box.key] = next((item.key for item in box.items), f"{box.key}a")
        yield from _dot_box(box)
    clusters = {box.key for box in diagram.boxes if box.waves}
    for arrow in diagram.arrows:
        yield f"  {_dot_arrow(arrow, anchors, clusters)}"
    yield "}"


def _dot_box(box: DiagramBox) -> Iterator[str]:
    if not box.waves:
        yield f"  {box.key}a [label={_dot_text(box.label)}];"
        return
    yield f"  subgraph cluster_{box.key} {{ label={_dot_text(box.label)};"
    for index, wave in enumerate(box.waves):
        yield f"    subgraph cluster_{box.key}w{index} {{ label={_dot_text(wave.label)};"
        for item in wave.items:
            yield f"      {item.key} [label={_dot_text(item.label)}];"
        yield "    }"
    yield "  }"


def _dot_arrow(arrow: DiagramArrow, anchors: dict[str, str], clusters: set[str]) -> str:
    attributes = [f"label={_dot_text(arrow.label)}"] if arrow.label else []
    attributes += ["style=dashed"] if arrow.strength is Strength.SOFT else []
    attributes += ["color=red"] if arrow.is_inverted else []
    attributes += ["color=gray"] if arrow.is_parent else []
    attributes += [f"ltail=cluster_{arrow.before}"] if arrow.before in clusters else []
    attributes += [f"lhead=cluster_{arrow.after}"] if arrow.after in clusters else []
    ends = [anchors.get(end, end) for end in (arrow.before, arrow.after)]
    return f"{ends[0]} -> {ends[1]}{' [' + ', '.join(attributes) + ']' if attributes else ''};"


def _dot_text(text: str) -> str:
    text_escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text_escaped}"'

"""A picture in the languages of others: Mermaid and DOT."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.unit import Strength
from tidegate.report.graph.picture import GraphPicture, PictureBox, PictureTie


def mermaid_lines(picture: GraphPicture) -> Iterator[str]:
    """A flowchart: units are groups, waves are groups in them."""
    yield "flowchart LR"
    for box in picture.boxes:
        yield from _mermaid_box(box)
    for tie in picture.ties:
        yield f"  {tie.before} {_mermaid_arrow(tie)} {tie.after}"
    for at, tie in enumerate(picture.ties):
        if tie.is_wrong:
            yield f"  linkStyle {at} stroke:#c62828,stroke-width:2px"


def _mermaid_box(box: PictureBox) -> Iterator[str]:
    if not box.waves:
        yield f'  {box.key}["{_mermaid_text(box.label)}"]'
        return
    yield f'  subgraph {box.key}["{_mermaid_text(box.label)}"]'
    for number, wave in enumerate(box.waves):
        yield f'    subgraph {box.key}w{number}["{_mermaid_text(wave.label)}"]'
        for item in wave.items:
            yield f'      {item.key}["{_mermaid_text(item.label)}"]'
        yield "    end"
    yield "  end"


def _mermaid_arrow(tie: PictureTie) -> str:
    arrow = "-.->" if tie.strength is Strength.SOFT else "-->"
    return f'{arrow}|"{_mermaid_text(tie.label)}"|' if tie.label else arrow


def _mermaid_text(text: str) -> str:
    """Quotes end a label, and a few signs begin something else."""
    codes = {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "`": "#96;"}
    return "".join(codes.get(sign, sign) for sign in text)


def dot_lines(picture: GraphPicture) -> Iterator[str]:
    """A digraph with a cluster for each unit and for each of its waves."""
    yield "digraph tidegate {"
    yield "  rankdir=LR; compound=true; node [shape=box, style=rounded, fontsize=10];"
    yield "  graph [fontsize=11, style=rounded];"
    anchors = {}
    for box in picture.boxes:
        anchors[box.key] = next((item.key for item in box.items), f"{box.key}a")
        yield from _dot_box(box)
    clusters = {box.key for box in picture.boxes if box.waves}
    for tie in picture.ties:
        yield f"  {_dot_tie(tie, anchors, clusters)}"
    yield "}"


def _dot_box(box: PictureBox) -> Iterator[str]:
    if not box.waves:
        yield f"  {box.key}a [label={_dot_text(box.label)}];"
        return
    yield f"  subgraph cluster_{box.key} {{ label={_dot_text(box.label)};"
    for number, wave in enumerate(box.waves):
        yield f"    subgraph cluster_{box.key}w{number} {{ label={_dot_text(wave.label)};"
        for item in wave.items:
            yield f"      {item.key} [label={_dot_text(item.label)}];"
        yield "    }"
    yield "  }"


def _dot_tie(tie: PictureTie, anchors: dict[str, str], clusters: set[str]) -> str:
    notes = [f"label={_dot_text(tie.label)}"] if tie.label else []
    notes += ["style=dashed"] if tie.strength is Strength.SOFT else []
    notes += ["color=red"] if tie.is_wrong else []
    notes += ["color=gray"] if tie.is_parent else []
    notes += [f"ltail=cluster_{tie.before}"] if tie.before in clusters else []
    notes += [f"lhead=cluster_{tie.after}"] if tie.after in clusters else []
    ends = [anchors.get(end, end) for end in (tie.before, tie.after)]
    return f"{ends[0]} -> {ends[1]}{' [' + ', '.join(notes) + ']' if notes else ''};"


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

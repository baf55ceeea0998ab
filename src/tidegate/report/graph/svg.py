"""Diagram as SVG, without external resources.

Boxes are placed in columns after the boxes that they wait for. A column that is too high
continues next to itself, and too many columns continue below. Arrows run from the right
edge of a box to the left edge of another, below the boxes; inverted arrows are drawn on top.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from html import escape

import msgspec

from tidegate.model.units.unit import Strength
from tidegate.report.graph.layout import OUTSIDE, Diagram, DiagramArrow, DiagramBox

BOX_WIDTH, LINE_HEIGHT, HEADER_HEIGHT, WAVE_HEIGHT = 300, 18, 30, 20
GAP_X, GAP_Y, MARGIN, PAD = 90, 26, 24, 8
MAX_COLUMN_HEIGHT, COLUMNS_PER_BAND, GAP_BANDS = 1200, 5, 60
MAX_LABEL_LENGTH, MAX_HEADER_LENGTH = 40, 38
"""Maximum number of characters of a label in a box."""
MAX_EQUAL_LABELS = 12
"""Maximum number of arrows with the same visible label; beyond it, labels are tooltips only."""
STYLE = """\
text{font:12px ui-sans-serif,system-ui,sans-serif;fill:var(--ink)}
.head{font-weight:600}.wave{font-size:11px;fill:var(--soft)}
.box{fill:var(--box);stroke:var(--line)}.critical .box{stroke:var(--path);stroke-width:2.5}
.outside .box{fill:var(--out);stroke-dasharray:5 4}
.band{fill:var(--band)}
.tie{fill:none;stroke:var(--tie);stroke-width:1.4}
.parent{stroke:var(--line);stroke-width:1;opacity:.6}.soft{stroke-dasharray:5 4}
.wrong{stroke:var(--bad);stroke-width:2}.label{font-size:10px;fill:var(--soft)}
.label.bad{fill:var(--bad)}
svg{--ink:#1b2733;--soft:#5b6b7a;--box:#fff;--line:#a9b6c2;--band:#eef2f6;--out:#fff8e6;\
--tie:#2a6fb0;--bad:#c62828;--path:#2e7d32;--page:#fafbfc}
@media (prefers-color-scheme:dark){svg{--ink:#e6edf3;--soft:#9aa8b5;--box:#161d25;\
--line:#4a5764;--band:#202a34;--out:#2a2415;--tie:#6db3f2;--bad:#ff7b72;--path:#56d364;\
--page:#0d1117}}
"""


class _Rect(msgspec.Struct, frozen=True):
    x: int
    y: int
    height: int

    @property
    def middle(self) -> int:
        return self.y + self.height // 2


class _Layout(msgspec.Struct, frozen=True):
    boxes: dict[str, _Rect]
    items: dict[str, _Rect]
    width: int
    height: int

    def find(self, key: str) -> _Rect | None:
        return self.boxes.get(key) or self.items.get(key)


def svg_lines(diagram: Diagram) -> Iterator[str]:
    """Yield an SVG document."""
    layout = _layout_diagram(diagram)
    size = f'width="{layout.width}" height="{layout.height}"'
    box = f'viewBox="0 0 {layout.width} {layout.height}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img">'
    yield "<title>Dependency graph</title>"
    yield f"<style>{STYLE}</style>"
    yield _arrow_heads()
    yield '<rect width="100%" height="100%" fill="var(--page)"/>'
    label_counts = Counter(arrow.label for arrow in diagram.arrows)
    arrows = sorted(diagram.arrows, key=lambda item: not item.is_parent)
    for arrow in arrows:
        if not arrow.is_inverted:
            yield from _arrow_lines(
                arrow, layout, with_label=label_counts[arrow.label] <= MAX_EQUAL_LABELS
            )
    for box_item in diagram.boxes:
        yield from _box_lines(box_item, layout)
    for arrow in arrows:
        if arrow.is_inverted:
            yield from _arrow_lines(arrow, layout, with_label=True)
    yield "</svg>"


def _arrow_heads() -> str:
    markers = (("tie", "tie"), ("parent", "line"), ("wrong", "bad"))
    shape = "M0,0 L8,4 L0,8 z"
    elements = "".join(
        f'<marker id="m-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="{shape}" fill="var(--{color})"/></marker>'
        for name, color in markers
    )
    return f"<defs>{elements}</defs>"


def _height(box: DiagramBox) -> int:
    waves = sum(WAVE_HEIGHT + LINE_HEIGHT * len(wave.items) + PAD for wave in box.waves)
    return HEADER_HEIGHT + waves + (PAD if box.waves else 0)


def _layout_diagram(diagram: Diagram) -> _Layout:
    columns: dict[int, list[DiagramBox]] = {}
    for box in diagram.boxes:
        columns.setdefault(box.column, []).append(box)
    predecessors: dict[str, list[str]] = {}
    for arrow in diagram.arrows:
        predecessors.setdefault(_box_key(arrow.after), []).append(_box_key(arrow.before))
    boxes: dict[str, _Rect] = {}
    slots = [
        slot for column in sorted(columns) for slot in _split_column(columns[column], predecessors)
    ]
    top, right = MARGIN, 0
    for start in range(0, len(slots), COLUMNS_PER_BAND):
        bottom = top
        for index, slot in enumerate(slots[start : start + COLUMNS_PER_BAND]):
            x, y = MARGIN + index * (BOX_WIDTH + GAP_X), top
            right = max(right, x + BOX_WIDTH)
            for box in slot:
                boxes[box.key] = _Rect(x, y, _height(box))
                y += _height(box) + GAP_Y
            bottom = max(bottom, y)
        top = bottom + GAP_BANDS
    items = {key: rect for box in diagram.boxes for key, rect in _item_rects(box, boxes[box.key])}
    width = max(right, MARGIN + BOX_WIDTH) + GAP_X
    return _Layout(boxes, items, width, max(top - GAP_BANDS, MARGIN) + MARGIN)


def _box_key(key: str) -> str:
    """Return the key of the box of an item."""
    return key.partition("n")[0]


def _split_column(
    boxes: list[DiagramBox], predecessors: dict[str, list[str]]
) -> Iterator[list[DiagramBox]]:
    """Yield a column in parts of limited height, boxes sorted by their predecessors."""
    slot: list[DiagramBox] = []
    height = 0
    for box in sorted(boxes, key=lambda box: (sorted(predecessors.get(box.key, ())), box.label)):
        if slot and height + _height(box) > MAX_COLUMN_HEIGHT:
            yield slot
            slot, height = [], 0
        slot.append(box)
        height += _height(box) + GAP_Y
    if slot:
        yield slot


def _item_rects(box: DiagramBox, rect: _Rect) -> Iterator[tuple[str, _Rect]]:
    y = rect.y + HEADER_HEIGHT
    for wave in box.waves:
        y += WAVE_HEIGHT
        for item in wave.items:
            yield item.key, _Rect(rect.x, y, LINE_HEIGHT)
            y += LINE_HEIGHT
        y += PAD


def _box_lines(box: DiagramBox, layout: _Layout) -> Iterator[str]:
    rect = layout.boxes[box.key]
    kind = " outside" if box.key == OUTSIDE else ""
    kind += " critical" if box.is_critical else ""
    yield f'<g class="unit{kind}" data-key="{box.key}">'
    yield f"<title>{_escaped_text(f'{box.label} {box.location}'.strip())}</title>"
    yield (
        f'<rect class="box" x="{rect.x}" y="{rect.y}" width="{BOX_WIDTH}" height="{rect.height}"'
        ' rx="6"/>'
    )
    yield from _header_lines(box, rect)
    y = rect.y + HEADER_HEIGHT
    for wave in box.waves:
        band = f'x="{rect.x + 4}" y="{y}" width="{BOX_WIDTH - 8}"'
        yield (
            f'<rect class="band" {band} height="{WAVE_HEIGHT + LINE_HEIGHT * len(wave.items)}"'
            ' rx="4"/>'
        )
        yield (
            f'<text class="wave" x="{rect.x + PAD}"'
            f' y="{y + 14}">{_truncated_text(wave.label)}</text>'
        )
        y += WAVE_HEIGHT
        for item in wave.items:
            yield (
                f'<g class="item" data-key="{item.key}">'
                f"<title>{_escaped_text(f'{item.label} {item.location}'.strip())}</title>"
                f'<text x="{rect.x + 2 * PAD}"'
                f' y="{y + 13}">{_truncated_text(item.label)}</text></g>'
            )
            y += LINE_HEIGHT
        y += PAD
    yield "</g>"


def _header_lines(box: DiagramBox, rect: _Rect) -> Iterator[str]:
    """Yield the name of a unit and, if it fits, its kind and namespace on the right."""
    name = box.unit.name if box.unit else box.label
    y = rect.y + 20
    yield (
        f'<text class="head" x="{rect.x + PAD}"'
        f' y="{y}">{_truncated_text(name, MAX_HEADER_LENGTH)}</text>'
    )
    prefix = box.label.removesuffix(name).rstrip("/")
    if prefix and len(name) + len(prefix) < MAX_HEADER_LENGTH:
        end = f'x="{rect.x + BOX_WIDTH - PAD}" y="{y}" text-anchor="end"'
        yield f'<text class="wave" {end}>{_escaped_text(prefix)}</text>'


def _arrow_lines(arrow: DiagramArrow, layout: _Layout, *, with_label: bool) -> Iterator[str]:
    start, end = layout.find(arrow.before), layout.find(arrow.after)
    if start is None or end is None:
        return
    classes = [
        "tie",
        *(["parent"] if arrow.is_parent else []),
        *(["wrong"] if arrow.is_inverted else []),
    ]
    classes += ["soft"] if arrow.strength is Strength.SOFT else []
    marker = "wrong" if arrow.is_inverted else "parent" if arrow.is_parent else "tie"
    path, middle = _curve(start, end, is_item=arrow.after in layout.items)
    ends = f'data-before="{arrow.before}" data-after="{arrow.after}"'
    yield f'<path class="{" ".join(classes)}" d="{path}" marker-end="url(#m-{marker})" {ends}>'
    yield f"<title>{_escaped_text(arrow.title or arrow.label)}</title></path>"
    if arrow.label and with_label and (arrow.is_inverted or arrow.after in layout.boxes):
        bad = " bad" if arrow.is_inverted else ""
        x, y = middle
        yield (
            f'<text class="label{bad}" x="{x}"'
            f' y="{y - 3}">{_truncated_text(arrow.label, 24)}</text>'
        )


def _curve(start: _Rect, end: _Rect, *, is_item: bool) -> tuple[str, tuple[int, int]]:
    """Return the path of an arrow and its middle.

    An arrow runs from the right edge to the left edge; within a column around the right side.
    """
    y1, y2 = _arrow_y(start), _arrow_y(end)
    x1 = start.x + BOX_WIDTH
    if start.x == end.x:
        x2, bow = end.x + BOX_WIDTH, 26 + min(abs(y2 - y1) // 8, 40)
        path = f"M{x1},{y1} C{x1 + bow},{y1} {x2 + bow},{y2} {x2},{y2}"
        return path, (x1 + bow // 2, (y1 + y2) // 2)
    if end.x < start.x and end.y > start.y + start.height and end.height > LINE_HEIGHT:
        # The next box is in the band below: from the bottom of one box to the top of the other.
        x1, x2, y1, y2 = (
            start.x + BOX_WIDTH // 2,
            end.x + BOX_WIDTH // 2,
            start.y + start.height,
            end.y,
        )
        bend = max((y2 - y1) // 2, 30)
        path = f"M{x1},{y1} C{x1},{y1 + bend} {x2},{y2 - bend} {x2},{y2}"
        return path, ((x1 + x2) // 2, (y1 + y2) // 2)
    if end.x < start.x:
        x1, x2 = start.x, end.x + BOX_WIDTH
        bend = max((x1 - x2) // 2, 30)
        path = f"M{x1},{y1} C{x1 - bend},{y1} {x2 + bend},{y2} {x2},{y2}"
        return path, ((x1 + x2) // 2, (y1 + y2) // 2)
    x2 = end.x + (2 if is_item else 0)
    bend = max((x2 - x1) // 2, 30)
    path = f"M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2},{y2}"
    return path, ((x1 + x2) // 2 - 20, (y1 + y2) // 2)


def _arrow_y(rect: _Rect) -> int:
    """Return where arrows end: at the header of a box or the middle of a line."""
    return rect.y + (LINE_HEIGHT // 2 if rect.height <= LINE_HEIGHT else HEADER_HEIGHT // 2)


def _truncated_text(text: str, limit: int = MAX_LABEL_LENGTH) -> str:
    return _escaped_text(text if len(text) <= limit else text[: limit - 1] + "…")


def _escaped_text(text: str) -> str:
    return escape("".join(character for character in text if character.isprintable()))

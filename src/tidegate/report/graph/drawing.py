"""A picture as SVG: our own, without anything from elsewhere.

Boxes stand in columns, each behind those that it waits for. A column that is too high goes on
beside itself, and columns that are too many go on below, as lines of a text do. Arrows go from the
right edge of one to the left edge of another, below the boxes; those that are wrong lie above.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from html import escape

import msgspec

from tidegate.model.unit import Strength
from tidegate.report.graph.picture import OUTSIDE, GraphPicture, PictureBox, PictureTie

WIDE, LINE, HEAD, WAVE = 300, 18, 30, 20
GAP_X, GAP_Y, MARGIN, PAD = 90, 26, 24, 8
TALLEST, COLUMNS, GAP_BANDS = 1200, 5, 60
LETTERS, HEAD_LETTERS = 40, 38
"""So many letters of a label fit into a box."""
MOST_LABELS = 12
"""Arrows with the same words: beyond, they are told only when somebody points at one."""
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


def svg_lines(picture: GraphPicture) -> Iterator[str]:
    """One SVG document."""
    layout = _lay_out(picture)
    size = f'width="{layout.width}" height="{layout.height}"'
    box = f'viewBox="0 0 {layout.width} {layout.height}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img">'
    yield "<title>who waits for whom</title>"
    yield f"<style>{STYLE}</style>"
    yield _heads()
    yield '<rect width="100%" height="100%" fill="var(--page)"/>'
    said = Counter(tie.label for tie in picture.ties)
    ties = sorted(picture.ties, key=lambda one: not one.is_parent)
    for tie in ties:
        if not tie.is_wrong:
            yield from _tie_lines(tie, layout, is_told=said[tie.label] <= MOST_LABELS)
    for one in picture.boxes:
        yield from _box_lines(one, layout)
    for tie in ties:
        if tie.is_wrong:
            yield from _tie_lines(tie, layout, is_told=True)
    yield "</svg>"


def _heads() -> str:
    marks = (("tie", "tie"), ("parent", "line"), ("wrong", "bad"))
    shape = "M0,0 L8,4 L0,8 z"
    made = "".join(
        f'<marker id="m-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="{shape}" fill="var(--{colour})"/></marker>'
        for name, colour in marks
    )
    return f"<defs>{made}</defs>"


def _height(box: PictureBox) -> int:
    waves = sum(WAVE + LINE * len(wave.items) + PAD for wave in box.waves)
    return HEAD + waves + (PAD if box.waves else 0)


def _lay_out(picture: GraphPicture) -> _Layout:
    columns: dict[int, list[PictureBox]] = {}
    for box in picture.boxes:
        columns.setdefault(box.column, []).append(box)
    before: dict[str, list[str]] = {}
    for tie in picture.ties:
        before.setdefault(_home(tie.after), []).append(_home(tie.before))
    boxes: dict[str, _Rect] = {}
    slots = [slot for column in sorted(columns) for slot in _slots(columns[column], before)]
    top, right = MARGIN, 0
    for start in range(0, len(slots), COLUMNS):
        bottom = top
        for number, slot in enumerate(slots[start : start + COLUMNS]):
            x, y = MARGIN + number * (WIDE + GAP_X), top
            right = max(right, x + WIDE)
            for box in slot:
                boxes[box.key] = _Rect(x, y, _height(box))
                y += _height(box) + GAP_Y
            bottom = max(bottom, y)
        top = bottom + GAP_BANDS
    items = {key: rect for box in picture.boxes for key, rect in _item_rects(box, boxes[box.key])}
    width = max(right, MARGIN + WIDE) + GAP_X
    return _Layout(boxes, items, width, max(top - GAP_BANDS, MARGIN) + MARGIN)


def _home(key: str) -> str:
    """The box of an item."""
    return key.partition("n")[0]


def _slots(mine: list[PictureBox], before: dict[str, list[str]]) -> Iterator[list[PictureBox]]:
    """A column, in as many parts as its height asks for; who waits for the same stands together."""
    slot: list[PictureBox] = []
    height = 0
    for box in sorted(mine, key=lambda box: (sorted(before.get(box.key, ())), box.label)):
        if slot and height + _height(box) > TALLEST:
            yield slot
            slot, height = [], 0
        slot.append(box)
        height += _height(box) + GAP_Y
    if slot:
        yield slot


def _item_rects(box: PictureBox, at: _Rect) -> Iterator[tuple[str, _Rect]]:
    y = at.y + HEAD
    for wave in box.waves:
        y += WAVE
        for item in wave.items:
            yield item.key, _Rect(at.x, y, LINE)
            y += LINE
        y += PAD


def _box_lines(box: PictureBox, layout: _Layout) -> Iterator[str]:
    at = layout.boxes[box.key]
    kind = " outside" if box.key == OUTSIDE else ""
    kind += " critical" if box.is_critical else ""
    yield f'<g class="unit{kind}" data-key="{box.key}">'
    yield f"<title>{_text(f'{box.label} {box.where}'.strip())}</title>"
    yield (f'<rect class="box" x="{at.x}" y="{at.y}" width="{WIDE}" height="{at.height}" rx="6"/>')
    yield from _head_lines(box, at)
    y = at.y + HEAD
    for wave in box.waves:
        band = f'x="{at.x + 4}" y="{y}" width="{WIDE - 8}"'
        yield f'<rect class="band" {band} height="{WAVE + LINE * len(wave.items)}" rx="4"/>'
        yield f'<text class="wave" x="{at.x + PAD}" y="{y + 14}">{_fit(wave.label)}</text>'
        y += WAVE
        for item in wave.items:
            yield (
                f'<g class="item" data-key="{item.key}">'
                f"<title>{_text(f'{item.label} {item.where}'.strip())}</title>"
                f'<text x="{at.x + 2 * PAD}" y="{y + 13}">{_fit(item.label)}</text></g>'
            )
            y += LINE
        y += PAD
    yield "</g>"


def _head_lines(box: PictureBox, at: _Rect) -> Iterator[str]:
    """The name of a unit; at the right, where there is room, what it is."""
    name = box.unit.name if box.unit else box.label
    y = at.y + 20
    yield f'<text class="head" x="{at.x + PAD}" y="{y}">{_fit(name, HEAD_LETTERS)}</text>'
    what = box.label.removesuffix(name).rstrip("/")
    if what and len(name) + len(what) < HEAD_LETTERS:
        end = f'x="{at.x + WIDE - PAD}" y="{y}" text-anchor="end"'
        yield f'<text class="wave" {end}>{_text(what)}</text>'


def _tie_lines(tie: PictureTie, layout: _Layout, *, is_told: bool) -> Iterator[str]:
    start, end = layout.find(tie.before), layout.find(tie.after)
    if start is None or end is None:
        return
    classes = ["tie", *(["parent"] if tie.is_parent else []), *(["wrong"] if tie.is_wrong else [])]
    classes += ["soft"] if tie.strength is Strength.SOFT else []
    mark = "wrong" if tie.is_wrong else "parent" if tie.is_parent else "tie"
    path, middle = _curve(start, end, is_item=tie.after in layout.items)
    ends = f'data-before="{tie.before}" data-after="{tie.after}"'
    yield f'<path class="{" ".join(classes)}" d="{path}" marker-end="url(#m-{mark})" {ends}>'
    yield f"<title>{_text(tie.title or tie.label)}</title></path>"
    if tie.label and is_told and (tie.is_wrong or tie.after in layout.boxes):
        bad = " bad" if tie.is_wrong else ""
        x, y = middle
        yield f'<text class="label{bad}" x="{x}" y="{y - 3}">{_fit(tie.label, 24)}</text>'


def _curve(start: _Rect, end: _Rect, *, is_item: bool) -> tuple[str, tuple[int, int]]:
    """From the right edge to the left one; in the same column round the right side."""
    y1, y2 = _port(start), _port(end)
    x1 = start.x + WIDE
    if start.x == end.x:
        x2, bow = end.x + WIDE, 26 + min(abs(y2 - y1) // 8, 40)
        path = f"M{x1},{y1} C{x1 + bow},{y1} {x2 + bow},{y2} {x2},{y2}"
        return path, (x1 + bow // 2, (y1 + y2) // 2)
    if end.x < start.x and end.y > start.y + start.height and end.height > LINE:
        # It goes on in the line of boxes below: from the foot of one to the head of the other.
        x1, x2, y1, y2 = start.x + WIDE // 2, end.x + WIDE // 2, start.y + start.height, end.y
        bend = max((y2 - y1) // 2, 30)
        path = f"M{x1},{y1} C{x1},{y1 + bend} {x2},{y2 - bend} {x2},{y2}"
        return path, ((x1 + x2) // 2, (y1 + y2) // 2)
    if end.x < start.x:
        x1, x2 = start.x, end.x + WIDE
        bend = max((x1 - x2) // 2, 30)
        path = f"M{x1},{y1} C{x1 - bend},{y1} {x2 + bend},{y2} {x2},{y2}"
        return path, ((x1 + x2) // 2, (y1 + y2) // 2)
    x2 = end.x + (2 if is_item else 0)
    bend = max((x2 - x1) // 2, 30)
    path = f"M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2},{y2}"
    return path, ((x1 + x2) // 2 - 20, (y1 + y2) // 2)


def _port(rect: _Rect) -> int:
    """Where arrows touch: the head of a box, the middle of a line."""
    return rect.y + (LINE // 2 if rect.height <= LINE else HEAD // 2)


def _fit(text: str, letters: int = LETTERS) -> str:
    return _text(text if len(text) <= letters else text[: letters - 1] + "…")


def _text(text: str) -> str:
    return escape("".join(sign for sign in text if sign.isprintable()))

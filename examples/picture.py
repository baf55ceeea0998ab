"""The picture of the README: `make picture`.

The small shop rolls out on a simulated cluster, and its live view is drawn as it looks at one
moment, cell by cell, as SVG. The same input gives the same bytes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

from tests.support.unit_trees import make_unit_tree
from tidegate.clusters.sandboxes import SimulationConfig
from tidegate.clusters.session import ClusterTargets, open_session
from tidegate.engine.driver import drive
from tidegate.model.rollouts.event import Event
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import SECOND, Ms
from tidegate.planning.preparation import prepare_plan
from tidegate.report.rollout.live import ViewOptions, view_rows
from tidegate.report.styled_text import Row, Span, Style, text_width
from tidegate.rollout.run import RolloutOptions, build_driver
from tidegate.workspace.rendering.context import user_render_settings
from tidegate.workspace.request import unit_for_path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "rollout.svg"
UNIT = "examples/first"
COMMAND: Row = (Span("$ ", Style.FAINT), Span(f"tidegate sync {UNIT} --sandbox", Style.STRONG))
AFTER = Ms(95 * SECOND)
"""The database is ready by then, and the migration runs."""
COLUMNS = 80
CELL, LINE, BASELINE, MARGIN = 8.4, 21, 15, 18
FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
COLOURS = {
    Style.PLAIN: "#c9d1d9",
    Style.STRONG: "#f0f6fc",
    Style.FAINT: "#8b949e",
    Style.GOOD: "#3fb950",
    Style.BAD: "#f85149",
    Style.BUSY: "#39c5cf",
    Style.NOTICE: "#d29922",
}


async def view_of_shop() -> list[Row]:
    """The live view of the shop's rollout at that moment."""
    target, events = ClusterTargets(simulation=SimulationConfig()), list[Event]()
    async with open_session(target, user_render_settings()) as session:
        plan = (
            await prepare_plan(
                [await make_unit_tree(unit_for_path(str(ROOT / UNIT)), session)], session
            )
        ).plan
        start = session.world.now()
        await drive(build_driver(plan, session, RolloutOptions(holder="picture"), events.append))
    progress, now = RolloutProgress(start), Ms(start + AFTER)
    progress.add_plan(plan)
    for event in events:
        if event.at <= now:
            progress.add_event(event)
    return view_rows(progress, ViewOptions(width=COLUMNS - 1, title="default/first"), now)


def as_svg(rows: list[Row]) -> str:
    width = round(COLUMNS * CELL + 2 * MARGIN)
    height = len(rows) * LINE + 2 * MARGIN
    size, box = f'width="{width}" height="{height}"', f"0 0 {width} {height}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" {size} role="img">',
        "<title>A rollout, wave by wave, as the terminal shows it</title>",
        f'<rect {size} rx="8" fill="#0d1117"/>',
        f'<g font-family="{FONT}" font-size="14" xml:space="preserve">',
    ]
    for place, row in enumerate(rows):
        lines += _texts(row, MARGIN + place * LINE + BASELINE)
    return "\n".join([*lines, "</g>", "</svg>", ""])


def _texts(row: Row, height: int) -> Iterator[str]:
    """Each span at its column, as wide as its cells, whatever the font makes of it."""
    column = 0
    for span in row:
        width = text_width(span.text)
        shown = span.text.strip()
        if shown:
            before = text_width(span.text) - text_width(span.text.lstrip())
            left = MARGIN + (column + before) * CELL
            bold = ' font-weight="bold"' if span.style is Style.STRONG else ""
            yield (
                f'<text x="{left:.1f}" y="{height}" textLength="{text_width(shown) * CELL:.1f}"'
                f' fill="{COLOURS[span.style]}"{bold}>{escape(shown)}</text>'
            )
        column += width


def draw() -> str:
    return as_svg([COMMAND, *asyncio.run(view_of_shop())])


def main() -> int:
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw())
    print(PICTURE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())

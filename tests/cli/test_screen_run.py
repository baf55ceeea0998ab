"""How the story of `examples/first` looks: the pictures, the lines, the records, the failure.

What is seen is kept in `tests/data/screens`; `--golden` rewrites it.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from tests.support.first_example_run import ExampleRun, run_first_example
from tidegate.cli.screen.outputs import JsonOutput, LineOutput
from tidegate.cli.screen.terminal import SafeStream
from tidegate.model.rollouts.documents import EventDocument, event_from_document
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.report.rollout.explain import explain_failure
from tidegate.report.rollout.live import ViewOptions, final_rows, view_rows
from tidegate.report.rollout.summary import NextCommands, summary_rows
from tidegate.report.styled_text import (
    ASCII_SYMBOLS,
    UNICODE_SYMBOLS,
    Row,
    Symbols,
    plain_text,
    wrap_row,
)

SCREENS = Path(__file__).parents[1] / "data" / "screens"
MOMENTS = (2.0, 10.0, 40.0, 95.0, 110.0, 118.0)
COMMANDS = NextCommands(repeat="tidegate sync examples/first --sandbox", can_resume=False)


@pytest.fixture(params=[False, True], ids=["in-waves", "ignore-waves"])
async def recorded(request: pytest.FixtureRequest) -> ExampleRun:
    return await run_first_example(ignores_waves=bool(request.param))


def name_of(recorded: ExampleRun) -> str:
    return "in-waves" if len(recorded.plan.steps) > 1 else "ignore-waves"


def check(name: str, shown: str, config: pytest.Config) -> None:
    path = SCREENS / name
    if config.getoption("--golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown)
    assert shown == path.read_text()


def text_of(rows: Iterable[Row]) -> str:
    return "".join(f"{plain_text(row)}\n" for row in rows)


def pictures(recorded: ExampleRun, view: ViewOptions, marks: Symbols) -> str:
    """Each moment under its time; the last one is what stays."""
    shown = ""
    for after in MOMENTS:
        now = recorded.moment(after)
        if now < recorded.events[-1].at:
            rows = view_rows(recorded.progress(after), view, now)
            shown += f"--- {after}s\n{text_of(rows)}"
    progress = recorded.progress()
    ends = [*summary_rows(progress, symbols=marks)]
    if progress.failed_steps():
        ends = explain_failure(progress, recorded.evidence, commands=COMMANDS, symbols=marks)
    wrapped = [part for row in ends for part in wrap_row(row, view.width)]
    return f"{shown}--- the end\n{text_of([*final_rows(progress, view), *wrapped])}"


@pytest.mark.parametrize(
    ("columns", "marks"), [(80, UNICODE_SYMBOLS), (160, UNICODE_SYMBOLS), (80, ASCII_SYMBOLS)]
)
def test_the_picture(
    recorded: ExampleRun, columns: int, marks: Symbols, pytestconfig: pytest.Config
) -> None:
    view = ViewOptions(width=columns - 1, height=23, symbols=marks, title="default/first")

    shown = pictures(recorded, view, marks)

    kind = "ascii-" if marks is ASCII_SYMBOLS else ""
    check(f"{name_of(recorded)}-{kind}{columns}.txt", shown, pytestconfig)


def test_the_lines(recorded: ExampleRun, pytestconfig: pytest.Config) -> None:
    stream = io.StringIO()
    progress = RolloutProgress(recorded.start)
    progress.add_plan(recorded.plan)
    log = LineOutput(progress, SafeStream(stream), UNICODE_SYMBOLS)

    for event in recorded.events:
        log.on_event(event)
    log.finish(recorded.evidence, COMMANDS)

    check(f"{name_of(recorded)}-lines.txt", stream.getvalue(), pytestconfig)


def test_the_records_are_the_events(recorded: ExampleRun) -> None:
    stream = io.StringIO()
    records = JsonOutput(RolloutProgress(recorded.start), SafeStream(stream))

    for event in recorded.events:
        records.on_event(event)
    records.finish(recorded.evidence, COMMANDS)

    lines = stream.getvalue().splitlines()
    units = {str(event.unit): event.unit for event in recorded.events if event.unit}
    messages = [
        msgspec.json.decode(line, type=EventDocument) for line in lines[: len(recorded.events)]
    ]
    assert [event_from_document(item, units) for item in messages] == recorded.events
    ends = [msgspec.json.decode(line)["outcome"] for line in lines[len(recorded.events) :]]
    assert ends == (["failed"] if recorded.evidence else [])


async def test_the_failure_contains_the_message_of_the_kubelet() -> None:
    recorded = await run_first_example(ignores_waves=True)

    shown = text_of(explain_failure(recorded.progress(), recorded.evidence))

    assert any("Service default/db" in line and "dial-fails" in line for line in shown.splitlines())
    assert "dial tcp: lookup db: no endpoints" in shown


def test_no_secret_is_shown(recorded: ExampleRun) -> None:
    view = ViewOptions(width=159)
    messages = [msgspec.json.encode(event).decode() for event in recorded.events]

    shown = pictures(recorded, view, UNICODE_SYMBOLS) + "".join(messages) + repr(recorded.evidence)

    assert "only-for-this-example" not in shown
    assert "b25seS1mb3ItdGhpcy1leGFtcGxl" not in shown

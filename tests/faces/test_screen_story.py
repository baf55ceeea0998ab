"""How the story of `examples/first` looks: the pictures, the lines, the records, the failure.

What is seen is kept in `tests/data/screens`; `--golden` rewrites it.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from tests.fakes.story import Story, tell_first
from tidegate.cli.forms import Log, Records
from tidegate.cli.terminal import Outlet
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.documents import EventOut, event_in
from tidegate.report.rollout.failure import explain_failure
from tidegate.report.rollout.live import LiveView, final_rows, frame
from tidegate.report.rollout.rows import ASCII, UNICODE, Marks, Row, plain, wrap
from tidegate.report.rollout.summary import Commands, summarize

SCREENS = Path(__file__).parents[1] / "data" / "screens"
MOMENTS = (2.0, 10.0, 40.0, 95.0, 110.0, 118.0)
COMMANDS = Commands(again="tidegate sync examples/first --sandbox", resumes=False)


@pytest.fixture(params=[False, True], ids=["in-waves", "ignore-waves"])
async def story(request: pytest.FixtureRequest) -> Story:
    return await tell_first(ignores_waves=bool(request.param))


def name_of(story: Story) -> str:
    return "in-waves" if len(story.plan.steps) > 1 else "ignore-waves"


def check(name: str, shown: str, config: pytest.Config) -> None:
    path = SCREENS / name
    if config.getoption("--golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown)
    assert shown == path.read_text()


def text_of(rows: Iterable[Row]) -> str:
    return "".join(f"{plain(row)}\n" for row in rows)


def pictures(story: Story, view: LiveView, marks: Marks) -> str:
    """Each moment under its time; the last one is what stays."""
    shown = ""
    for after in MOMENTS:
        now = story.moment(after)
        if now < story.events[-1].at:
            rows = frame(story.course(after), view, now)
            shown += f"--- {after}s\n{text_of(rows)}"
    course = story.course()
    ends = [*summarize(course, marks=marks)]
    if course.failures():
        ends = explain_failure(course, story.evidence, commands=COMMANDS, marks=marks)
    wrapped = [part for row in ends for part in wrap(row, view.width)]
    return f"{shown}--- the end\n{text_of([*final_rows(course, view), *wrapped])}"


@pytest.mark.parametrize(("columns", "marks"), [(80, UNICODE), (160, UNICODE), (80, ASCII)])
def test_the_picture(story: Story, columns: int, marks: Marks, pytestconfig: pytest.Config) -> None:
    view = LiveView(width=columns - 1, height=23, marks=marks, title="default/first")

    shown = pictures(story, view, marks)

    kind = "ascii-" if marks is ASCII else ""
    check(f"{name_of(story)}-{kind}{columns}.txt", shown, pytestconfig)


def test_the_lines(story: Story, pytestconfig: pytest.Config) -> None:
    stream = io.StringIO()
    course = Course(story.start)
    course.expect(story.plan)
    log = Log(course, Outlet(stream), UNICODE)

    for event in story.events:
        log.take(event)
    log.end(story.evidence, COMMANDS)

    check(f"{name_of(story)}-lines.txt", stream.getvalue(), pytestconfig)


def test_the_records_are_the_events(story: Story) -> None:
    stream = io.StringIO()
    records = Records(Course(story.start), Outlet(stream))

    for event in story.events:
        records.take(event)
    records.end(story.evidence, COMMANDS)

    lines = stream.getvalue().splitlines()
    units = {str(event.unit): event.unit for event in story.events if event.unit}
    told = [msgspec.json.decode(line, type=EventOut) for line in lines[: len(story.events)]]
    assert [event_in(one, units) for one in told] == story.events
    ends = [msgspec.json.decode(line)["outcome"] for line in lines[len(story.events) :]]
    assert ends == (["failed"] if story.evidence else [])


async def test_the_failure_says_what_the_kubelet_says() -> None:
    story = await tell_first(ignores_waves=True)

    shown = text_of(explain_failure(story.course(), story.evidence))

    assert "Service default/db has no ready endpoints" in shown
    assert "dial tcp: lookup db: no endpoints" in shown


def test_no_secret_is_shown(story: Story) -> None:
    view = LiveView(width=159)
    told = [msgspec.json.encode(event).decode() for event in story.events]

    shown = pictures(story, view, UNICODE) + "".join(told) + repr(story.evidence)

    assert "only-for-this-example" not in shown
    assert "b25seS1mb3ItdGhpcy1leGFtcGxl" not in shown

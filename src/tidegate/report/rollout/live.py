"""The picture of a running rollout, at one moment: what runs, what it waits for, what comes.

Work that is done folds into a row for each step, then for each unit, then into one. Rows never
exceed the width, and the picture never exceeds the height.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import msgspec

from tidegate.errors import escaped
from tidegate.model.event import StepState
from tidegate.model.moment import Ms
from tidegate.report.rollout.course import Course, StepCourse, Wait
from tidegate.report.rollout.names import brief, core, count, limit, listing, running, seconds
from tidegate.report.rollout.rows import (
    UNICODE,
    Marks,
    Row,
    Span,
    Style,
    cells,
    clip,
    cut,
    pad,
    shorten,
    spread,
    width_of,
)
from tidegate.report.rollout.summary import STOPPED

MOST_WAITS = 8
"""How many objects are shown for a gate where there is room."""
MOST_COMING = 3
MOST_NAMED = 4
WIDE = 120
"""From this width on, a step that is done names its objects."""
WIDEST_NAME = 0.4
"""The share of a row that a name may take."""
STEP_MARK = 2
OBJECT_MARK = 4
BLANK: Row = ()
LOST = frozenset({StepState.FAILED, StepState.SKIPPED})


class LiveView(msgspec.Struct, frozen=True, kw_only=True):
    """How a picture is taken. `beat` turns the spinner; `least` is how high it is at least."""

    width: int = 80
    height: int = 24
    marks: Marks = UNICODE
    beat: int = 0
    least: int = 0
    title: str = ""
    notice: str = ""


def frame(course: Course, view: LiveView, now: Ms) -> list[Row]:
    """The rows of the picture."""
    now = max(now, course.now)
    bottom = _bottom(course, view, now)
    room = max(0, view.height - len(bottom))
    names = _name_width(course, view)
    blocks = _blocks(course, view, now, names, room=room)
    done = _done(course, _told(course), view, names, room=room - len(blocks))
    rows = [*done, *blocks]
    rows += [BLANK] * (min(view.height, view.least) - len(bottom) - len(rows))
    rows = [*rows, *bottom][-max(1, view.height) :]
    return [shorten(row, view.width) for row in rows]


def final_rows(course: Course, view: LiveView) -> list[Row]:
    """What stays on the screen when a rollout is over: each step in a row, folded.

    What failed, and what lies behind it, is told elsewhere and in full.
    """
    names = _name_width(course, view)
    room = max(view.height, MOST_WAITS)
    steps = [step for step in _told(course) if course.result == STOPPED or step.state not in LOST]
    rows = _done(course, steps, view, names, room=room)
    if course.result == STOPPED:
        at_rest = msgspec.structs.replace(view.marks, spinner=view.marks.skipped)
        still = msgspec.structs.replace(view, beat=0, marks=at_rest)
        rows += _blocks(course, still, course.now, names, room=room)
    return [shorten(row, view.width) for row in rows]


def _told(course: Course) -> list[StepCourse]:
    return [step for step in course.done.values() if not step.is_idle]


def _name_width(course: Course, view: LiveView) -> int:
    """Wide enough for all names, so that rows do not move when the next step begins."""
    longest = max((cells(course.title(step)) for step in course.steps.values()), default=8)
    return max(8, min(longest, int(view.width * WIDEST_NAME)))


def _blocks(course: Course, view: LiveView, now: Ms, names: int, *, room: int) -> list[Row]:
    """The steps that run, each with the objects that hold its gate."""
    if course.is_fresh:
        return [*_waiting_units(course, view, now), *_beginning(course, view)][:room]
    held = _waiting_units(course, view, now)[: max(0, room - 1)]
    return [*held, *_steps(course, view, now, names, room=room - len(held))]


def _waiting_units(course: Course, view: LiveView, now: Ms) -> list[Row]:
    """The units that another rollout holds."""
    mark = Span(f"{view.marks.waiting} ", Style.ODD)
    return [
        _row(view, (mark,), f"waits for unit {unit}: {held.sentence}", running(now - held.since))
        for unit, held in islice(course.held.items(), MOST_WAITS)
    ]


def _row(view: LiveView, left: Row, told: str, time: str, style: Style = Style.PLAIN) -> Row:
    """What is told between what stands left of it and a time; it is cut where it does not fit."""
    room = max(0, view.width - width_of(left) - cells(time) - 2)
    return spread((*left, Span(clip(told, room, view.marks.dots), style)), time, view.width)


def _name(text: str, width: int, view: LiveView) -> str:
    return pad(cut(text, width, view.marks.dots), width) + "  "


def _steps(course: Course, view: LiveView, now: Ms, names: int, *, room: int) -> list[Row]:
    active = list(course.active.values())
    keep = 1 if course.done else 0
    if len(active) > room - keep:
        shown = active[: max(0, room - keep - 1)]
        more = f"{view.marks.waiting} and {count(len(active) - len(shown), 'step')} more at work"
        return [*(_head(course, step, view, now, names) for step in shown), _faint(more)]
    spare = room - keep - len(active)
    rows: list[Row] = []
    for place, step in enumerate(active):
        rows.append(_head(course, step, view, now, names))
        share = min(MOST_WAITS, spare // (len(active) - place))
        held = _held(step, view, now, share)
        spare -= len(held)
        rows += held
    return rows


def _beginning(course: Course, view: LiveView) -> list[Row]:
    objects = count(sum(step.size for step in course.counted), "object")
    told = f"looks at {objects} before the first write"
    mark = Span(f"{_turning(view)} ", Style.BUSY)
    return [(mark, Span(clip(told, max(0, view.width - STEP_MARK), view.marks.dots)))]


def _turning(view: LiveView) -> str:
    return view.marks.spinner[view.beat % len(view.marks.spinner)]


def _head(course: Course, step: StepCourse, view: LiveView, now: Ms, names: int) -> Row:
    mark, style = _turning(view), Style.BUSY
    if step.state is StepState.WAITING:
        mark, style = view.marks.waiting, Style.ODD
    name = _name(course.title(step), names, view)
    left = (Span(f"{mark} ", style), Span(name, Style.STRONG))
    return _row(view, left, _doing(step, now), _time(step, now))


def _time(step: StepCourse, now: Ms) -> str:
    spent = running(step.spent(now))
    until = step.until
    return f"{spent} of {limit(until - step.since)}" if until > step.since else spent


def _doing(step: StepCourse, now: Ms) -> str:
    match step.state:
        case StepState.CHECKING:
            return f"looks at {count(step.size, 'object')}"
        case StepState.APPLYING:
            return f"applies {len(step.deeds):,} of {count(step.size, 'object')}"
        case StepState.GATING if step.waits:
            return f"waits for {_share(len(step.waits), step.size)}"
        case StepState.GATING:
            return f"applied {count(step.size, 'object')}, looks at the gate soon"
        case _ if step.again is not None:
            return f"tries again in {running(step.again - now)}: {step.sentence}"
        case _:
            return step.sentence


def _share(some: int, size: int) -> str:
    if some < size:
        return f"{some:,} of {count(size, 'object')}"
    return count(size, "object") if size == 1 else f"all {count(size, 'object')}"


def _held(step: StepCourse, view: LiveView, now: Ms, room: int) -> list[Row]:
    """The objects that hold a gate, the longest wait first; the last row counts the others."""
    if not step.waits or room < 1:
        return []
    over = len(step.waits) > room
    shown = list(islice(step.waits.values(), room - 1 if over else room))
    widest = max((cells(str(wait.ref)) for wait in shown), default=0)
    names = min(widest, int(view.width * WIDEST_NAME))
    spare = room - len(shown) - over
    rows: list[Row] = []
    for wait in shown:
        rows.append(_wait(wait, view, now, names))
        lines = wait.printed[-spare:] if spare > 0 else ()
        rows += [_printed(line, view) for line in lines]
        spare -= len(lines)
    if over:
        more = f"{'and ' if shown else ''}{len(step.waits) - len(shown):,} more"
        rows.append(_faint(f"{' ' * OBJECT_MARK}{more}"))
    return rows


def _printed(line: str, view: LiveView) -> Row:
    text = f"{' ' * OBJECT_MARK}| {escaped(line)}"
    return _faint(clip(text, view.width, view.marks.dots))


def _wait(wait: Wait, view: LiveView, now: Ms, names: int) -> Row:
    left = (Span(" " * OBJECT_MARK), Span(_name(str(wait.ref), names, view)))
    return _row(
        view, left, core(wait.cause) or brief(wait.sentence), running(now - wait.since), Style.FAINT
    )


def _done(
    course: Course, steps: list[StepCourse], view: LiveView, names: int, *, room: int
) -> list[Row]:
    """What is done: by step while that fits, then by unit, then the oldest as one."""
    if room < 1:
        return []
    rows = [_finished(course, step, view, names) for step in steps[-room:]]
    if len(steps) <= room:
        return rows
    folded = _folded_units(course, steps, view, names)
    if len(folded) <= room:
        return folded
    hidden = steps[: len(steps) - room + 1]
    objects = sum(step.size for step in hidden)
    told = f"{count(len(hidden), 'step')} before, {count(objects, 'object')}"
    return [_faint(f"{view.marks.passed} {told}"), *rows[1:]]


def _finished(course: Course, step: StepCourse, view: LiveView, names: int) -> Row:
    mark, style = _final_mark(step, view.marks)
    left = (Span(f"{mark} ", style), Span(_name(course.title(step), names, view)))
    time = "" if step.begun is None else seconds(step.spent(step.since))
    style_told = Style.BAD if step.state is StepState.FAILED else Style.FAINT
    return _row(view, left, _outcome(step, wide=view.width >= WIDE), time, style_told)


def _outcome(step: StepCourse, *, wide: bool) -> str:
    match step.state:
        case StepState.FAILED:
            return step.sentence or step.reason or "failed"
        case StepState.SKIPPED:
            return f"skipped, {count(step.size, 'object')}"
        case StepState.SUPERSEDED:
            return "given up for a newer plan"
        case _:
            named = f": {listing(step.deeds, MOST_NAMED)}" if wide and step.deeds else ""
            return count(step.size, "object") + named


def _final_mark(step: StepCourse, marks: Marks) -> tuple[str, Style]:
    match step.state:
        case StepState.PASSED:
            return marks.passed, Style.GOOD
        case StepState.FAILED:
            return marks.failed, Style.BAD
        case _:
            return marks.skipped, Style.FAINT


def _folded_units(
    course: Course, steps: Iterable[StepCourse], view: LiveView, names: int
) -> list[Row]:
    """A row for each unit that wholly passed, in the place of its steps."""
    open_units = {step.unit for step in course.counted if step.state is not StepState.PASSED}
    by_unit: dict[str, list[StepCourse]] = {}
    for step in steps:
        key = step.id if step.unit in open_units else step.unit
        by_unit.setdefault(key, []).append(step)
    rows: list[Row] = []
    for members in by_unit.values():
        if members[0].unit in open_units or len(members) == 1:
            rows.append(_finished(course, members[0], view, names))
            continue
        begun = min(step.since - step.spent(step.since) for step in members)
        objects = count(sum(step.size for step in members), "object")
        told = f"{count(len(members), 'step')}, {objects}"
        name = course.unit_name(members[0].unit) or "all steps"
        left = (Span(f"{view.marks.passed} ", Style.GOOD), Span(_name(name, names, view)))
        time = seconds(max(step.since for step in members) - begun)
        rows.append(_row(view, left, told, time, Style.FAINT))
    return rows


def _bottom(course: Course, view: LiveView, now: Ms) -> list[Row]:
    """What comes next, and how far it is."""
    rows = [] if course.result else _next(course, view)
    if view.notice:
        rows.append((Span(clip(view.notice, view.width, view.marks.dots), Style.ODD),))
    return [*rows, _progress(course, view, now)]


def _next(course: Course, view: LiveView) -> list[Row]:
    coming = list(islice(course.coming(), MOST_COMING + 1))
    if not coming:
        return []
    told = ", ".join(
        f"{course.title(step)} ({count(step.size, 'object')})" for step in coming[:MOST_COMING]
    )
    more = view.marks.dots if len(coming) > MOST_COMING else ""
    text = f"{view.marks.waiting} next: {told}{more}"
    return [_faint(clip(text, view.width, view.marks.dots))]


def _progress(course: Course, view: LiveView, now: Ms) -> Row:
    steps = course.counted
    passed = sum(step.state is StepState.PASSED for step in steps)
    settled = sum(step.settled for step in steps)
    objects = sum(step.size for step in steps)
    length = max(8, min(32, view.width // 5))
    filled = length * settled // objects if objects else 0
    bar = (
        Span(view.marks.full * filled, Style.BAD if course.failures() else Style.GOOD),
        Span(view.marks.empty * (length - filled), Style.FAINT),
    )
    parts = (
        running(now - course.start),
        f"{passed:,} of {count(len(steps), 'step')}",
        f"{settled:,} of {count(objects, 'object')}",
    )
    told = (*bar, Span("  "), Span(view.marks.part.join(parts)))
    return spread(told, view.title, view.width)


def _faint(text: str) -> Row:
    return (Span(text, Style.FAINT),)

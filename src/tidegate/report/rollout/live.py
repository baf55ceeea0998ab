"""Live view of a running rollout: active steps, what they wait for, next steps.

Finished work is folded into a row per step, then per unit, then into one row. Rows never exceed
the width, and the view never exceeds the height.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import msgspec

from tidegate.errors import escape_line
from tidegate.model.display import (
    cluster_noun,
    count_noun,
    format_limit,
    format_running,
    format_seconds,
    join_limited,
    shorten_cause,
    shorten_wait_message,
)
from tidegate.model.rollouts.event import StepState
from tidegate.model.rollouts.rollout_progress import GateWait, RolloutProgress, StepProgress
from tidegate.model.times import Ms
from tidegate.report.rollout.summary import STOPPED
from tidegate.report.styled_text import (
    UNICODE_SYMBOLS,
    Row,
    Span,
    Style,
    Symbols,
    justify,
    pad_text,
    row_width,
    text_width,
    truncate,
    truncate_middle,
    truncate_row,
)

MAX_WAITS = 8
"""Maximum number of objects shown for a gate."""
MAX_PENDING = 3
MAX_NAMED = 4
WIDE_COLUMNS = 120
"""From this width on, a finished step lists its objects."""
MAX_NAME_SHARE = 0.4
"""Maximum share of a row for a name."""
STEP_INDENT = 2
OBJECT_INDENT = 4
BLANK_ROW: Row = ()
FAILED_STATES = frozenset({StepState.FAILED, StepState.SKIPPED})


class ViewOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Size and style of a view."""

    width: int = 80
    height: int = 24
    symbols: Symbols = UNICODE_SYMBOLS
    tick: int = 0
    """Number of the frame; turns the spinner."""
    min_height: int = 0
    """Minimum number of rows."""
    title: str = ""
    notice: str = ""


def view_rows(progress: RolloutProgress, view: ViewOptions, now: Ms) -> list[Row]:
    """Return the rows of the view."""
    now = max(now, progress.now)
    bottom = _bottom_rows(progress, view, now)
    max_rows = max(0, view.height - len(bottom))
    name_width = _name_width(progress, view)
    active_rows = _active_rows(progress, view, now, name_width, max_rows=max_rows)
    finished_rows = _finished_rows(
        progress, _shown_steps(progress), view, name_width, max_rows=max_rows - len(active_rows)
    )
    rows = [*finished_rows, *active_rows]
    rows += [BLANK_ROW] * (min(view.height, view.min_height) - len(bottom) - len(rows))
    rows = [*rows, *bottom][-max(1, view.height) :]
    return [truncate_row(row, view.width) for row in rows]


def final_rows(progress: RolloutProgress, view: ViewOptions) -> list[Row]:
    """Return the rows that stay on the screen after a rollout: one per step, folded.

    Failed steps and the steps after them are explained elsewhere.
    """
    name_width = _name_width(progress, view)
    max_rows = max(view.height, MAX_WAITS)
    steps = [
        step
        for step in _shown_steps(progress)
        if progress.outcome == STOPPED or step.state not in FAILED_STATES
    ]
    rows = _finished_rows(progress, steps, view, name_width, max_rows=max_rows)
    if progress.outcome == STOPPED:
        static_symbols = msgspec.structs.replace(view.symbols, spinner=view.symbols.skipped)
        static_view = msgspec.structs.replace(view, tick=0, symbols=static_symbols)
        rows += _active_rows(progress, static_view, progress.now, name_width, max_rows=max_rows)
    return [truncate_row(row, view.width) for row in rows]


def _shown_steps(progress: RolloutProgress) -> list[StepProgress]:
    return [step for step in progress.finished.values() if not step.is_unused]


def _name_width(progress: RolloutProgress, view: ViewOptions) -> int:
    """Return a width for all names, so that rows do not move when the next step starts."""
    longest = max(
        (text_width(progress.step_title(step)) for step in progress.steps.values()), default=8
    )
    return max(8, min(longest, int(view.width * MAX_NAME_SHARE)))


def _active_rows(
    progress: RolloutProgress, view: ViewOptions, now: Ms, name_width: int, *, max_rows: int
) -> list[Row]:
    """Return the active steps, each with the objects that keep its gate closed."""
    if progress.is_before_first_step:
        return [*_waiting_rows(progress, view, now), *_preparing_rows(progress, view)][:max_rows]
    waiting_rows = _waiting_rows(progress, view, now)[: max(0, max_rows - 1)]
    return [
        *waiting_rows,
        *_step_rows(progress, view, now, name_width, max_rows=max_rows - len(waiting_rows)),
    ]


def _waiting_rows(progress: RolloutProgress, view: ViewOptions, now: Ms) -> list[Row]:
    """Return the clusters that do not answer, and the units that wait for others."""
    symbol = Span(f"{view.symbols.waiting} ", Style.NOTICE)
    waits = [(cluster_noun(name), wait) for name, wait in progress.silent_clusters.items()]
    waits += [(f"unit {unit}", wait) for unit, wait in progress.waiting_units.items()]
    return [
        _message_row(
            view,
            (symbol,),
            f"waiting for {subject}: {wait.message}",
            format_running(now - wait.since),
        )
        for subject, wait in waits[:MAX_WAITS]
    ]


def _message_row(
    view: ViewOptions, left: Row, message: str, time: str, style: Style = Style.PLAIN
) -> Row:
    """Return a row of a message between a left part and a time; the message is cut to fit."""
    available = max(0, view.width - row_width(left) - text_width(time) - 2)
    return justify(
        (*left, Span(truncate(message, available, view.symbols.dots), style)), time, view.width
    )


def _padded_name(text: str, width: int, view: ViewOptions) -> str:
    return pad_text(truncate_middle(text, width, view.symbols.dots), width) + "  "


def _step_rows(
    progress: RolloutProgress, view: ViewOptions, now: Ms, name_width: int, *, max_rows: int
) -> list[Row]:
    active = list(progress.active.values())
    reserved = 1 if progress.finished else 0
    if len(active) > max_rows - reserved:
        shown = active[: max(0, max_rows - reserved - 1)]
        remaining = (
            f"{view.symbols.waiting} and {count_noun(len(active) - len(shown), 'more step')}"
            " running"
        )
        return [
            *(_step_row(progress, step, view, now, name_width) for step in shown),
            _faint_row(remaining),
        ]
    spare = max_rows - reserved - len(active)
    rows: list[Row] = []
    for position, step in enumerate(active):
        rows.append(_step_row(progress, step, view, now, name_width))
        max_waits = min(MAX_WAITS, spare // (len(active) - position))
        wait_rows = _wait_rows(step, view, now, max_waits)
        spare -= len(wait_rows)
        rows += wait_rows
    return rows


def _preparing_rows(progress: RolloutProgress, view: ViewOptions) -> list[Row]:
    objects = count_noun(sum(step.size for step in progress.counted_steps), "object")
    message = f"checking {objects} before the first write"
    symbol = Span(f"{_spinner(view)} ", Style.BUSY)
    return [(symbol, Span(truncate(message, max(0, view.width - STEP_INDENT), view.symbols.dots)))]


def _spinner(view: ViewOptions) -> str:
    return view.symbols.spinner[view.tick % len(view.symbols.spinner)]


def _step_row(
    progress: RolloutProgress, step: StepProgress, view: ViewOptions, now: Ms, name_width: int
) -> Row:
    symbol, style = _spinner(view), Style.BUSY
    if step.state is StepState.WAITING:
        symbol, style = view.symbols.waiting, Style.NOTICE
    name = _padded_name(progress.step_title(step), name_width, view)
    left = (Span(f"{symbol} ", style), Span(name, Style.STRONG))
    return _message_row(view, left, _activity(step, now), _elapsed_text(step, now))


def _elapsed_text(step: StepProgress, now: Ms) -> str:
    elapsed = format_running(step.elapsed(now))
    deadline = step.deadline
    return (
        f"{elapsed} of {format_limit(deadline - step.state_since)}"
        if deadline > step.state_since
        else elapsed
    )


def _activity(step: StepProgress, now: Ms) -> str:
    match step.state:
        case StepState.CHECKING:
            return f"checking {count_noun(step.size, 'object')}"
        case StepState.APPLYING:
            return f"applying {len(step.object_results):,} of {count_noun(step.size, 'object')}"
        case StepState.GATING if step.waits:
            return f"waiting for {_count_of(len(step.waits), step.size)}"
        case StepState.GATING:
            return f"applied {count_noun(step.size, 'object')}, checking the gate soon"
        case _ if step.retry_at is not None:
            return f"retrying in {format_running(step.retry_at - now)}: {step.message}"
        case _:
            return step.message


def _count_of(amount: int, size: int) -> str:
    if amount < size:
        return f"{amount:,} of {count_noun(size, 'object')}"
    return count_noun(size, "object") if size == 1 else f"all {count_noun(size, 'object')}"


def _wait_rows(step: StepProgress, view: ViewOptions, now: Ms, max_rows: int) -> list[Row]:
    """Return the objects that keep a gate closed, longest wait first, then the rest count."""
    if not step.waits or max_rows < 1:
        return []
    is_cut = len(step.waits) > max_rows
    shown = list(islice(step.waits.values(), max_rows - 1 if is_cut else max_rows))
    max_width = max((text_width(str(wait.ref)) for wait in shown), default=0)
    name_width = min(max_width, int(view.width * MAX_NAME_SHARE))
    spare = max_rows - len(shown) - is_cut
    rows: list[Row] = []
    for wait in shown:
        rows.append(_wait_row(wait, view, now, name_width))
        lines = wait.log_lines[-spare:] if spare > 0 else ()
        rows += [_log_row(line, view) for line in lines]
        spare -= len(lines)
    if is_cut:
        remaining = f"{'and ' if shown else ''}{len(step.waits) - len(shown):,} more"
        rows.append(_faint_row(f"{' ' * OBJECT_INDENT}{remaining}"))
    return rows


def _log_row(line: str, view: ViewOptions) -> Row:
    text = f"{' ' * OBJECT_INDENT}| {escape_line(line)}"
    return _faint_row(truncate(text, view.width, view.symbols.dots))


def _wait_row(wait: GateWait, view: ViewOptions, now: Ms, name_width: int) -> Row:
    left = (Span(" " * OBJECT_INDENT), Span(_padded_name(str(wait.ref), name_width, view)))
    return _message_row(
        view,
        left,
        shorten_cause(wait.cause) or shorten_wait_message(wait.message),
        format_running(now - wait.since),
        Style.FAINT,
    )


def _finished_rows(
    progress: RolloutProgress,
    steps: list[StepProgress],
    view: ViewOptions,
    name_width: int,
    *,
    max_rows: int,
) -> list[Row]:
    """Return the finished steps, folded by unit or into one row if they do not fit."""
    if max_rows < 1:
        return []
    rows = [_finished_row(progress, step, view, name_width) for step in steps[-max_rows:]]
    if len(steps) <= max_rows:
        return rows
    unit_rows = _unit_rows(progress, steps, view, name_width)
    if len(unit_rows) <= max_rows:
        return unit_rows
    hidden = steps[: len(steps) - max_rows + 1]
    objects = sum(step.size for step in hidden)
    summary = f"{count_noun(len(hidden), 'step')} before, {count_noun(objects, 'object')}"
    return [_faint_row(f"{view.symbols.passed} {summary}"), *rows[1:]]


def _finished_row(
    progress: RolloutProgress, step: StepProgress, view: ViewOptions, name_width: int
) -> Row:
    symbol, style = _final_symbol(step, view.symbols)
    left = (
        Span(f"{symbol} ", style),
        Span(_padded_name(progress.step_title(step), name_width, view)),
    )
    time = "" if step.started_at is None else format_seconds(step.elapsed(step.state_since))
    message_style = Style.BAD if step.state is StepState.FAILED else Style.FAINT
    return _message_row(
        view, left, _outcome(step, is_wide=view.width >= WIDE_COLUMNS), time, message_style
    )


def _outcome(step: StepProgress, *, is_wide: bool) -> str:
    match step.state:
        case StepState.FAILED:
            return step.message or step.reason or "failed"
        case StepState.SKIPPED:
            return f"skipped, {count_noun(step.size, 'object')}"
        case StepState.SUPERSEDED:
            return "superseded by a newer plan"
        case _:
            names = (
                f": {join_limited(step.object_results, MAX_NAMED)}"
                if is_wide and step.object_results
                else ""
            )
            return count_noun(step.size, "object") + names


def _final_symbol(step: StepProgress, symbols: Symbols) -> tuple[str, Style]:
    match step.state:
        case StepState.PASSED:
            return symbols.passed, Style.GOOD
        case StepState.FAILED:
            return symbols.failed, Style.BAD
        case _:
            return symbols.skipped, Style.FAINT


def _unit_rows(
    progress: RolloutProgress, steps: Iterable[StepProgress], view: ViewOptions, name_width: int
) -> list[Row]:
    """Return a row for each unit that passed completely, instead of its steps."""
    open_units = {
        step.unit for step in progress.counted_steps if step.state is not StepState.PASSED
    }
    by_unit: dict[str, list[StepProgress]] = {}
    for step in steps:
        key = step.id if step.unit in open_units else step.unit
        by_unit.setdefault(key, []).append(step)
    rows: list[Row] = []
    for members in by_unit.values():
        if members[0].unit in open_units or len(members) == 1:
            rows.append(_finished_row(progress, members[0], view, name_width))
            continue
        started_at = min(step.state_since - step.elapsed(step.state_since) for step in members)
        objects = count_noun(sum(step.size for step in members), "object")
        summary = f"{count_noun(len(members), 'step')}, {objects}"
        name = progress.unit_name(members[0].unit) or "all steps"
        left = (
            Span(f"{view.symbols.passed} ", Style.GOOD),
            Span(_padded_name(name, name_width, view)),
        )
        time = format_seconds(max(step.state_since for step in members) - started_at)
        rows.append(_message_row(view, left, summary, time, Style.FAINT))
    return rows


def _bottom_rows(progress: RolloutProgress, view: ViewOptions, now: Ms) -> list[Row]:
    """Return the next steps and the progress bar."""
    rows = [] if progress.outcome else _next_rows(progress, view)
    if view.notice:
        rows.append((Span(truncate(view.notice, view.width, view.symbols.dots), Style.NOTICE),))
    return [*rows, _progress_row(progress, view, now)]


def _next_rows(progress: RolloutProgress, view: ViewOptions) -> list[Row]:
    pending = list(islice(progress.pending_steps(), MAX_PENDING + 1))
    if not pending:
        return []
    steps_text = ", ".join(
        f"{progress.step_title(step)} ({count_noun(step.size, 'object')})"
        for step in pending[:MAX_PENDING]
    )
    ellipsis = view.symbols.dots if len(pending) > MAX_PENDING else ""
    text = f"{view.symbols.waiting} next: {steps_text}{ellipsis}"
    return [_faint_row(truncate(text, view.width, view.symbols.dots))]


def _progress_row(progress: RolloutProgress, view: ViewOptions, now: Ms) -> Row:
    steps = progress.counted_steps
    passed = sum(step.state is StepState.PASSED for step in steps)
    settled_count = sum(step.settled_count for step in steps)
    objects = sum(step.size for step in steps)
    length = max(8, min(32, view.width // 5))
    filled = length * settled_count // objects if objects else 0
    bar = (
        Span(view.symbols.full * filled, Style.BAD if progress.failed_steps() else Style.GOOD),
        Span(view.symbols.empty * (length - filled), Style.FAINT),
    )
    parts = (
        format_running(now - progress.start),
        f"{passed:,} of {count_noun(len(steps), 'step')}",
        f"{settled_count:,} of {count_noun(objects, 'object')}",
    )
    left = (*bar, Span("  "), Span(view.symbols.separator.join(parts)))
    return justify(left, view.title, view.width)


def _faint_row(text: str) -> Row:
    return (Span(text, Style.FAINT),)

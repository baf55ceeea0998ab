"""Summary of a finished rollout: outcome, duration and results."""

from __future__ import annotations

import msgspec

from tidegate.model.display import count_noun, format_seconds, join_limited
from tidegate.model.rollouts.event import EventType, StepState
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.report.styled_text import UNICODE_SYMBOLS, Row, Span, Style, Symbols

PASSED, STOPPED, INVALID = "passed", "stopped", "invalid"
MAX_UNPROVEN = 5
MAX_UNKNOWN = 5
RESULT_NAMES = (
    (EventType.OBJECT_WRITTEN, "written"),
    (EventType.OBJECT_UNCHANGED, "unchanged"),
    (EventType.OBJECT_PRUNED, "deleted"),
)


class NextCommands(msgspec.Struct, frozen=True, kw_only=True):
    """Commands that the user can run next."""

    repeat: str = ""
    """The same command again."""
    kubectl: str = ""
    """kubectl with the options for the same cluster."""
    can_resume: bool = True
    """Whether the cluster still exists, so that the same command resumes the rollout."""


NO_NEXT_COMMANDS = NextCommands()


def headline(progress: RolloutProgress) -> str:
    """Return the outcome in one line: `passed in 120.0s: 10 written`."""
    elapsed = format_seconds(progress.now - progress.start)
    steps = progress.counted_steps
    if progress.outcome == STOPPED:
        passed = sum(step.state is StepState.PASSED for step in steps)
        reason = f" ({progress.message})" if progress.message else ""
        total = count_noun(len(steps), "step")
        return f"stopped after {elapsed}{reason}: {passed:,} of {total} passed"
    if progress.outcome == INVALID:
        return "rejected before the first write"
    if progress.outcome != PASSED:
        return f"{progress.outcome} after {elapsed}"
    if has_changed(progress):
        return f"passed in {elapsed}: {result_summary(progress)}"
    objects = progress.result_counts[EventType.OBJECT_UNCHANGED] or sum(step.size for step in steps)
    return f"no changes: checked {count_noun(objects, 'object')} in {elapsed}, wrote nothing"


def summary_rows(progress: RolloutProgress, *, symbols: Symbols = UNICODE_SYMBOLS) -> list[Row]:
    """Return the end of a rollout; a failure is explained by `explain_failure`."""
    symbol, style = _outcome_symbol(progress, symbols)
    return [(Span(f"{symbol} ", style), Span(headline(progress), style)), *_unproven_rows(progress)]


def stopped_rows(progress: RolloutProgress, commands: NextCommands) -> list[Row]:
    """Return what a stopped rollout has applied, and how to resume it."""
    applied = sum(progress.result_counts.values())
    objects = sum(step.size for step in progress.counted_steps)
    consequence = "they are kept" if commands.can_resume else "the simulated cluster is gone"
    summary = f"  applied {applied:,} of {count_noun(objects, 'object')}; {consequence}"
    hint = Span(f"  {_resume_hint(commands)}", Style.STRONG)
    return [(Span(summary),), *_unknown_rows(progress), *([(hint,)] if commands.repeat else [])]


def killed_message(commands: NextCommands) -> str:
    """Return the message of a rollout that was killed before it could stop cleanly."""
    hint = f"; {_resume_hint(commands)}" if commands.repeat else ""
    return f"killed before the current writes finished{hint}"


def _resume_hint(commands: NextCommands) -> str:
    label = "resume" if commands.can_resume else "start again"
    return f"{label} with:  {commands.repeat}"


def result_summary(progress: RolloutProgress) -> str:
    """Return the counted results: `3 written, 7 unchanged`."""
    parts = (
        f"{progress.result_counts[event_type]:,} {label}"
        for event_type, label in RESULT_NAMES
        if progress.result_counts[event_type]
    )
    return ", ".join(parts)


def has_changed(progress: RolloutProgress) -> bool:
    return any(
        progress.result_counts[event_type]
        for event_type in (EventType.OBJECT_WRITTEN, EventType.OBJECT_PRUNED)
    )


def _outcome_symbol(progress: RolloutProgress, symbols: Symbols) -> tuple[str, Style]:
    if progress.outcome == PASSED:
        return symbols.passed, Style.GOOD
    return (
        (symbols.skipped, Style.NOTICE)
        if progress.outcome == STOPPED
        else (symbols.failed, Style.BAD)
    )


def _unknown_rows(progress: RolloutProgress) -> list[Row]:
    if not progress.unknown:
        return []
    names = join_limited([note.ref for note in progress.unknown if note.ref], MAX_UNKNOWN)
    return [(Span("  not known whether written: ", Style.NOTICE), Span(names))]


def _unproven_rows(progress: RolloutProgress) -> list[Row]:
    rows: list[Row] = [
        (Span("  unverified: ", Style.NOTICE), Span(f"{note.ref}: {note.message}"))
        for note in progress.unproven[:MAX_UNPROVEN]
    ]
    remaining = len(progress.unproven) - len(rows)
    if remaining > 0:
        rows.append((Span(f"  unverified: {count_noun(remaining, 'more gate')}", Style.NOTICE),))
    return rows

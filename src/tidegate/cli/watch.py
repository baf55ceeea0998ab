"""Output that is repeated after each change: redrawn on a terminal, else new lines only."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from functools import partial

import msgspec

from tidegate.cli.options import Flags
from tidegate.cli.output import print_document, print_line, terminal_size
from tidegate.cli.requests import load_request, with_workspace
from tidegate.cli.screen.terminal import SafeStream, Terminal, detect_capabilities
from tidegate.clusters.session import Session
from tidegate.errors import escape_line, redact_urls
from tidegate.inspection.diff import NO_PLAN, plan_units
from tidegate.inspection.watch import watch_changes, watch_targets
from tidegate.planning.plan import PlanResult
from tidegate.report.styled_text import Span, truncate
from tidegate.workspace.workspace import Workspace

WatchOutput = tuple[Iterable[object], Iterable[str]]
"""JSON documents, and lines for people."""
OutputReader = Callable[[Session, Workspace, PlanResult], Awaitable[WatchOutput]]


def watch(flags: Flags, read: OutputReader, *, needs_plan: bool = True) -> int:
    """Print the output, and again after each change of the cluster, until timeout or interrupt.

    The repository is read and planned once.
    """
    is_json = flags["output"] == "json"
    printer = _JsonPrinter() if is_json else _terminal_printer() or _NewLinePrinter()

    async def print_changes(session: Session, workspace: Workspace) -> None:
        plan_result = (
            await plan_units(workspace.deployable_trees, session) if needs_plan else NO_PLAN
        )
        targets = watch_targets(workspace, plan_result, session)
        async with aclosing(watch_changes(targets, session, flags["timeout"])) as changes:
            async for _ in changes:
                documents, lines = await read(session, workspace, plan_result)
                printer.update(map(_encode_json, documents) if is_json else lines)

    with_workspace(load_request(flags["path"], flags), flags, print_changes)
    return 0


def _encode_json(document: object) -> str:
    return msgspec.json.encode(document).decode()


class _NewLinePrinter:
    """Prints lines that were not printed before."""

    def __init__(self) -> None:
        self._previous: frozenset[str] = frozenset()

    def update(self, lines: Iterable[str]) -> None:
        lines = [*lines]
        for line in (new_line for new_line in lines if new_line not in self._previous):
            self._print(line)
        self._previous = frozenset(lines)

    def _print(self, line: str) -> None:
        print_line(line)
        sys.stdout.flush()


class _JsonPrinter(_NewLinePrinter):
    """Prints documents that have changed."""

    def _print(self, line: str) -> None:
        print_document(line)
        sys.stdout.flush()


class _TerminalPrinter(_NewLinePrinter):
    """Redraws all lines on a terminal, as far as they fit."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self._terminal = terminal

    def update(self, lines: Iterable[str]) -> None:
        columns, rows = terminal_size(sys.stdout)
        visible = [truncate(escape_line(redact_urls(line)), columns - 1) for line in lines][
            : rows - 1
        ]
        self._terminal.draw([(Span(text),) for text in visible])


def _terminal_printer() -> _TerminalPrinter | None:
    capabilities = detect_capabilities(sys.stdout, os.environ)
    if not capabilities.is_interactive:
        return None
    return _TerminalPrinter(
        Terminal(SafeStream(sys.stdout), capabilities, partial(terminal_size, sys.stdout))
    )

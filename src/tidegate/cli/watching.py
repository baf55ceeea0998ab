"""What is shown again whenever it has changed: in place on a terminal, else what is new of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from functools import partial

import msgspec

from tidegate.cli.asking import in_found, pointed_of
from tidegate.cli.saying import hand_out, say
from tidegate.cli.terminal import Outlet, Terminal, ability_of
from tidegate.cli.unit_options import Given
from tidegate.cli.window import size_of
from tidegate.errors import escaped, without_user
from tidegate.flows.entering import Found
from tidegate.flows.following import each_change, places_of
from tidegate.flows.session import Session
from tidegate.report.rollout.rows import Span, clip

Told = tuple[Iterable[object], Iterable[str]]
"""Documents for programs, and lines for people."""
Read = Callable[[Session, Found], Awaitable[Told]]


def watch(told: Given, read: Read) -> int:
    """Show what is read, and again after each change, until time is over or somebody interrupts.

    The repository is read once: what changes is the cluster.
    """
    is_json = told["output"] == "json"
    shown = _JsonLines() if is_json else _picture() or _NewLines()

    async def ask(session: Session, found: Found) -> None:
        places = await places_of(found, session)
        async with aclosing(each_change(places, session, told["timeout"])) as changes:
            async for _ in changes:
                documents, lines = await read(session, found)
                shown.show(map(_encoded, documents) if is_json else lines)

    in_found(pointed_of(told["place"], told), told, ask)
    return 0


def _encoded(document: object) -> str:
    return msgspec.json.encode(document).decode()


class _NewLines:
    """In a pipe: lines that were not there before."""

    def __init__(self) -> None:
        self._before: frozenset[str] = frozenset()

    def show(self, lines: Iterable[str]) -> None:
        lines = [*lines]
        for line in (one for one in lines if one not in self._before):
            self._say(line)
        self._before = frozenset(lines)

    def _say(self, line: str) -> None:
        say(line)
        sys.stdout.flush()


class _JsonLines(_NewLines):
    """For programs: documents that are not what they were."""

    def _say(self, line: str) -> None:
        hand_out(line)
        sys.stdout.flush()


class _WatchPicture(_NewLines):
    """On a terminal: all lines in the place of those before, as far as there is room."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self._terminal = terminal

    def show(self, lines: Iterable[str]) -> None:
        columns, rows = size_of(sys.stdout)
        kept = [clip(escaped(without_user(one)), columns - 1) for one in lines][: rows - 1]
        self._terminal.draw([(Span(one),) for one in kept])


def _picture() -> _WatchPicture | None:
    ability = ability_of(sys.stdout, os.environ)
    if not ability.live:
        return None
    return _WatchPicture(Terminal(Outlet(sys.stdout), ability, partial(size_of, sys.stdout)))

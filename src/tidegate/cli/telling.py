"""What `events` and `logs` do and say."""

from __future__ import annotations

import sys
from contextlib import aclosing

from tidegate.cli import options
from tidegate.cli.asking import in_found, pointed_of
from tidegate.cli.doing import Doing
from tidegate.cli.naming import find_families
from tidegate.cli.nouns import ALIASES, NOUNS, UNITS
from tidegate.cli.saying import note
from tidegate.cli.unit_options import Given
from tidegate.cli.window import room_on
from tidegate.flows.entering import Found
from tidegate.flows.followed_logs import FollowedLogs
from tidegate.flows.named import find_named
from tidegate.flows.session import Session
from tidegate.flows.telling import find_running, read_events, read_unit_logs
from tidegate.flows.weakness import findings_of
from tidegate.model.moment import Ms
from tidegate.model.unit import UnitId
from tidegate.report.told import (
    ContainerLog,
    EventRow,
    event_document,
    event_lines,
    line_document,
    log_document,
    log_lines,
)


def show_events(about: tuple[str, str], types: str, told: Given, doing: Doing) -> int:
    """Events about those that are meant. Gives the exit code."""

    async def ask(session: Session, found: Found) -> tuple[list[EventRow], Ms, Found]:
        rows = await read_events(found, session, about, told["home"])
        return rows, session.world.now(), found

    rows, now, found = in_found(pointed_of(told["place"], told), told, ask)
    doing.clear()
    wanted = {one.strip().lower() for one in types.split(",") if one.strip()}
    shown = [row for row in rows if not wanted or row.type.lower() in wanted]
    if not shown:
        note("there are no such Events: a cluster forgets them after a while")
    lines = (
        event_lines(shown, now, everywhere=not told["home"], room=room_on(sys.stdout))
        if shown
        else ()
    )
    options.show(told["output"], map(event_document, shown), lines)
    return options.say_findings(findings_of(found))


def show_logs(called: str, tail: int, told: Given, doing: Doing, *, follows: bool) -> int:
    """What pods of a unit have printed that are not well; or what all print from now on."""
    word, sign, name = called.partition("/")
    noun = ALIASES.get(word, word)
    kinds, name = (NOUNS[noun], name) if sign and noun in NOUNS else (UNITS, called)
    (named,) = find_named(find_families(told["place"], told), kinds, (name,), home=told["home"])
    if follows:
        return _follow_logs(named.id, tail, told, doing)

    async def ask(session: Session, found: Found) -> tuple[list[ContainerLog], Found]:
        return await read_unit_logs(found, session, named.id, tail), found

    printed, found = in_found(pointed_of(told["place"], told), told, ask)
    doing.clear()
    if not printed:
        note(f"no pod of `{named.id}` has failed or waits with something printed")
    lines = log_lines(printed, room_on(sys.stdout))
    options.show(told["output"], map(log_document, printed), lines)
    return options.say_findings(findings_of(found))


def _follow_logs(unit: UnitId, tail: int, told: Given, doing: Doing) -> int:
    """Each line when it is there, until somebody interrupts, time is over, or all have ended."""

    async def ask(session: Session, found: Found) -> Found:
        running = await find_running(found, session, unit)
        followed, known = FollowedLogs(running, session, tail), set[str]()
        async with aclosing(followed.follow(told["timeout"])) as turns:
            async for lines in turns:
                doing.clear()
                options.show(told["output"], map(line_document, lines), map(str, lines))
                for who in followed.unread.keys() - known:
                    note(f"what {who} prints cannot be read: {followed.unread[who]}")
                known |= followed.unread.keys()
                sys.stdout.flush()
        return found

    found = in_found(pointed_of(told["place"], told), told, ask)
    return options.say_findings(findings_of(found))

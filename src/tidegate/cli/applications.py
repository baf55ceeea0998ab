"""Applications as verbs show them: read once, or again whenever something of them has changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from tidegate.cli.asking import in_found, pointed_of
from tidegate.cli.doing import Doing
from tidegate.cli.naming import find_families, name_units
from tidegate.cli.nouns import NOUNS
from tidegate.cli.saying import note
from tidegate.cli.unit_options import Given
from tidegate.cli.watching import Told, watch
from tidegate.flows.entering import Found
from tidegate.flows.resources import Resources, object_rows, read_resources
from tidegate.flows.session import Session
from tidegate.flows.standing import UnitStanding, read_standings
from tidegate.flows.weakness import findings_of
from tidegate.model.finding import Finding
from tidegate.model.reading import text
from tidegate.report.applications import ApplicationRow, window_words

Reader = Callable[[Session, Found], Awaitable[list[ApplicationRow]]]
Show = Callable[[list[ApplicationRow]], tuple[Iterable[object], Iterable[str]]]
KINDS = NOUNS["application"]


def read_applications(
    names: tuple[str, ...], told: Given, doing: Doing, *, whole: bool = False
) -> tuple[list[ApplicationRow], tuple[Finding, ...]]:
    """The Applications that are meant, compared with what lives, and what was found on the way.

    `whole`: with hooks, and with what their objects own.
    """
    read = _reader(names, told, whole=whole)

    async def ask(session: Session, found: Found) -> tuple[list[ApplicationRow], Found]:
        return await read(session, found), found

    rows, found = in_found(pointed_of(told["place"], told), told, ask)
    doing.clear()
    return rows, findings_of(found)


def watch_applications(
    names: tuple[str, ...], told: Given, show: Show, *, whole: bool = False
) -> int:
    """The same, shown again whenever it has changed."""
    read = _reader(names, told, whole=whole)

    async def ask(session: Session, found: Found) -> Told:
        return show(await read(session, found))

    return watch(told, ask)


def _reader(names: tuple[str, ...], told: Given, *, whole: bool) -> Reader:
    """Reads the Applications that are meant, as they are then."""
    families = find_families(told["place"], told)
    wanted = told["units"] = name_units(
        families, names, told.get("labels", ""), KINDS, told["home"]
    )
    project = told.get("project", "")

    async def read(session: Session, found: Found) -> list[ApplicationRow]:
        standings = await read_standings(found, families, session)
        chosen = (one for one in standings if one.unit.id.kind in KINDS)
        rows = [
            await _row(one, session, whole=whole)
            for one in chosen
            if not wanted or str(one.unit.id) in wanted
        ]
        return [
            row for row in rows if project in {"", text(row.own, "spec", "project") or "default"}
        ]

    return read


async def _row(one: UnitStanding, session: Session, *, whole: bool) -> ApplicationRow:
    found = await read_resources(one, session) if whole else Resources(object_rows(one))
    for place in found.unseen:
        note(f"{place} may not be looked at: what objects own there is left out")
    return ApplicationRow(
        f"{one.unit.id.namespace}/{one.unit.id.name}",
        one.wave,
        one.own,
        one.live,
        one.is_synced,
        one.verdict,
        found.rows,
        window_words(one.unit.policy.windows, session.world.now()),
    )

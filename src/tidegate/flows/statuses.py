"""What units say of themselves in a cluster: the status of their own objects.

    accounts ── engine    what became of a unit so far
       │
    status ── dialect     what that is called there
       │
    patch                 only what is not so yet; nothing where nothing is new

A second run in which nothing has changed writes nothing: a time alone is no news.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidegate.dialect.statuses import FORMS, note_of
from tidegate.engine.means import Report
from tidegate.flows.own_objects import find_own
from tidegate.flows.planning import Planned
from tidegate.flows.rendering import Rendered
from tidegate.flows.rendering.outcome import BuiltTree
from tidegate.flows.rendering.workshop import Workshop
from tidegate.flows.session import Session
from tidegate.model.account import Provenance, UnitAccount
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Json, Spot
from tidegate.model.reading import mapping
from tidegate.model.source import Revision
from tidegate.model.unit import UnitId
from tidegate.report.rollout.discretion import Discretion
from tidegate.source import Access, read_head
from tidegate.source.local import WORKING_TREE

Body = dict[str, Json]


class UnitFault(NamedTuple):
    """What was found in a unit, and in which field of its own object."""

    code: str
    field: str
    sentence: str


class Statuses(msgspec.Struct, frozen=True):
    """Where the own objects of units are, and what is said there."""

    places: dict[UnitId, Spot]
    sources: dict[UnitId, tuple[Provenance, ...]]
    discretion: Discretion
    faults: dict[UnitId, UnitFault] = msgspec.field(default_factory=dict)
    """Why units cannot be begun, in the words of what was found."""

    def take(self, newer: Statuses | None) -> None:
        """Speak of units as a newer plan has them, and of those that it adds."""
        if newer is not None:
            self.places.update(newer.places)
            self.sources.update(newer.sources)
            self.faults.update(newer.faults)

    def place(self, unit: UnitId) -> Spot | None:
        return self.places.get(unit)

    def follows(self, unit: UnitId) -> bool:
        return unit in self.places and FORMS[unit.kind].follows

    def report(self, account: UnitAccount, own: Body) -> Report | None:
        """The patch that makes a status say this; None where it does already."""
        if account.is_known and account.unit not in self.sources:
            return None  # what it would bring was taken to be there
        form, before = FORMS[account.unit.kind], mapping(own, "status")
        told = form.make(own, self._discreet(account), self.sources.get(account.unit, ()))
        if told is None:
            return None
        news = {name for name, one in told.status.items() if before.get(name) != one}
        if not (news - form.idle or before.keys() - told.status.keys()):
            return None
        patch: Body = {"status": difference(before, told.status)}
        notes = tuple(note_of(own, one, form, account.now) for one in told.notes)
        return Report(msgspec.json.encode(patch), form.manager, notes)

    def _discreet(self, account: UnitAccount) -> UnitAccount:
        """Without what a server or a program has said of the values of Secrets."""
        hide, replace = self.discretion.hide, msgspec.structs.replace
        objects = tuple(
            replace(one, sentence=hide(one.sentence)) if one.sentence else one
            for one in account.objects
        )
        account = replace(account, sentence=hide(account.sentence), objects=objects)
        fault = None if account.is_known else self.faults.get(account.unit)
        if fault is None:
            return account
        code, where, sentence = fault
        return replace(account, code=code, field=where, sentence=hide(sentence))


def difference(before: Body, after: Body) -> Body:
    """The merge patch that makes one of the other."""
    patch: Body = dict.fromkeys(before.keys() - after.keys())
    for name, wanted in after.items():
        there = before.get(name)
        if isinstance(wanted, dict) and isinstance(there, dict):
            inner = difference(there, wanted)
            patch |= {name: inner} if inner else {}
        elif there != wanted:
            patch[name] = wanted
    return patch


async def make_statuses(
    planned: Planned, session: Session, findings: Iterable[Finding] = ()
) -> Statuses | None:
    """What is to be said of the units of a plan; None where no cluster serves their kinds.

    `findings` may tell why a unit could not be rendered.
    """
    groups = {name: form.group for name, form in FORMS.items()}
    found = await find_own(planned, session, groups)
    places = {name: one.spot for name, one in found.items()}
    if not places:
        return None
    read = {one.manifests.unit.id: one.rendered for one in planned.read}
    wanted = {name: read[name] for name in places if name in read}
    sources = await _provenances(wanted, session)
    faults = _faults(places, findings, planned.faults)
    return Statuses(places, sources, Discretion.of(planned.plan), faults)


def _faults(
    units: Iterable[UnitId], findings: Iterable[Finding], known: Mapping[UnitId, str]
) -> dict[UnitId, UnitFault]:
    """By unit, the error that keeps it from beginning, or the first that begins with its name."""
    errors = [one for one in findings if one.severity is Severity.ERROR]
    said = {one.sentence: one for one in reversed(errors)}
    named = {one.sentence[1:].partition("`")[0]: one for one in reversed(errors)}
    found: dict[UnitId, UnitFault] = {}
    for unit in units:
        error = said.get(known.get(unit, "")) or named.get(str(unit))
        if error is not None:
            where = error.where.field if error.where else ""
            sentence = error.sentence
            for known_already in (f"`{unit}`", ": ", " ", "is not rendered: ", f"`{unit}` "):
                sentence = sentence.removeprefix(known_already)
            found[unit] = UnitFault(error.code, where, sentence)
    return found


async def _provenances(
    rendered: Mapping[UnitId, Rendered], session: Session
) -> dict[UnitId, tuple[Provenance, ...]]:
    """What each unit was rendered from; a directory is asked once what it is at."""
    heads: dict[Path, Revision] = {}
    async with Workshop(session.setting) as workshop:
        access = await workshop.access(None)
        return {
            name: tuple([await _provenance(built, heads, access) for built in one.built])
            for name, one in rendered.items()
        }


async def _provenance(built: BuiltTree, heads: dict[Path, Revision], access: Access) -> Provenance:
    if built.revision not in {Revision(), WORKING_TREE}:
        return Provenance(built.revision, built.tool)
    if built.root not in heads:
        heads[built.root] = await read_head(built.root, access)
    return Provenance(heads[built.root], built.tool)


def told_unreported(unreported: Mapping[UnitId, str]) -> Iterable[str]:
    """For people: what could not be written, each reason once."""
    reasons: dict[str, list[UnitId]] = {}
    for unit, why in unreported.items():
        reasons.setdefault(why, []).append(unit)
    for why, units in reasons.items():
        more = f" and of {len(units) - 1} more" if len(units) > 1 else ""
        yield f"the status of `{units[0]}`{more} is not written: {why}"

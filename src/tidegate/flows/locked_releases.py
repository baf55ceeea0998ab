"""Releases that somebody else has left in the middle: Helm itself begins nothing with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.dialect.helm.belonging import UNIT
from tidegate.dialect.helm.record import PENDING, notes_of
from tidegate.flows.looking import body_of
from tidegate.model.finding import Finding, Severity
from tidegate.model.ledger import ReleaseTerms
from tidegate.model.objects import Json, Live
from tidegate.model.plan import PlannedUnit
from tidegate.model.reading import mapping, text


def find_locks(units: Iterable[PlannedUnit], records: Iterable[Live]) -> Iterator[Finding]:
    """By unit, the last revision of its release if somebody else has left that pending."""
    last: dict[tuple[str, str], dict[str, Json]] = {}
    for metadata in (mapping(body_of(one), "metadata") for one in records):
        key = (text(metadata, "namespace"), text(metadata, "labels", "name"))
        if _number(metadata) > _number(last.get(key, {})):
            last[key] = metadata
    for unit in units:
        terms = unit.policy.release
        found = last.get((terms.storage, terms.name), {}) if terms is not None else {}
        is_ours = notes_of(found).get(UNIT) == unit.id.mark
        if terms is not None and not is_ours and text(found, "labels", "status") in PENDING:
            yield _told(unit, terms, found)


def _number(metadata: dict[str, Json]) -> int:
    said = text(metadata, "labels", "version")
    return int(said) if said.isdecimal() else 0


def _told(unit: PlannedUnit, terms: ReleaseTerms, metadata: dict[str, Json]) -> Finding:
    status = text(metadata, "labels", "status")
    return Finding(
        code="flux.release-locked",
        severity=Severity.NOTE,
        sentence=f"revision {_number(metadata)} of the release `{terms.namespace}/{terms.name}` is"
        f" `{status}`, and not of `{unit.id}`: it becomes `failed`, and the next one is an upgrade",
        why="whoever released it was killed, or is at work; helm-controller unlocks it likewise",
        fix="see that nobody is at work with it",
    )

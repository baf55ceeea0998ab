"""Releases that somebody else has left in the middle: Helm itself begins nothing with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.dialect.helm.belonging import UNIT
from tidegate.dialect.helm.record import PENDING, read_annotations
from tidegate.flows.looking import object_body
from tidegate.model.finding import Finding, Severity
from tidegate.model.ledger import ReleaseSpec
from tidegate.model.objects import Json, LiveObject
from tidegate.model.plan import PlannedUnit
from tidegate.model.reading import get_mapping, get_text


def find_pending_releases(
    units: Iterable[PlannedUnit], records: Iterable[LiveObject]
) -> Iterator[Finding]:
    """Yield a finding for each release whose last revision another tool left pending.

    Helm refuses to work on such a release.
    """
    newest: dict[tuple[str, str], dict[str, Json]] = {}
    for metadata in (get_mapping(object_body(record), "metadata") for record in records):
        key = (get_text(metadata, "namespace"), get_text(metadata, "labels", "name"))
        if _revision_number(metadata) > _revision_number(newest.get(key, {})):
            newest[key] = metadata
    for unit in units:
        release = unit.policy.release
        latest = newest.get((release.storage, release.name), {}) if release is not None else {}
        is_ours = read_annotations(latest).get(UNIT) == unit.id.tracking_id
        if release is not None and not is_ours and get_text(latest, "labels", "status") in PENDING:
            yield _pending_finding(unit, release, latest)


def _revision_number(metadata: dict[str, Json]) -> int:
    version = get_text(metadata, "labels", "version")
    return int(version) if version.isdecimal() else 0


def _pending_finding(unit: PlannedUnit, release: ReleaseSpec, metadata: dict[str, Json]) -> Finding:
    status = get_text(metadata, "labels", "status")
    return Finding(
        code="flux.release-locked",
        severity=Severity.NOTE,
        message=(
            f"revision {_revision_number(metadata)} of the release"
            f" `{release.namespace}/{release.name}` is `{status}`, and not of `{unit.id}`: it"
            " becomes `failed`, and the next one is an upgrade"
        ),
        reason="whoever released it was killed, or is at work; helm-controller unlocks it likewise",
        fix="see that nobody is at work with it",
    )

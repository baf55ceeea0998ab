"""Helm release records in a cluster."""

from __future__ import annotations

from tidegate.clusters.session import Session
from tidegate.dialect.helm.record import ReleaseRecord, read_record, release_selector
from tidegate.errors import Location
from tidegate.model.k8s.kinds import SECRET
from tidegate.model.k8s.objects import object_body
from tidegate.model.units.release_history import ReleaseSpec
from tidegate.world.requests import Selection


async def read_records(
    release: ReleaseSpec, cluster: str, session: Session, *, location: str
) -> list[ReleaseRecord]:
    """Return all records of a release; none where their namespace does not exist."""
    selection = Selection(SECRET, release.storage, label_selector=release_selector(release.name))
    listing = await session.reader(cluster).list_each((selection,))
    listing.raise_errors("reading the records of the Helm release", Location(location))
    return [read_record(object_body(secret)) for secret in listing.items]

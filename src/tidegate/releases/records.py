"""Helm release records in a cluster."""

from __future__ import annotations

from tidegate.clusters.reader import object_body
from tidegate.clusters.session import Session
from tidegate.dialect.helm.record import (
    SECRET,
    ReleaseRecord,
    read_record,
    release_selector,
)
from tidegate.errors import Location
from tidegate.model.units.release_history import ReleaseSpec
from tidegate.world.errors import error_from_outcome
from tidegate.world.messages import ListPage, is_error
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import List, Selection


async def read_records(
    release: ReleaseSpec, cluster: str, session: Session, *, location: str
) -> list[ReleaseRecord]:
    """Return all records of a release; none where their namespace does not exist."""
    selection = Selection(SECRET, release.storage, label_selector=release_selector(release.name))
    (page,) = await send_requests(session.world, List(selection), cluster=cluster)
    if is_error(page):
        raise error_from_outcome(
            page, "reading the records of the Helm release", location=Location(location)
        )
    return (
        [read_record(object_body(secret)) for secret in page.items]
        if isinstance(page, ListPage)
        else []
    )

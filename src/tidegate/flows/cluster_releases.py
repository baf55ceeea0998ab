"""What a cluster has of Helm releases: asked before they are rendered, so that templates see it."""

from __future__ import annotations

from collections.abc import Container

import msgspec

from tidegate.dialect.helm.book import known_release
from tidegate.dialect.helm.record import SECRET, selector_of
from tidegate.errors import Place
from tidegate.model.ledger import KnownRelease, ReleaseTerms
from tidegate.model.objects import Live
from tidegate.model.reading import mapping, text
from tidegate.model.unit import Unit
from tidegate.world.ask import ask
from tidegate.world.calls import List, Selection, View
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Listed, Missing, NotServed, is_refusal
from tidegate.world.refusals import refusal_error


class ClusterReleases:
    """The last revisions of releases. `clusters` are known; the first stands for all others."""

    def __init__(self, world: Exchange, clusters: Container[str], first: str) -> None:
        self._world = world
        self._clusters = clusters
        self._first = first

    async def __call__(self, unit: Unit) -> KnownRelease | None:
        terms, place = unit.policy.release, unit.destination.cluster
        if terms is None:
            return None
        cluster = place if place in self._clusters else self._first
        labels, view = selector_of(terms.name), View.METADATA
        selection = Selection(SECRET, terms.storage, labels=labels, view=view)
        (found,) = await ask(self._world, List(selection), cluster=cluster)
        if is_refusal(found) and not isinstance(found, Missing | NotServed):
            where = Place(f"unit {unit.id}")
            raise refusal_error(found, "reading the records of the release", where=where)
        records = found.items if isinstance(found, Listed) else ()
        read = (_read(one, terms) for one in records)
        told = [one for one in read if one is not None]
        return max(told, key=lambda one: one.number, default=None)


def _read(live: Live, terms: ReleaseTerms) -> KnownRelease | None:
    metadata = mapping(msgspec.json.decode(live.body), "metadata")
    labels = mapping(metadata, "labels")
    is_numbered = text(labels, "version").isdecimal()
    if not is_numbered:
        return None
    return known_release(labels, mapping(metadata, "annotations"), terms)

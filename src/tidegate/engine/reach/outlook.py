"""What is known of the clusters: which kinds they serve, and the planned objects as they live.

One watch for each kind, begun with one list: nothing else is ever read of an object. Only what the
plan speaks of is kept, as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from tidegate.engine.fences import is_older
from tidegate.engine.reach.errands import Ask, Errand
from tidegate.model.objects import Kind, Live, Served, Spot
from tidegate.world import facts
from tidegate.world.calls import Get, Kinds, Selection, Watch

Group: TypeAlias = tuple[str, Kind]
"""A cluster and a kind."""


class Outlook(msgspec.Struct):
    """The planned objects, by cluster."""

    lives: dict[Spot, Live] = msgspec.field(default_factory=dict)
    served: dict[str, dict[Kind, Served]] = msgspec.field(default_factory=dict)
    _wanted: dict[Spot, None] = msgspec.field(default_factory=dict)
    _watched: dict[Group, set[str]] = msgspec.field(default_factory=dict)
    """The namespaces of each kind in which everything is told; the empty one is all of them."""
    _seen: set[Spot] = msgspec.field(default_factory=set)
    """What is known to be as it is known here."""

    def want(self, spots: Iterable[Spot]) -> None:
        """Keep these in view from now on."""
        self._wanted.update(dict.fromkeys(spots))

    def is_wanted(self, spot: Spot) -> bool:
        return spot in self._wanted

    def hidden(self, spots: Iterable[Spot]) -> list[Spot]:
        """Those of which nothing is known yet, not even that they are not there."""
        return [spot for spot in spots if spot not in self._seen]

    def forget(self, spots: Iterable[Spot]) -> None:
        """What is known of these is old; it is asked for when it is needed again."""
        self._seen.difference_update(spots)

    def changed(self, cluster: str, fact: facts.Changed) -> Spot | None:
        """Take a change of a watch; the spot, if it is news of something that somebody wants.

        What our own write returned is no news.
        """
        live = fact.live
        spot = Spot(cluster, live.ref)
        if spot not in self._wanted:
            return None
        if fact.change is facts.Change.DELETED:
            self.deleted(spot, live.uid)
            return spot
        known = self.lives.get(spot)
        if known is not None and known.uid == live.uid and not _is_news(live, known):
            return None
        self.lives[spot] = live
        return spot

    def deleted(self, spot: Spot, uid: str) -> None:
        """Forget what is gone, by a stream or by the answer to a call; another may be there now."""
        known = self.lives.get(spot)
        if known is not None and uid in {"", known.uid}:
            del self.lives[spot]

    def wrote(self, spot: Spot, live: Live) -> None:
        """Take what a write returned, unless a watch told of something newer already."""
        known = self.lives.get(spot)
        if known is None or known.uid != live.uid or is_older(known.version, live.version):
            self.lives[spot] = live

    def catalogue(self, clusters: Iterable[str]) -> Errand[facts.Refusal | None]:
        """Ask which kinds are served."""
        names = tuple(dict.fromkeys(clusters))
        outcomes = yield tuple(Ask(name, Kinds()) for name in names)
        for name, outcome in zip(names, outcomes, strict=True):
            if isinstance(outcome, facts.Catalogue):
                self.served[name] = {served.kind: served for served in outcome.kinds}
            elif facts.is_refusal(outcome):
                return outcome
        return None

    def look_anew(self, cluster: str) -> Errand[facts.Refusal | None]:
        """A kind is no longer served: know which, and that nothing is known of its objects."""
        refused = yield from self.catalogue((cluster,))
        served = self.served.get(cluster, {})
        gone = {kind for place, kind in self._watched if place == cluster and kind not in served}
        for kind in gone:
            del self._watched[cluster, kind]
        self.forget(
            [spot for spot in self._seen if spot.cluster == cluster and spot.ref.kind in gone]
        )
        return refused

    def serves(self, spot: Spot) -> bool:
        return spot.ref.kind in self.served.get(spot.cluster, {})

    def view(self, spots: Iterable[Spot]) -> Errand[facts.Refusal | None]:
        """Bring served kinds of these into view; done when all that lives of them is known.

        Where a watch tells of a kind already, only what it did not tell in time is asked for.
        """
        late: list[Spot] = []
        groups: dict[Group, list[Spot]] = {}
        for spot in filter(self.serves, self.hidden(spots)):
            if self._watched.get(_group(spot), set()) & {"", spot.ref.namespace}:
                late.append(spot)
            else:
                groups.setdefault(_group(spot), []).append(spot)
        asks = [self._watch(group, members) for group, members in groups.items()]
        outcomes = yield (*asks, *(Ask(spot.cluster, Get(spot.ref)) for spot in late))
        for (group, members), outcome in zip(groups.items(), outcomes, strict=False):
            if not facts.is_refusal(outcome):
                self._seen.update(members)
                continue
            self._watched.pop(group)
            if not isinstance(outcome, facts.NotServed):
                return outcome
        return self._take_late(late, outcomes[len(groups) :])

    def _take_late(
        self, spots: list[Spot], outcomes: tuple[facts.Outcome, ...]
    ) -> facts.Refusal | None:
        for spot, outcome in zip(spots, outcomes, strict=True):
            if isinstance(outcome, facts.Done) and outcome.live is not None:
                self.wrote(spot, outcome.live)
            elif isinstance(outcome, facts.Missing):
                self.lives.pop(spot, None)
            elif facts.is_refusal(outcome) and not isinstance(outcome, facts.NotServed):
                return outcome
            self._seen.add(spot)
        return None

    def _watch(self, group: Group, members: list[Spot]) -> Ask:
        """One namespace where one is enough; else all, or what is needed if all may not be seen."""
        cluster, kind = group
        names = sorted({spot.ref.namespace for spot in members})
        narrow = names[0] if len(names) == 1 else ""
        within = tuple(name for name in names if name) if not narrow else ()
        self._watched.setdefault(group, set()).add(narrow)
        return Ask(cluster, Watch(Selection(kind, narrow), within=within))


def _group(spot: Spot) -> Group:
    return spot.cluster, spot.ref.kind


def _is_news(live: Live, known: Live) -> bool:
    return known.version != live.version and not is_older(live.version, known.version)

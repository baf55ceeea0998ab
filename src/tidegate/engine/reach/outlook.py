"""What is known of the clusters: which kinds they serve, and the planned objects as they live.

One watch for each kind, begun with one list: nothing else is ever read of an object. Only what the
plan speaks of is kept, as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tidegate.engine.fences import is_older
from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.vocabulary import Spot
from tidegate.model.objects import Kind, Live, Served
from tidegate.world.calls import Kinds, Selection, Watch
from tidegate.world.facts import Catalogue, Change, Changed, NotServed, Refusal, is_refusal


@dataclass(slots=True)
class Outlook:
    """The planned objects, by cluster."""

    lives: dict[Spot, Live] = field(default_factory=dict)
    served: dict[str, dict[Kind, Served]] = field(default_factory=dict)
    _wanted: dict[Spot, None] = field(default_factory=dict)
    _watched: set[tuple[str, Kind]] = field(default_factory=set)

    def want(self, spots: Iterable[Spot]) -> None:
        """Keep these in view from now on."""
        self._wanted.update(dict.fromkeys(spots))

    def is_wanted(self, spot: Spot) -> bool:
        return spot in self._wanted

    def unwatched(self, spots: Iterable[Spot]) -> list[Spot]:
        return [spot for spot in spots if (spot.cluster, spot.ref.kind) not in self._watched]

    def changed(self, cluster: str, fact: Changed) -> Spot | None:
        """Take a change of a watch; the spot, if somebody wants it."""
        spot = Spot(cluster, fact.live.ref)
        if spot not in self._wanted:
            return None
        if fact.change is Change.DELETED:
            self.lives.pop(spot, None)
        else:
            self.lives[spot] = fact.live
        return spot

    def wrote(self, spot: Spot, live: Live) -> None:
        """Take what a write returned, unless a watch told of something newer already."""
        known = self.lives.get(spot)
        if known is None or known.uid != live.uid or is_older(known.version, live.version):
            self.lives[spot] = live

    def catalogue(self, clusters: Iterable[str]) -> Errand[Refusal | None]:
        """Ask which kinds are served."""
        names = tuple(dict.fromkeys(clusters))
        outcomes = yield tuple(Ask(name, Kinds()) for name in names)
        for name, outcome in zip(names, outcomes, strict=True):
            if isinstance(outcome, Catalogue):
                self.served[name] = {served.kind: served for served in outcome.kinds}
            elif is_refusal(outcome):
                return outcome
        return None

    def serves(self, spot: Spot) -> bool:
        return spot.ref.kind in self.served.get(spot.cluster, {})

    def view(self, spots: Iterable[Spot]) -> Errand[Refusal | None]:
        """Bring served kinds of these into view; done when all that lives of them is known."""
        groups: dict[tuple[str, Kind], list[str]] = {}
        for spot in self.unwatched(spots):
            if self.serves(spot):
                groups.setdefault((spot.cluster, spot.ref.kind), []).append(spot.ref.namespace)
        self._watched.update(groups)
        asks = (self._watch(*key, sorted(set(names))) for key, names in groups.items())
        outcomes = yield tuple(asks)
        for key, outcome in zip(groups, outcomes, strict=True):
            if is_refusal(outcome):
                self._watched.discard(key)
                if not isinstance(outcome, NotServed):
                    return outcome
        return None

    def _watch(self, cluster: str, kind: Kind, namespaces: list[str]) -> Ask:
        """One namespace where one is enough; else all, or what is needed if all may not be seen."""
        narrow = namespaces[0] if len(namespaces) == 1 else ""
        within = tuple(name for name in namespaces if name) if not narrow else ()
        return Ask(cluster, Watch(Selection(kind, narrow), within=within))

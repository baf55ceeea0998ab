"""What surrounds an object that is to be written: its kind's definition, and who has a word in it.

Some of it lives in the cluster, some comes with the plan itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

import msgspec

from tidegate.engine.means import Body, Means
from tidegate.engine.reach.admission import (
    Guard,
    GuardSight,
    covers,
    guards_of,
    is_admission,
    look,
    takes,
)
from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.reach.matching import labels_of
from tidegate.engine.reach.outlook import Outlook
from tidegate.engine.reach.probing import defined_kinds
from tidegate.engine.reach.writing import read_body
from tidegate.engine.vocabulary import Stand, Standing
from tidegate.model.objects import Kind, Ref, Served, Spot
from tidegate.model.plan import AWAITED, Deed, Item
from tidegate.world.calls import Get
from tidegate.world.facts import Done

DEFINITION = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
NAMESPACE = Kind("", "v1", "Namespace")
NEVER_WRITTEN = AWAITED | {Deed.DELETE, Deed.LEAVE}


class Definition(NamedTuple):
    """The CRD of a kind, as the plan has it or as it lives."""

    spot: Spot
    text: bytes = b""


class Surroundings(msgspec.Struct):
    """All that is known around the objects of a rollout. Nothing is read twice."""

    means: Means
    outlook: Outlook
    _unread: list[tuple[Spot, Item]] = msgspec.field(default_factory=list)
    _brought: dict[tuple[str, Kind], Definition] = msgspec.field(default_factory=dict)
    """Definitions that come with the plan."""
    _living: dict[tuple[str, Kind], Definition] = msgspec.field(default_factory=dict)
    _namespaces: dict[Spot, Item] = msgspec.field(default_factory=dict)
    _promised: dict[str, dict[Spot, Item]] = msgspec.field(default_factory=dict)
    """Webhooks and policies that come with the plan, by cluster."""
    _admission: dict[str, dict[Spot, Body]] = msgspec.field(default_factory=dict)

    def enlist(self, items: Mapping[Spot, Item]) -> None:
        """Take note of what a plan brings for other objects."""
        for spot, item in items.items():
            kind = spot.ref.kind
            if item.deed in NEVER_WRITTEN:
                continue
            if kind == DEFINITION:
                self._unread.append((spot, item))
            elif kind == NAMESPACE:
                self._namespaces[spot] = item
            elif is_admission(kind):
                self._promised.setdefault(spot.cluster, {})[spot] = item

    def learn(self, wanted: Iterable[tuple[Spot, Item]]) -> Errand[None]:
        """Read what is not known yet around these."""
        firsts = {(spot.cluster, spot.ref.kind): item for spot, item in wanted}
        for cluster in dict.fromkeys(cluster for cluster, _ in firsts):
            if cluster not in self._admission:
                served = self.outlook.served.get(cluster, {}).values()
                self._admission[cluster] = yield from look(cluster, served)
        strange = [key for key, item in firsts.items() if self.means.misfit(item, b"") is None]
        if strange:
            self._read_brought()
            yield from self._read_living(strange)

    def definition_of(self, spot: Spot) -> Definition | None:
        key = (spot.cluster, spot.ref.kind)
        return self._brought.get(key) or self._living.get(key)

    def guards(self, cluster: str, rewritten: frozenset[Spot]) -> tuple[Guards, Guards]:
        """Those who have a word now, and those who will once `rewritten` is as planned."""
        lives = self._admission.get(cluster, {})
        planned = self._promised.get(cluster, {})
        now = {spot: body for spot, body in lives.items() if spot not in rewritten}
        if not rewritten:
            now |= {spot: msgspec.json.decode(item.body) for spot, item in planned.items()}
            return Guards(guards_of(now)), Guards([])
        coming = {
            spot: msgspec.json.decode(item.body)
            for spot, item in planned.items()
            if spot in rewritten
        }
        then = guards_of({**now, **coming}) if coming else []
        later = [guard for guard in then if not coming.keys().isdisjoint(guard.spots)]
        return Guards(guards_of(now)), Guards(later)

    def _kinds(self, spot: Spot) -> tuple[Served, ...]:
        """How the objects of a kind are served, or will be; the kind itself first."""
        kind = spot.ref.kind
        served = self.outlook.served.get(spot.cluster, {})
        own = served.get(kind)
        if own is not None:
            same = (kind.group, own.plural)
            others = (one for one in served.values() if (one.kind.group, one.plural) == same)
            return (own, *(one for one in others if one.kind != kind))
        brought = self._brought.get((spot.cluster, kind))
        if brought is None:
            return ()
        plural = brought.spot.ref.name.partition(".")[0]
        return (Served(kind, plural, bool(spot.ref.namespace), (), ()),)

    def takers(
        self, guards: Guards, item: Item, standing: Standing, *, place: str = ""
    ) -> tuple[Guard, ...]:
        """Those who have a word in the writing of an object, here or in another `place`."""
        spot = standing.spot
        operation = "UPDATE" if standing.stand is Stand.DIFFERENT else "CREATE"
        found = guards.of_kind(spot.ref.kind, operation, partial(self._kinds, spot))
        if not found:
            return ()
        sight = self._sight(spot, item, place or spot.ref.namespace)
        return tuple(guard for guard in found if takes(guard, sight))

    def lacks_namespace(self, spot: Spot) -> bool:
        """Whether an object's namespace comes with the plan, and is not there yet."""
        place = Spot(spot.cluster, Ref(NAMESPACE, "", spot.ref.namespace))
        return place in self._namespaces and place not in self.outlook.lives

    def _sight(self, spot: Spot, item: Item, namespace: str) -> GuardSight:
        """What selectors see of an object when it is written."""
        labels = self._labels(spot, item)
        if spot.ref.kind == NAMESPACE:
            return GuardSight(labels, spot.ref.name, labels)
        place = Spot(spot.cluster, Ref(NAMESPACE, "", namespace))
        planned = self._namespaces.get(place)
        known = planned is not None or place in self.outlook.lives
        return GuardSight(labels, namespace, self._labels(place, planned) if known else None)

    def _labels(self, spot: Spot, item: Item | None) -> Body:
        live = self.outlook.lives.get(spot)
        there = labels_of(read_body(live)) if live else {}
        return there | labels_of(msgspec.json.decode(item.body)) if item else there

    def _read_brought(self) -> None:
        for spot, item in self._unread:
            for kind in defined_kinds(msgspec.json.decode(item.body)):
                self._brought[spot.cluster, kind] = Definition(spot, item.body)
        self._unread.clear()

    def _read_living(self, keys: Iterable[tuple[str, Kind]]) -> Errand[None]:
        """Definitions that live. Where none can be read, only the server knows the kind."""
        asked: dict[tuple[str, Kind], Spot] = {}
        for cluster, kind in keys:
            served = self.outlook.served.get(cluster, {}).get(kind)
            key = (cluster, kind)
            if served is not None and key not in self._brought and key not in self._living:
                name = f"{served.plural}.{kind.group}"
                asked[key] = Spot(cluster, Ref(DEFINITION, "", name))
        outcomes = yield tuple(Ask(spot.cluster, Get(spot.ref)) for spot in asked.values())
        for (key, spot), outcome in zip(asked.items(), outcomes, strict=True):
            live = outcome.live if isinstance(outcome, Done) else None
            self._living[key] = Definition(spot, live.body if live else b"")


class Guards(msgspec.Struct):
    """Webhooks and policies, found by kind first: most have no word in most kinds."""

    all: list[Guard]
    _by_kind: dict[tuple[Kind, str], list[Guard]] = msgspec.field(default_factory=dict)

    def of_kind(
        self, kind: Kind, operation: str, served: Callable[[], tuple[Served, ...]]
    ) -> list[Guard]:
        """`served`: how the kind is served; asked for once."""
        key = (kind, operation)
        if key not in self._by_kind:
            kinds = served()
            found = self.all if kinds else ()
            self._by_kind[key] = [one for one in found if covers(one, kinds, operation)]
        return self._by_kind[key]

"""Clusters that become known, or are forgotten, while a rollout is under way.

cluster Secrets ──▶ as sets were generated from them? ──▶ if not, everything is planned anew

Whoever makes such a Secret, a set asks for it when its turn comes, when it is about to end, and
before the rollout ends. In between, a watch tells of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from tidegate.dialect.argo.sets.asking import KnownCluster
from tidegate.flows.beside import Beside
from tidegate.flows.discover.sets import CLUSTER, clusters_in
from tidegate.flows.looking import SOUGHT, living
from tidegate.flows.session import Session
from tidegate.flows.wiring import simulated
from tidegate.knowledge.references import products_of
from tidegate.knowledge.templates import scope_of
from tidegate.model.event import Event
from tidegate.model.moment import MINUTE, Ms
from tidegate.model.objects import Json, Kind, Ref, Spot
from tidegate.model.plan import Plan, own_items_of
from tidegate.model.reading import mapping, text
from tidegate.model.unit import UnitId
from tidegate.world.calls import Selection, Watch
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Change, Changed

SECRET, LABEL = SOUGHT["Secret"]
AWAITED = Ms(10 * MINUTE)
"""So long a simulation goes on for a Secret that somebody is about to make."""
Home = tuple[str, str]
"""A cluster and a namespace of it."""


def asks_late(plan: Plan) -> bool:
    """Whether what units of a plan bring hangs on what lives meanwhile."""
    return any(one.policy.asks_late for one in plan.units)


class LateClusters(msgspec.Struct):
    """What the sets of a rollout have to know of clusters. `plan` is the newest one."""

    session: Session
    plan: Plan
    sets: dict[UnitId, Home] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.follow(self.plan)

    def follow(self, plan: Plan) -> None:
        self.plan = plan
        place = self.session.place_of
        late = (one.id for one in plan.units if one.policy.asks_late)
        self.sets = {name: (place(name.cluster), name.namespace) for name in late}

    @property
    def watches(self) -> dict[Home, Watch]:
        homes = dict.fromkeys(self.sets.values())
        return {home: Watch(Selection(SECRET, home[1], labels=LABEL)) for home in homes}

    async def have_changed(self) -> bool:
        """Whether clusters are known by now that the sets were not generated from, or fewer."""
        for cluster, namespace in dict.fromkeys(self.sets.values()):
            found = await living(self.session.world, "Secret", namespace, cluster=cluster)
            known = self.session.registered.get((cluster, namespace))
            if found is not None and (
                known is None or self._others(clusters_in(found.values())) != self._others(known)
            ):
                return True
        return False

    def _others(self, clusters: Mapping[str, KnownCluster]) -> dict[str, KnownCluster]:
        """Without those that Git knows: what it says of them counts."""
        settled = self.session.settled_clusters
        return {name: one for name, one in clusters.items() if name not in settled}

    def forget(self) -> None:
        """What was read last could not be taken: whoever asks next reads again."""
        for home in self.sets.values():
            self.session.registered.pop(home, None)

    async def come(self) -> None:
        """Wait in a simulated world for what others are about to do to cluster Secrets."""
        world, sandbox = self.session.world, simulated(self.session.behind)
        party, until = world.party(), Ms(world.now() + AWAITED)
        missing = set(self._made())
        tickets = [party.submit(one, cluster=home[0]) for home, one in self.watches.items()]
        homes = dict(zip(tickets, self.watches, strict=True))
        try:
            while sandbox is not None and world.now() < until:
                edit = sandbox.next_edit()
                if not missing and edit is None:
                    break
                for fact in await party.wait(min(edit or until, until)):
                    if isinstance(fact, Changed):
                        missing.discard(Spot(homes[fact.ticket][0], fact.live.ref))
                        if fact.change is not Change.DELETED and await self.have_changed():
                            return
        finally:
            for ticket in tickets:
                party.cancel(ticket)

    def _made(self) -> Iterator[Spot]:
        """The cluster Secrets that operators make of objects of the plan, by what is known."""
        homes = {*self.sets.values()}
        for step in self.plan.steps:
            for item in own_items_of(step):
                row = self.session.craft.rules.known.row_of(item.ref.kind)
                if row is None or not any(stage.produces for stage in row.stages):
                    continue
                scope = scope_of(msgspec.json.decode(item.body), item.ref.kind)
                for made in products_of(row, scope):
                    ref = _secret_ref(made.body)
                    if ref is not None and (step.cluster, ref.namespace) in homes:
                        yield Spot(step.cluster, ref)


def _secret_ref(body: dict[str, Json]) -> Ref | None:
    kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
    if kind != SECRET or CLUSTER not in mapping(body, "metadata", "labels").items():
        return None
    return Ref(kind, text(body, "metadata", "namespace"), text(body, "metadata", "name"))


class ClusterWatch(Beside):
    """Hears of cluster Secrets as long as a rollout goes on."""

    def __init__(self, world: Exchange, late: LateClusters, look: Callable[[], None]) -> None:
        super().__init__(world)
        self._late = late
        self._look = look

    def hear(self, event: Event) -> None:
        """Only Secrets are news."""

    async def go_on(self) -> None:
        watches: Iterable[tuple[Home, Watch]] = self._late.watches.items()
        tickets = [self.party.submit(one, cluster=home[0]) for home, one in watches]
        try:
            while not self.is_over:
                if any(isinstance(one, Changed) for one in await self.party.wait(None)):
                    self._look()
        finally:
            for ticket in tickets:
                self.party.cancel(ticket)

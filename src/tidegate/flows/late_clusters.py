"""Clusters that become known, or are forgotten, while a rollout is under way.

cluster Secrets ──▶ as sets were generated from them? ──▶ if not, everything is planned anew

Whoever makes such a Secret, a set asks for it when its turn comes, when it is about to end, and
before the rollout ends. In between, a watch tells of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from tidegate.dialect.argo.sets.asking import RegisteredCluster
from tidegate.flows.beside import BackgroundObserver
from tidegate.flows.discover.sets import CLUSTER_LABEL, clusters_from_secrets
from tidegate.flows.looking import LIST_QUERIES, list_argocd_objects
from tidegate.flows.session import Session
from tidegate.flows.wiring import as_sandbox
from tidegate.knowledge.references import products_of
from tidegate.knowledge.templates import scope_of
from tidegate.model.event import Event
from tidegate.model.moment import MINUTE, Ms
from tidegate.model.objects import ClusterRef, Json, Kind, Ref
from tidegate.model.plan import Plan, managed_items
from tidegate.model.reading import get_mapping, get_text
from tidegate.model.unit import UnitId
from tidegate.world.calls import Selection, Watch
from tidegate.world.exchange import Dispatcher
from tidegate.world.facts import WatchEvent, WatchEventType

SECRET, CLUSTER_SELECTOR = LIST_QUERIES["Secret"]
MAX_WAIT = Ms(10 * MINUTE)
"""How long a simulation waits for a cluster Secret that is about to be created."""
ClusterNamespace = tuple[str, str]
"""A cluster and one of its namespaces."""


def regenerates_during_rollout(plan: Plan) -> bool:
    """Whether ApplicationSets of a plan may generate other units during the rollout."""
    return any(unit.policy.asks_late for unit in plan.units)


class NewClusters(msgspec.Struct):
    """The cluster Secrets that the ApplicationSets of a rollout depend on."""

    session: Session
    plan: Plan
    """The newest plan."""
    appsets: dict[UnitId, ClusterNamespace] = msgspec.field(default_factory=dict)
    """By ApplicationSet, the cluster and namespace of its cluster Secrets."""

    def __post_init__(self) -> None:
        self.set_plan(self.plan)

    def set_plan(self, plan: Plan) -> None:
        self.plan = plan
        resolve_cluster = self.session.cluster_or_default
        unit_ids = (unit.id for unit in plan.units if unit.policy.asks_late)
        self.appsets = {
            unit_id: (resolve_cluster(unit_id.cluster), unit_id.namespace) for unit_id in unit_ids
        }

    @property
    def watches(self) -> dict[ClusterNamespace, Watch]:
        namespaces = dict.fromkeys(self.appsets.values())
        return {
            namespace: Watch(Selection(SECRET, namespace[1], label_selector=CLUSTER_SELECTOR))
            for namespace in namespaces
        }

    async def has_changed(self) -> bool:
        """Whether other clusters are registered now than the sets were generated from."""
        for cluster, namespace in dict.fromkeys(self.appsets.values()):
            secrets = await list_argocd_objects(
                self.session.world, "Secret", namespace, cluster=cluster
            )
            known = self.session.registered_clusters.get((cluster, namespace))
            if secrets is not None and (
                known is None
                or self._undeclared(clusters_from_secrets(secrets.values()))
                != self._undeclared(known)
            ):
                return True
        return False

    def _undeclared(
        self, clusters: Mapping[str, RegisteredCluster]
    ) -> dict[str, RegisteredCluster]:
        """Return the clusters that are not declared in Git, whose declaration takes precedence."""
        declared = self.session.declared_clusters
        return {name: cluster for name, cluster in clusters.items() if name not in declared}

    def invalidate(self) -> None:
        """Drop the last state after a failed plan, so that the next check plans again."""
        for namespace in self.appsets.values():
            self.session.registered_clusters.pop(namespace, None)

    async def wait_for_secrets(self) -> None:
        """Wait in a simulated World until pending changes of cluster Secrets have happened."""
        world, sandbox = self.session.world, as_sandbox(self.session.raw_world)
        client, until = world.client(), Ms(world.now() + MAX_WAIT)
        missing = set(self._expected_secrets())
        request_ids = [
            client.submit(watch, cluster=namespace[0]) for namespace, watch in self.watches.items()
        ]
        namespaces = dict(zip(request_ids, self.watches, strict=True))
        try:
            while sandbox is not None and world.now() < until:
                edit = sandbox.next_edit()
                if not missing and edit is None:
                    break
                for message in await client.wait(min(edit or until, until)):
                    if isinstance(message, WatchEvent):
                        missing.discard(
                            ClusterRef(namespaces[message.request_id][0], message.live.ref)
                        )
                        if message.type is not WatchEventType.DELETED and await self.has_changed():
                            return
        finally:
            for request_id in request_ids:
                client.cancel(request_id)

    def _expected_secrets(self) -> Iterator[ClusterRef]:
        """Yield the cluster Secrets that operators produce from objects of the plan."""
        namespaces = {*self.appsets.values()}
        for step in self.plan.steps:
            for item in managed_items(step):
                row = self.session.evaluator.rules.known.row_of(item.ref.kind)
                if row is None or not any(stage.produces for stage in row.stages):
                    continue
                scope = scope_of(msgspec.json.decode(item.body), item.ref.kind)
                for product in products_of(row, scope):
                    ref = _secret_ref(product.body)
                    if ref is not None and (step.cluster, ref.namespace) in namespaces:
                        yield ClusterRef(step.cluster, ref)


def _secret_ref(body: dict[str, Json]) -> Ref | None:
    kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
    if kind != SECRET or CLUSTER_LABEL not in get_mapping(body, "metadata", "labels").items():
        return None
    return Ref(kind, get_text(body, "metadata", "namespace"), get_text(body, "metadata", "name"))


class ClusterSecretWatcher(BackgroundObserver):
    """Watches cluster Secrets during a rollout."""

    def __init__(
        self, world: Dispatcher, new_clusters: NewClusters, on_change: Callable[[], None]
    ) -> None:
        super().__init__(world)
        self._new_clusters = new_clusters
        self._on_change = on_change

    def on_event(self, event: Event) -> None:
        """Ignore events: only watches of Secrets matter."""

    async def run(self) -> None:
        watches: Iterable[tuple[ClusterNamespace, Watch]] = self._new_clusters.watches.items()
        request_ids = [
            self.client.submit(watch, cluster=namespace[0]) for namespace, watch in watches
        ]
        try:
            while not self.is_stopped:
                if any(isinstance(message, WatchEvent) for message in await self.client.wait(None)):
                    self._on_change()
        finally:
            for request_id in request_ids:
                self.client.cancel(request_id)

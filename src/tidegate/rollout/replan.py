"""New plans during a rollout: for retries, ApplicationSets and Helm lookups.

engine ── a unit is about to be retried, or an ApplicationSet to start or to end
   │
replan ── the repository is loaded and planned again, in the same session
   │
engine ── a newer plan supersedes the current one; else the unit continues as planned

ApplicationSets depend on cluster Secrets, which may appear during the rollout. They are read
when the set is due, when it is about to end, and before the rollout ends; in between, a watch
reports them. Lookups of a release are repeated when it is due, since Helm renders a chart when
it releases it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

import msgspec

from tidegate.clusters.reader import LIST_QUERIES, list_argocd_objects
from tidegate.clusters.sandboxes import as_sandbox
from tidegate.clusters.session import Session
from tidegate.dialect.argo.appset.queries import RegisteredCluster
from tidegate.engine.driver import Driver, drive
from tidegate.engine.messages import Refresh
from tidegate.errors import TidegateError, flatten_errors
from tidegate.knowledge.references import list_products
from tidegate.knowledge.templates import make_scope
from tidegate.model.k8s.json_fields import get_mapping, object_ref
from tidegate.model.k8s.objects import ClusterRef, Json, Ref
from tidegate.model.plans.plan import Plan, managed_items
from tidegate.model.rollouts.event import Event
from tidegate.model.times import MINUTE, Ms
from tidegate.model.units.unit import UnitId
from tidegate.planning.plan import PlanResult
from tidegate.releases.history import UnitLookups
from tidegate.rollout.observers import BackgroundObserver
from tidegate.workspace.cluster_inputs import ClusterLookups
from tidegate.workspace.discovery.appsets import CLUSTER_LABEL, clusters_from_secrets
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import WatchEvent, WatchEventType
from tidegate.world.requests import Selection, Watch

SECRET, CLUSTER_SELECTOR = LIST_QUERIES["Secret"]
MAX_WAIT = Ms(10 * MINUTE)
"""How long a simulation waits for a cluster Secret that is about to be created."""
ClusterNamespace = tuple[str, str]
"""A cluster and one of its namespaces."""


def regenerates_during_rollout(plan: Plan) -> bool:
    """Return whether ApplicationSets of a plan may generate other units during the rollout."""
    return any(unit.policy.regenerates_during_rollout for unit in plan.units)


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
        unit_ids = (unit.id for unit in plan.units if unit.policy.regenerates_during_rollout)
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
        """Return whether other clusters are registered now than the sets were generated from."""
        for cluster, namespace in dict.fromkeys(self.appsets.values()):
            secrets = await list_argocd_objects(
                self.session.world, "Secret", namespace, cluster=cluster
            )
            known = self.session.repository.registered_clusters.get((cluster, namespace))
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
        declared = self.session.repository.declared_clusters
        return {name: cluster for name, cluster in clusters.items() if name not in declared}

    def invalidate(self) -> None:
        """Drop the last state after a failed plan, so that the next check plans again."""
        for namespace in self.appsets.values():
            self.session.repository.registered_clusters.pop(namespace, None)

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
                row = self.session.evaluator.rules.catalog.find_row(item.ref.kind)
                if row is None or not item.body or not any(stage.produces for stage in row.stages):
                    continue
                scope = make_scope(msgspec.json.decode(item.body), item.ref.kind)
                for product in list_products(row, scope):
                    ref = _secret_ref(product.body)
                    if ref is not None and (step.cluster, ref.namespace) in namespaces:
                        yield ClusterRef(step.cluster, ref)


def _secret_ref(body: dict[str, Json]) -> Ref | None:
    ref = object_ref(body)
    if ref.kind != SECRET or CLUSTER_LABEL not in get_mapping(body, "metadata", "labels").items():
        return None
    return ref


class ClusterSecretWatcher(BackgroundObserver):
    """Watcher of cluster Secrets during a rollout."""

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


class LookupRecheck(msgspec.Struct):
    """Repetition of the lookups of a release when it starts.

    Helm renders a chart when it releases it, so it finds objects that were deployed before. Each
    release is checked once.
    """

    session: Session
    current_lookups: Callable[[], Mapping[UnitId, UnitLookups]]
    """Returns the lookups of the newest plan."""
    checked: set[UnitId] = msgspec.field(default_factory=set)
    """Releases that were checked already."""

    def is_release_start(self, request: Refresh | None) -> bool:
        """Return whether a release with lookups is about to start."""
        return (
            request is not None
            and request.failure is None
            and request.unit in self.current_lookups()
        )

    async def has_changed(self, unit: UnitId) -> bool:
        """Return whether a lookup finds something else now; checked once for each release."""
        if unit in self.checked:
            return False
        self.checked.add(unit)
        lookups, query = self.current_lookups()[unit], ClusterLookups(self.session)
        for path, answer in lookups.results.items():
            if await query(lookups.unit, path) != answer:
                return True
        return False

    def lookup_error(self, unit: UnitId) -> str:
        """Return why a release still cannot be rendered; empty if it can."""
        lookups = self.current_lookups().get(unit)
        return (
            "" if lookups is None or lookups.lookup_error is None else lookups.lookup_error.problem
        )


Replan = Callable[[], Awaitable[PlanResult]]
"""Returns the current plan. Raises if the current state cannot be rolled out."""


class Replanner(msgspec.Struct):
    """Planner of a new plan when the engine requests one."""

    replan: Replan
    on_new_plan: Callable[[PlanResult], Awaitable[None]]
    """Receives a newer plan before it starts."""
    new_clusters: NewClusters | None = None
    """The clusters that ApplicationSets depend on, if any."""
    lookups: LookupRecheck | None = None
    """The lookups of releases, if any."""
    simulated_world: Dispatcher | None = None
    """A World whose virtual time must not advance during planning."""
    problems: dict[str, None] = msgspec.field(default_factory=dict)
    """Why new plans could not be made."""
    _requests: asyncio.Queue[Refresh | None] = msgspec.field(default_factory=asyncio.Queue)
    _is_check_queued: bool = False
    _is_stopped: bool = False

    def request(self, refresh: Refresh) -> None:
        self._start_work()
        self._requests.put_nowait(refresh)

    def check_clusters(self) -> None:
        """Queue a check after a change of cluster Secrets."""
        if not self._is_check_queued and not self._is_stopped:
            self._is_check_queued = True
            self._start_work()
            self._requests.put_nowait(None)

    async def drive(self, driver: Driver, digest: str, until: Ms | None) -> str:
        """Run a rollout that starts with the plan of this digest, and serve its requests."""
        failure: TidegateError | None = None
        result = ""
        async with asyncio.TaskGroup() as group:
            server = group.create_task(self._serve_requests(driver, digest))
            try:
                result = await drive(driver, until=until)
            except TidegateError as error:  # keep it out of an ExceptionGroup
                failure = error
            self._start_work()
            self._is_stopped = True
            server.cancel()
        self._drop_checks()
        self._end_work()
        if failure is not None:
            raise failure
        return result

    async def _serve_requests(self, driver: Driver, digest: str) -> None:
        while True:
            refresh = await self._requests.get()
            try:
                digest = await self._handle_request(driver, digest, refresh)
            finally:
                self._end_work()

    async def _handle_request(self, driver: Driver, digest: str, refresh: Refresh | None) -> str:
        """Let the driver continue, with a newer plan if there is one. Return the plan's digest."""
        self._is_check_queued = self._is_check_queued and refresh is not None
        lookups = self.lookups
        if refresh is not None and lookups is not None and lookups.is_release_start(refresh):
            return await self._handle_lookup(driver, digest, refresh.unit, lookups)
        unit = refresh.unit if refresh is not None else None
        concerns_clusters = self.new_clusters is not None and (
            unit is None or unit in self.new_clusters.appsets
        )
        newer, problem = None, ""
        if not concerns_clusters or await self._have_clusters_changed(refresh):
            newer, problem = await self._make_newest()
        if newer is not None and newer.plan.digest != digest:
            await self.on_new_plan(newer)
            driver.supersede(newer.plan, newer.rejected)
            return newer.plan.digest
        if problem:
            subject = f"`{unit}`" if unit is not None else "an ApplicationSet"
            verb = (
                "is not updated for the new clusters"
                if concerns_clusters
                else "is retried with the previous plan"
            )
            self.problems[f"{subject} {verb}: {problem}"] = None
        if unit is not None:
            driver.finish_refresh(unit, problem if concerns_clusters else "")
        return digest

    async def _handle_lookup(
        self, driver: Driver, digest: str, unit: UnitId, lookups: LookupRecheck
    ) -> str:
        """Let a release start with the current results of its lookups. Return the plan's digest."""
        newer, problem = None, ""
        if await lookups.has_changed(unit):
            newer, problem = await self._make_newest()
        problem = problem or lookups.lookup_error(unit)
        if newer is not None and newer.plan.digest != digest and not problem:
            await self.on_new_plan(newer)
            driver.supersede(newer.plan, newer.rejected)
            return newer.plan.digest
        driver.finish_refresh(unit, problem)
        return digest

    async def _have_clusters_changed(self, refresh: Refresh | None) -> bool:
        """Return whether ApplicationSets would generate other units, in a simulation also soon."""
        new_clusters = self.new_clusters
        if new_clusters is None or await new_clusters.has_changed():
            return new_clusters is not None
        if refresh is None or not refresh.is_last or self.simulated_world is None:
            return False
        self._drop_checks()
        self._is_check_queued = True  # the check runs below
        self._end_work()
        try:
            await new_clusters.wait_for_secrets()
        finally:
            self._start_work()
            self._is_check_queued = False
        return await new_clusters.has_changed()

    def _drop_checks(self) -> None:
        """Drop the queued checks, which no unit waits for."""
        while not self._requests.empty():
            self._requests.get_nowait()
            self._end_work()

    def _start_work(self) -> None:
        if self.simulated_world is not None:
            self.simulated_world.start_work()

    def _end_work(self) -> None:
        if self.simulated_world is not None:
            self.simulated_world.finish_work()

    async def _make_newest(self) -> tuple[PlanResult | None, str]:
        """Return the current plan, or why there is none."""
        newest, problem = None, ""
        try:
            newest = await self.replan()
        except* TidegateError as group:
            problem = "; ".join(error.problem for error in flatten_errors(group))
            if self.new_clusters is not None:
                self.new_clusters.invalidate()
        return newest, problem

"""The clusters of one command, by name: a World, and facts that are read once.

async with open_session(targets, render_settings) as session:
    kinds = await session.kinds("")
"""

from __future__ import annotations

import asyncio
import getpass
import os
import secrets
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.clusters.connect import Worker, find_target, open_world
from tidegate.clusters.evaluator import DefaultEvaluator
from tidegate.clusters.pace import PacedWorld
from tidegate.clusters.reader import ClusterReader
from tidegate.clusters.sandboxes import (
    CONTEXT,
    SimulationConfig,
    add_sandbox_clusters,
    build_sandbox,
    kubeconfig_hint,
    load_knowledge,
    preinstall,
    read_knowledge_files,
)
from tidegate.dialect.argo.appset.queries import RegisteredCluster
from tidegate.errors import ClusterError, ConfigError
from tidegate.files import read_user_file
from tidegate.health.cel import CelRules
from tidegate.health.cel.interpreter import is_cel_installed
from tidegate.health.cel.rules import CEL_WORKER
from tidegate.health.judge import Judge
from tidegate.health.lua import NO_LUA_RULES, LuaRules, read_lua_rules
from tidegate.health.lua.interpreter import find_lua
from tidegate.model.k8s.capabilities import Capabilities, api_version_names, read_kube_version
from tidegate.model.k8s.objects import ServedKind
from tidegate.model.simulation.preinstalled import GivenCluster
from tidegate.model.units.expressions import HealthExpressions
from tidegate.model.units.rendering import NO_ROOT
from tidegate.source.urls import redact_password
from tidegate.workers.cel import cel_workers
from tidegate.workers.lua import lua_missing_error, lua_workers
from tidegate.workers.rendering import RenderSettings, WorkerPool
from tidegate.workers.scripts import ScriptWorkers
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import ApiResources, RawResponse
from tidegate.world.one_shot import send_requests
from tidegate.world.protocol import World
from tidegate.world.requests import MAX_DISCOVERY_AGE, Discover, RawGet
from tidegate.world.resilient import ResilientWorld

UNREACHABLE_CODES = frozenset(
    {"config.none", "cluster.unreachable", "cluster.unknown-host", "cluster.timeout"}
)


class ClusterTargets(msgspec.Struct, frozen=True, kw_only=True):
    """The clusters of a command: contexts of a kubeconfig, or simulated clusters."""

    kubeconfig: str | None = None
    context: str | None = None
    clusters: tuple[tuple[str, str | None], ...] = ()
    """Cluster names, each with its context. Empty: one unnamed cluster, that of `context`."""
    simulation: SimulationConfig | None = None
    health_rules: Path | None = None
    """File with Lua health rules in the format of `argocd-cm`."""
    expressions: tuple[HealthExpressions, ...] = ()
    """CEL health expressions of the repository."""

    @property
    def contexts(self) -> dict[str, str | None]:
        """By cluster name, its context."""
        return dict(self.clusters) or {"": self.context}


def describe_targets(targets: ClusterTargets) -> list[str]:
    """Return a description of each cluster for the user: context and server, or "simulated"."""
    if targets.simulation is not None:
        return [f"simulated cluster {name}".rstrip() for name in targets.contexts]
    with _suggest_sandbox():
        kube_targets = {
            name: find_target(context, kubeconfig=targets.kubeconfig)
            for name, context in targets.contexts.items()
        }
    return [
        f"{name + ': ' if name else ''}context {kube_target.name},"
        f" {redact_password(kube_target.server)}"
        for name, kube_target in kube_targets.items()
    ]


def server_urls(targets: ClusterTargets) -> dict[str, str]:
    """Return the server URL of each cluster by name; empty for a simulated one."""
    if targets.simulation is not None:
        return dict.fromkeys(targets.contexts, "")
    return {
        name: redact_password(find_target(context, kubeconfig=targets.kubeconfig).server)
        for name, context in targets.contexts.items()
    }


class LoadedRepository(msgspec.Struct, frozen=True, kw_only=True):
    """What a session knows of the repository that was loaded for it."""

    root: Path = NO_ROOT
    """The directory that the locations of objects are relative to."""
    declared_clusters: frozenset[str] = frozenset()
    """Clusters that are declared in Git, whether or not a Secret exists."""
    registered_clusters: dict[tuple[str, str], dict[str, RegisteredCluster]] = msgspec.field(
        default_factory=dict
    )
    """By cluster and namespace, the clusters that ApplicationSets were generated for.

    They are registered as Argo CD cluster Secrets.
    """
    scripts: LuaRules = NO_LUA_RULES
    """Health rules in Git."""
    owner_label: str = ""
    """The label by which Argo CD tracks objects; empty if it uses the annotation."""


class Session(msgspec.Struct):
    """A World shared by rollouts and queries, with the evaluator of live objects.

    API discovery and the server version are read once for each cluster.
    """

    world: Dispatcher
    paced_world: PacedWorld
    """The same World, slowed down to a chosen pace."""
    raw_world: World
    """The World without retries and pacing; a simulated one can be inspected."""
    evaluator: DefaultEvaluator
    render_settings: RenderSettings
    """How sources are fetched and decrypted."""
    targets: ClusterTargets
    cel: ScriptWorkers | None = None
    """Evaluates CEL expressions; None where CEL is not installed."""
    repository: LoadedRepository = msgspec.field(default_factory=LoadedRepository)
    _kinds: dict[str, tuple[ServedKind, ...]] = msgspec.field(default_factory=dict)
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    """By cluster, its Kubernetes version, as far as it is known."""
    _capabilities: dict[str, Capabilities] = msgspec.field(default_factory=dict)
    _kinds_lock: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)

    @classmethod
    def from_world(
        cls,
        world: World,
        evaluator: DefaultEvaluator,
        render_settings: RenderSettings,
        targets: ClusterTargets,
        cel: ScriptWorkers | None = None,
    ) -> Session:
        """Return a session in which all callers share one resilient connection."""
        paced_world = PacedWorld(ResilientWorld(world))
        return cls(
            Dispatcher(paced_world), paced_world, world, evaluator, render_settings, targets, cel
        )

    def cluster_or_default(self, cluster: str) -> str:
        """Return the cluster if it is a target, else the first target."""
        contexts = self.targets.contexts
        return cluster if cluster in contexts else next(iter(contexts))

    def add_clusters(self, clusters: Iterable[str]) -> None:
        """Add simulated clusters to the same World."""
        if self.targets.simulation is None:
            raise TypeError(self.targets)
        new = tuple((name, None) for name in clusters)
        add_sandbox_clusters(self.raw_world, self.targets.simulation, (name for name, _ in new))
        self.targets = replace(self.targets, clusters=(*self.targets.contexts.items(), *new))

    def assume(self, more: Mapping[str, GivenCluster]) -> None:
        """Add assumed dependencies to simulated clusters, as if they were preinstalled."""
        simulation = self.targets.simulation
        if simulation is None:
            raise TypeError(self.targets)
        preinstall(self.raw_world, simulation, more)
        empty = GivenCluster()
        previous = simulation.assumed
        assumed = {
            **previous,
            **{name: previous.get(name, empty).merged_with(given) for name, given in more.items()},
        }
        self.targets = replace(self.targets, simulation=replace(simulation, assumed=assumed))
        self._kinds.clear()
        self._capabilities.clear()

    def use_repository(self, repository: LoadedRepository) -> None:
        """Use the health rules and the owner label of a repository.

        Rules of `--health-rules` take precedence. Raises if there are rules and Lua is not
        installed.
        """
        scripts, self.repository = repository.scripts, repository
        self.evaluator = replace(self.evaluator, owner_label=repository.owner_label)
        if not scripts.named:
            return
        if find_lua() is None:
            raise lua_missing_error()
        existing = self.evaluator.scripts.named
        self.evaluator = replace(
            self.evaluator, scripts=LuaRules.from_scripts({**scripts.named, **existing}.items())
        )

    def reader(self, cluster: str = "") -> ClusterReader:
        """Return the reader of the live objects of a cluster."""
        return ClusterReader(self.world, cluster)

    async def kinds(self, cluster: str = "") -> tuple[ServedKind, ...]:
        """Return the kinds that a cluster serves, as first discovered."""
        async with self._kinds_lock:  # many units are rendered at once
            if cluster not in self._kinds:
                (outcome,) = await send_requests(
                    self.world, Discover(MAX_DISCOVERY_AGE), cluster=cluster
                )
                self._kinds[cluster] = outcome.kinds if isinstance(outcome, ApiResources) else ()
            return self._kinds[cluster]

    async def capabilities(self, cluster: str = "") -> Capabilities:
        """Return the cluster's capabilities as charts see them."""
        if cluster not in self.versions:
            (outcome,) = await send_requests(self.world, RawGet("/version"), cluster=cluster)
            text = outcome.body if isinstance(outcome, RawResponse) else b""
            self.versions[cluster] = read_kube_version(text)
        if cluster not in self._capabilities:
            names = api_version_names(served.kind for served in await self.kinds(cluster))
            self._capabilities[cluster] = Capabilities(self.versions[cluster], names)
        return self._capabilities[cluster]


@asynccontextmanager
async def open_session(
    targets: ClusterTargets, render_settings: RenderSettings
) -> AsyncIterator[Session]:
    """Open a session on the targets.

    Raises ClusterError if a cluster does not answer; the hint suggests `--sandbox`.
    """
    async with AsyncExitStack() as stack:
        scripts, workers = NO_LUA_RULES, dict[str, Worker]()
        if targets.health_rules is not None:
            text = read_user_file(targets.health_rules)
            scripts = read_lua_rules(text, str(targets.health_rules))
        if scripts.named or find_lua() is not None:
            workers["lua"] = await stack.enter_async_context(lua_workers())
        cel = await stack.enter_async_context(cel_workers()) if is_cel_installed() else None
        if cel is not None:
            workers[CEL_WORKER] = cel
        world, versions = await stack.enter_async_context(_open_world(targets, workers))
        evaluator = build_evaluator(targets.simulation, scripts)
        if cel is not None:
            evaluator = replace(
                evaluator, expressions=CelRules.from_expressions(targets.expressions)
            )
        stack.callback(evaluator.jq.close)
        if render_settings.worker_pool is None:  # later renders reuse warm workers
            worker_pool = WorkerPool(render_settings.cores)
            render_settings = replace(
                render_settings, worker_pool=await stack.enter_async_context(worker_pool)
            )
        session = Session.from_world(world, evaluator, render_settings, targets, cel)
        session.versions.update(versions)
        yield session


@asynccontextmanager
async def _open_world(
    targets: ClusterTargets, workers: dict[str, Worker]
) -> AsyncIterator[tuple[World, Mapping[str, str]]]:
    """Open the World of the targets, with the known versions of its clusters."""
    if targets.simulation is not None:
        yield build_sandbox(targets.simulation, workers, clusters=targets.contexts), {}
        return
    with _suggest_sandbox():
        contexts = targets.contexts
        versions: dict[str, str] = {}
        async with open_world(
            contexts,
            kubeconfig=targets.kubeconfig,
            workers=workers,
            add_version=versions.__setitem__,
        ) as world:
            yield world, versions


@contextmanager
def _suggest_sandbox() -> Iterator[None]:
    """Add a hint about simulated clusters to errors of an unreachable cluster."""
    try:
        yield
    except (ClusterError, ConfigError) as error:
        if error.code in UNREACHABLE_CODES:
            suggestion = "use a simulated cluster with `tidegate sync --sandbox`"
            error.hint = f"{error.hint}; {suggestion}" if error.hint else suggestion
        if isinstance(error, ConfigError) and error.missing_context == CONTEXT:
            error.hint = kubeconfig_hint(os.environ)
        raise


def build_evaluator(
    simulation: SimulationConfig | None = None, scripts: LuaRules = NO_LUA_RULES
) -> DefaultEvaluator:
    """Return an evaluator with all operator knowledge, without assumed kinds."""
    knowledge = load_knowledge(None) if simulation is None else read_knowledge_files(simulation)
    return DefaultEvaluator(Judge.from_rows(knowledge.rows), scripts)


def user_identity() -> str:
    """Return the user and the machine of this process, as author of records."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def holder_identity() -> str:
    """Return a unique identity of this process, as holder of unit leases."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"

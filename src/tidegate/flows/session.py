"""The clusters of one run, by name: a world behind the door, and what is asked of it once.

async with open_session(target, setting) as session:
    kinds = await session.kinds("")
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.dialect.argo.sets.asking import KnownCluster
from tidegate.errors import ClusterError, ConfigError, TidegateError
from tidegate.files import read_users_file
from tidegate.flows.cel import cel_workers
from tidegate.flows.lua import lua_workers, no_lua
from tidegate.flows.means import Craft
from tidegate.flows.pace import Paced
from tidegate.flows.rendering import Setting
from tidegate.flows.rendering.capabilities import Capabilities, named_versions, read_version
from tidegate.flows.rendering.workshop import WorkerCrew
from tidegate.flows.scripting import ScriptWorkers
from tidegate.flows.wiring import (
    Simulation,
    Worker,
    find_target,
    furnish_living,
    grow_living,
    known_to,
    make_living,
    open_world,
    written_knowledge,
)
from tidegate.health.cel import CelRules
from tidegate.health.cel.machine import find_cel
from tidegate.health.cel.rules import CEL_WORK
from tidegate.health.judge import Judge
from tidegate.health.lua import NO_RULES, LuaRules, read_lua_rules
from tidegate.health.lua.machine import find_lua
from tidegate.model.expressions import HealthExpressions
from tidegate.model.given import GivenCluster
from tidegate.model.objects import Served
from tidegate.model.rendering import NOWHERE
from tidegate.source.urls import without_password
from tidegate.world.ask import ask
from tidegate.world.calls import Http, Kinds
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Catalogue, Said
from tidegate.world.line import Line
from tidegate.world.protocol import World

NOT_THERE = frozenset(
    {"config.none", "cluster.unreachable", "cluster.unknown-host", "cluster.timeout"}
)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Which clusters: of a kubeconfig, or simulated ones.

    `clusters` are named, each with the context it has in the kubeconfig; with none there is one
    cluster without a name, that of the `context`. `health_rules` are Lua, in the form of Argo CD's
    settings; `expressions` are the repository's own.
    """

    kubeconfig: str | None = None
    context: str | None = None
    clusters: tuple[tuple[str, str | None], ...] = ()
    simulation: Simulation | None = None
    health_rules: Path | None = None
    expressions: tuple[HealthExpressions, ...] = ()

    @property
    def contexts(self) -> dict[str, str | None]:
        """By the name of a cluster, its context."""
        return dict(self.clusters) or {"": self.context}


def name_target(target: Target) -> list[str]:
    """Each cluster as people know it, found as it will be found."""
    if target.simulation is not None:
        return [f"simulated cluster {name}".rstrip() for name in target.contexts]
    with _offering_another():
        found = {
            name: find_target(context, kubeconfig=target.kubeconfig)
            for name, context in target.contexts.items()
        }
    return [
        f"{name + ': ' if name else ''}context {one.name}, {without_password(one.server)}"
        for name, one in found.items()
    ]


def servers_of(target: Target) -> dict[str, str]:
    """By the names of clusters, the address of each; a simulated one has none."""
    if target.simulation is not None:
        return dict.fromkeys(target.contexts, "")
    return {
        name: without_password(find_target(context, kubeconfig=target.kubeconfig).server)
        for name, context in target.contexts.items()
    }


class Session(msgspec.Struct):
    """A world that rollouts and questions share, and how what lives there is judged.

    `behind`: the world behind the door; a simulated one can be looked into. `setting`: how things
    may be had that are to be rendered. Which kinds a cluster serves, and which version it has, is
    asked once.
    """

    world: Exchange
    paced: Paced
    behind: World
    craft: Craft
    setting: Setting
    target: Target
    cel: ScriptWorkers | None = None
    """Evaluates expressions, where that can be done here."""
    tree: Path = NOWHERE
    """What the places of objects are in."""
    registered: dict[tuple[str, str], dict[str, KnownCluster]] = msgspec.field(default_factory=dict)
    """By cluster and namespace, the clusters that lived as Secrets there when sets were generated
    from them."""
    settled_clusters: frozenset[str] = frozenset()
    """Those that Git knows, whatever lives."""
    _kinds: dict[str, tuple[Served, ...]] = msgspec.field(default_factory=dict)
    _versions: dict[str, str] = msgspec.field(default_factory=dict)

    @classmethod
    def over(
        cls,
        world: World,
        craft: Craft,
        setting: Setting,
        target: Target,
        cel: ScriptWorkers | None = None,
    ) -> Session:
        """Everybody who uses a world goes through its one line."""
        paced = Paced(Line(world))
        return cls(Exchange(paced), paced, world, craft, setting, target, cel)

    def place_of(self, cluster: str) -> str:
        """Where something is looked for that is in a cluster; what nobody names is the first."""
        known = self.target.contexts
        return cluster if cluster in known else next(iter(known))

    def grow(self, clusters: Iterable[str]) -> None:
        """Have further simulated clusters in the same world."""
        if self.target.simulation is None:
            raise TypeError(self.target)
        new = tuple((name, None) for name in clusters)
        grow_living(self.behind, self.target.simulation, (name for name, _ in new))
        self.target = replace(self.target, clusters=(*self.target.contexts.items(), *new))

    def assume(self, more: Mapping[str, GivenCluster]) -> None:
        """Put more into simulated clusters, as if it had been there before."""
        simulation = self.target.simulation
        if simulation is None:
            raise TypeError(self.target)
        furnish_living(self.behind, simulation, more)
        none = GivenCluster()
        old = simulation.assumed
        assumed = {**old, **{name: old.get(name, none).and_more(one) for name, one in more.items()}}
        self.target = replace(self.target, simulation=replace(simulation, assumed=assumed))
        self._kinds.clear()

    def follow(self, scripts: LuaRules, owner_label: str) -> None:
        """Judge by these rules too; those that somebody has handed in come before them.

        `owner_label`: by which a repository's Argo CD knows its objects.
        """
        self.craft = replace(self.craft, owner_label=owner_label)
        if not scripts.named:
            return
        if find_lua() is None:
            raise no_lua()
        known = self.craft.scripts.named
        self.craft = replace(self.craft, scripts=LuaRules.of({**scripts.named, **known}.items()))

    async def kinds(self, cluster: str = "") -> tuple[Served, ...]:
        """What a cluster served when it was first asked."""
        if cluster not in self._kinds:
            (found,) = await ask(self.world, Kinds(), cluster=cluster)
            self._kinds[cluster] = found.kinds if isinstance(found, Catalogue) else ()
        return self._kinds[cluster]

    async def capabilities(self, cluster: str = "") -> Capabilities:
        """What charts see of a cluster that they are for."""
        if cluster not in self._versions:
            (found,) = await ask(self.world, Http("/version"), cluster=cluster)
            text = found.body if isinstance(found, Said) else b""
            self._versions[cluster] = read_version(text)
        served = named_versions(one.kind for one in await self.kinds(cluster))
        return Capabilities(self._versions[cluster], served)


@asynccontextmanager
async def open_session(target: Target, setting: Setting) -> AsyncIterator[Session]:
    """The world of a target. A cluster that does not answer is an error that offers another."""
    async with AsyncExitStack() as stack:
        scripts, workers = NO_RULES, dict[str, Worker]()
        if target.health_rules is not None:
            text = read_users_file(target.health_rules)
            scripts = read_lua_rules(text, str(target.health_rules))
        if scripts.named or find_lua() is not None:
            workers["lua"] = await stack.enter_async_context(lua_workers())
        cel = await stack.enter_async_context(cel_workers()) if find_cel() else None
        if cel is not None:
            workers[CEL_WORK] = cel
        world = await stack.enter_async_context(_open_world(target, workers))
        craft = make_craft(target.simulation, scripts)
        if cel is not None:
            craft = replace(craft, expressions=CelRules.of(target.expressions))
        stack.callback(craft.jq.close)
        if setting.crew is None:  # what is rendered once more finds its workers warm
            crew = WorkerCrew(setting.cores, offline=setting.offline)
            setting = replace(setting, crew=await stack.enter_async_context(crew))
        yield Session.over(world, craft, setting, target, cel)


@asynccontextmanager
async def _open_world(target: Target, workers: dict[str, Worker]) -> AsyncIterator[World]:
    if target.simulation is not None:
        yield make_living(target.simulation, workers, clusters=target.contexts)
        return
    with _offering_another():
        contexts = target.contexts
        async with open_world(contexts, kubeconfig=target.kubeconfig, workers=workers) as world:
            yield world


@contextmanager
def _offering_another() -> Iterator[None]:
    """Where there is no cluster, a simulated one may do."""
    try:
        yield
    except (ClusterError, ConfigError) as error:
        if error.code in NOT_THERE:
            offer = "`tidegate sync --sandbox` needs no cluster"
            error.hint = f"{error.hint}; {offer}" if error.hint else offer
        if error.code == "config.context":
            error.hint = _way_to_sandbox(error) or error.hint
        raise


def _way_to_sandbox(error: TidegateError) -> str:
    """What reaches the simulated cluster that stays, where its context is asked for."""
    from tidegate.flows.sandbox_home import CONTEXT, way_to  # noqa: PLC0415 - for a rare mistake

    return way_to(os.environ) if f"`{CONTEXT}`" in error.problem else ""


def make_craft(simulation: Simulation | None = None, scripts: LuaRules = NO_RULES) -> Craft:
    """Judgement with everything that is known of operators, and nothing that is only assumed."""
    known = known_to(None) if simulation is None else written_knowledge(simulation)
    return Craft(Judge.of(known.rows), scripts)


def own_name() -> str:
    """Names this run of this process among those that may hold a unit."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"

"""Which world is behind the door."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tidegate.errors import ClusterError, Place
from tidegate.files import read_users_file
from tidegate.flows.custom_kinds import may_be_custom
from tidegate.flows.rendering.capabilities import read_version
from tidegate.model.commit import Commit
from tidegate.model.expectation import Expectation
from tidegate.model.given import GivenCluster
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Kind
from tidegate.model.operators import Knowledge
from tidegate.world.ask import ask
from tidegate.world.calls import Http
from tidegate.world.exchange import Exchange
from tidegate.world.facts import NotServed, Outcome, Said, is_refusal
from tidegate.world.protocol import World
from tidegate.world.refusals import refusal_error

if TYPE_CHECKING:
    from tidegate.knowledge.catalogue import KnownRows
    from tidegate.kube.access.context import KubeTarget
    from tidegate.model.operators import Operator
    from tidegate.sandbox.controllers.reaction import Controller
    from tidegate.sandbox.operators.given import Seat
    from tidegate.sandbox.physics.profile import Profile
    from tidegate.sandbox.scenario import Scenario
    from tidegate.sandbox.world import Sandbox

Worker = Callable[[bytes], bytes]
"""Work that is done beside the world, by name: a script, an expansion."""

CONNECTING = Ms(15 * SECOND)
WATCHING = Ms(300 * SECOND)


@asynccontextmanager
async def open_world(
    contexts: Mapping[str, str | None],
    *,
    kubeconfig: str | None = None,
    watching: Ms = WATCHING,
    workers: Mapping[str, Worker] | None = None,
) -> AsyncIterator[World]:
    """Real clusters that answer, by their names, or one clear error.

    `watching`: how long servers are asked to keep a watch open; they end it in good order then.
    """
    from tidegate.kube.world import KubeWorld

    targets = {
        name: find_target(context, kubeconfig=kubeconfig) for name, context in contexts.items()
    }
    async with KubeWorld(targets, watching=watching, workers=workers) as world:
        for name, target in targets.items():
            question = Http("/version")
            (outcome,) = await ask(Exchange(world), question, cluster=name, within=CONNECTING)
            _check_version(outcome, server=target.server, where=target.place)
        yield world


def find_target(context: str | None, *, kubeconfig: str | None = None) -> KubeTarget:
    """The cluster of a context, by default the current one, as kubectl finds it."""
    from tidegate.kube.config import load_target

    return load_target(kubeconfig=kubeconfig, context=context, environ=os.environ)


def context_names(kubeconfig: str | None) -> list[str]:
    """All contexts there are, as kubectl finds them."""
    from tidegate.kube.config import context_names

    return context_names(kubeconfig, os.environ)


def _check_version(outcome: Outcome, *, server: str, where: Place) -> None:
    """Raise what is wrong with the way to a cluster, before anything is asked of it."""
    if is_refusal(outcome) and not isinstance(outcome, NotServed):
        raise refusal_error(outcome, f"connecting to `{server}`", where=where)
    if not (isinstance(outcome, Said) and read_version(outcome.body)):
        problem = f"what answers at `{server}` is not a Kubernetes API server"
        hint = "check `server` of this cluster"
        raise ClusterError("cluster.foreign", problem, where=where, hint=hint)


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulated cluster is made of: files of the user's, and a seed and a start that win.

    `assumed`: by the names of clusters, what else is there since somebody leans on it. `expecting`:
    which end of the range of each duration counts. `still`: it is only looked at, so that nothing
    needs to live in it.
    """

    scenario: Path | None = None
    profile: Path | None = None
    operators: Path | None = None
    seed: int = 0
    start: Ms | None = None
    assumed: Mapping[str, GivenCluster] = msgspec.field(default_factory=dict)
    expecting: Expectation = Expectation.LIKELY
    still: bool = False

    @property
    def is_bare(self) -> bool:
        """Whether nothing is there but what every cluster has, and nothing happens."""
        return self.still and self.scenario is None and not self.assumed


def make_living(
    simulation: Simulation,
    workers: Mapping[str, Worker] | None = None,
    *,
    clusters: Iterable[str] = ("",),
) -> World:
    """New simulated clusters: controllers, kubelet and operators, and what each begins with."""
    if simulation.is_bare:
        return _make_bare(simulation, workers, clusters)
    from tidegate.sandbox.living import living
    from tidegate.sandbox.operators.given import at_once
    from tidegate.sandbox.world import START, Sandbox

    known, story = known_to(simulation), _story(simulation)
    givens = [story.given, *simulation.assumed.values()]
    seats = [seat for given in givens for seat in _seats(known.operators, given)]
    profile = _profile(simulation, known).with_rules((*at_once(seats), *story.behaviours))
    factor = profile.spread.factor(simulation.expecting)
    controllers = living(profile, known, factor=factor)
    sandbox = Sandbox(
        clusters,
        seed=simulation.seed or story.seed,
        faults=(*story.faults, *story.edits),
        controllers=controllers,
        workers=workers,
        start=simulation.start or story.start or START,
    )
    for name in sandbox.clusters:
        assumed = simulation.assumed.get(name, GivenCluster())
        _furnish(sandbox, name, story.given.and_more(assumed), known, controllers)
    return sandbox


def _make_bare(
    simulation: Simulation, workers: Mapping[str, Worker] | None, clusters: Iterable[str]
) -> World:
    """What keeps the promises of an API, and no more."""
    from tidegate.sandbox.first_objects import base_objects
    from tidegate.sandbox.world import START, Sandbox

    start = simulation.start or START
    bare = Sandbox(clusters, seed=simulation.seed, workers=workers, start=start)
    bare.give(base_objects())
    return bare


def _furnish(
    sandbox: Sandbox,
    name: str,
    given: GivenCluster,
    known: Knowledge,
    controllers: tuple[Controller, ...],
) -> None:
    """Put into a cluster what it begins with, and let it come to rest."""
    from tidegate.knowledge.catalogue import KnownRows
    from tidegate.sandbox.first_objects import base_objects
    from tidegate.sandbox.operators.given import arrive, together
    from tidegate.sandbox.operators.standing import named_refs, statuses

    cluster, rows, now = sandbox.clusters[name], KnownRows.of(known.rows), sandbox.now()
    sandbox.give(together(base_objects(), _bodies_given(given, known)), (name,))
    for write in statuses(given, rows, cluster.view, now):
        cluster.give(write)
    places = {seat.namespace for seat in _seats(known.operators, given)} | {*given.namespaces}
    places |= {ref.namespace for ref in named_refs(given, rows) if ref.namespace}
    arrive(cluster.view, cluster.give, controllers, namespaces=places, now=now)


def given_bodies(simulation: Simulation) -> list[dict[str, Json]]:
    """What is in a simulated cluster already, besides what every cluster has."""
    return _bodies_given(_story(simulation).given, known_to(simulation))


def _bodies_given(given: GivenCluster, known: Knowledge) -> list[dict[str, Json]]:
    from tidegate.knowledge.catalogue import KnownRows
    from tidegate.sandbox.operators.given import bodies_of, definitions_by_name, together
    from tidegate.sandbox.operators.standing import named_bodies, namespace_body

    rows = KnownRows.of(known.rows)
    return together(
        bodies_of(_seats(known.operators, given), known.rows),
        definitions_by_name(given.kinds, rows),
        map(namespace_body, given.namespaces),
        named_bodies(given, rows),
        given.objects,
    )


async def set_loose(world: World, simulation: Simulation, *, until: Ms) -> None:
    """Our kubelet, provisioner and operators at work on a cluster that has controllers of its own.

    An operator works as soon as its workload runs, be it given or rolled out.
    """
    from tidegate.sandbox.controllers.storage.volumes import provisioner
    from tidegate.sandbox.kinds import LOOKED_AT
    from tidegate.sandbox.living import inhabitants
    from tidegate.sandbox.loose import Loose
    from tidegate.world.line import Line

    known, story = known_to(simulation), _story(simulation)
    profile = _profile(simulation, known).with_rules(story.behaviours)
    controllers = (*inhabitants(profile, known, announces=True), provisioner())
    await Loose(Exchange(Line(world)), controllers, kinds=LOOKED_AT).run(until)


def known_to(simulation: Simulation | None) -> Knowledge:
    """What is known of kinds: what tidegate brings, and the user's own in a simulation.

    There, kinds that are given are served by somebody outside.
    """
    if simulation is None:
        from tidegate.knowledge.reader import builtin

        return builtin()
    from tidegate.knowledge.catalogue import KnownRows
    from tidegate.sandbox.operators.standing import served_rows

    known = written_knowledge(simulation)
    givens = (_story(simulation).given, *simulation.assumed.values())
    kinds = [kind for given in givens for kind in given.kinds]
    if not kinds:
        return known
    return known.and_more(Knowledge(rows=tuple(served_rows(kinds, KnownRows.of(known.rows)))))


def written_knowledge(simulation: Simulation) -> Knowledge:
    """What files say of kinds, without what is given or assumed."""
    from tidegate.knowledge.reader import builtin, read_knowledge

    own = simulation.operators
    if own is None:
        return builtin()
    return builtin().and_more(read_knowledge(read_users_file(own), str(own)))


def commits_of(simulation: Simulation) -> tuple[Commit, ...]:
    """What comes into the repository meanwhile, by the scenario."""
    return _story(simulation).commits


def simulated(world: World) -> Sandbox | None:
    """The simulated clusters behind the door, to be looked into; None where they are real."""
    from tidegate.sandbox.world import Sandbox

    return world if isinstance(world, Sandbox) else None


def why_unserved(world: World | None, kind: Kind, catalogue: KnownRows) -> str:
    """Why nobody serves a custom kind in a simulated cluster, and what to do about it.

    Empty where somebody does. Of a real cluster nobody can say: its operators may be anywhere.
    """
    from tidegate.sandbox.operators import presence
    from tidegate.sandbox.world import Sandbox

    row = presence.row_for(catalogue, kind)
    if not isinstance(world, Sandbox) or row is None or not may_be_custom(kind):
        return ""
    for cluster in world.clusters.values():
        if not presence.is_served(catalogue, cluster.view, kind):
            why = presence.why_unserved(catalogue, cluster.view, kind)
            given = f"; a scenario has it with `given: {{operators: [{row.operator}]}}`"
            return why + (given if row.operator else "")
    return ""


def _story(simulation: Simulation) -> Scenario:
    from tidegate.sandbox.scenario import Scenario, read_scenario

    if simulation.scenario is None:
        return Scenario()
    names = [one.name for one in written_knowledge(simulation).operators]
    text = read_users_file(simulation.scenario)
    return read_scenario(text, str(simulation.scenario), operators=names)


def _seats(operators: Iterable[Operator], given: GivenCluster) -> list[Seat]:
    """The operators that are there already, each with its namespace."""
    from tidegate.sandbox.operators.given import Seat

    known = {one.name: one for one in operators}
    return [
        Seat(known[one.name], one.namespace or known[one.name].namespace, one.definitions)
        for one in given.operators
    ]


def profile_of(simulation: Simulation | None) -> Profile:
    """How long things take, and what is assumed of programs."""
    own = simulation or Simulation()
    return _profile(own, known_to(own))


def _profile(simulation: Simulation, known: Knowledge) -> Profile:
    from tidegate.sandbox.physics.profile_file import read_profile, typical

    expecting = simulation.expecting
    shipped = typical(expecting)
    if simulation.profile is None:
        return shipped
    text, name = read_users_file(simulation.profile), str(simulation.profile)
    return read_profile(text, name, onto=shipped, operators=known.rows, expecting=expecting)


def make_sandbox(*, scenario: Path | None = None, seed: int = 0, watching: Ms = WATCHING) -> World:
    """One empty simulated cluster; a seed that is given wins over the scenario's."""
    from tidegate.sandbox.cluster import Timing
    from tidegate.sandbox.scenario import Scenario, read_scenario
    from tidegate.sandbox.world import Sandbox

    story = read_scenario(read_users_file(scenario), str(scenario)) if scenario else Scenario()
    faults = (*story.faults, *story.edits)
    return Sandbox(seed=seed or story.seed, faults=faults, timing=Timing(watching=watching))

"""What the user points at, as a graph of who needs whom.

async with open_found(pointed, target, setting) as (session, found):
    graphed = await make_graph(found.families, session)
    graphed.graph       # model.graph.Graph
    graphed.planned     # flows.planning.Planned: the plan, what was read, findings
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from tidegate.dialect.units import READERS
from tidegate.errors import PlanError
from tidegate.flows.discover import Family, Member
from tidegate.flows.planning import Planned, make_plan
from tidegate.flows.session import Session
from tidegate.flows.wiring import Simulation, known_to, profile_of
from tidegate.graph.build import build_graph
from tidegate.graph.ground import Ground
from tidegate.knowledge.naming import Naming
from tidegate.model.graph import Graph
from tidegate.model.manifest import Manifests
from tidegate.model.semantics import Semantics
from tidegate.model.unit import Unit, UnitId
from tidegate.schema.builtin import served_kinds

ENGINES = frozenset({*READERS, ("argoproj.io", "AppProject")})
"""Kinds that Argo CD and Flux bring themselves."""


@dataclass(frozen=True, slots=True)
class Graphed:
    """A graph, and the plan whose order it has.

    `circle`: why units cannot be put in order, where they cannot; the plan is then without what
    they say they depend on, and the graph has all of it.
    """

    graph: Graph
    planned: Planned
    circle: PlanError | None = None


async def make_graph(
    families: Sequence[Family], session: Session, rules: Semantics | None = None
) -> Graphed:
    """The graph of these families. Without `rules` each unit is run by those of its own dialect."""
    planned, circle = await _plan(families, session, rules)
    members = [member for family in families for member in family.members]
    ground = ground_of(session.target.simulation)
    unread = [one.manifests.unit.id for one in planned.read if not one.is_whole]
    graph = build_graph(_wanted(members, planned), planned.plan, ground, unread=unread)
    return Graphed(graph, planned, circle)


async def _plan(
    families: Sequence[Family], session: Session, rules: Semantics | None
) -> tuple[Planned, PlanError | None]:
    try:
        return await make_plan(families, session, rules=rules), None
    except PlanError as error:
        if error.code != "plan.cycle":
            raise
        loose = [replace(one, members=tuple(map(_loosened, one.members))) for one in families]
        return await make_plan(loose, session, rules=rules), error


def _loosened(member: Member) -> Member:
    return replace(member, unit=msgspec.structs.replace(member.unit, dependencies=()))


def _wanted(members: Sequence[Member], planned: Planned) -> Iterator[Manifests]:
    """What each unit deploys, with all that it depends on; of some that is not known."""
    read = {one.manifests.unit.id: one.manifests for one in planned.read}
    told: set[UnitId] = set()
    for member in members:
        unit = member.unit
        if unit.id in told:
            continue
        told.add(unit.id)
        known = read.get(unit.id)
        if known is None:
            yield Manifests(unit=unit, is_known=False)
        else:
            yield msgspec.structs.replace(known, unit=_as_declared(known.unit, unit))


def _as_declared(planned: Unit, declared: Unit) -> Unit:
    return msgspec.structs.replace(planned, dependencies=declared.dependencies)


def ground_of(simulation: Simulation | None) -> Ground:
    """What is known before anything of a repository is."""
    profile = profile_of(simulation)
    return Ground(
        naming=Naming.of(known_to(simulation)),
        served={(one.kind.group, one.kind.name): one.namespaced for one in served_kinds()},
        engines=ENGINES,
        telemetry=profile.telemetry,
        polls=profile.polls,
    )

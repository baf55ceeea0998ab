"""What the user points at, as a graph of who needs whom.

async with open_found(pointed, target, setting) as (session, found):
    graphed = await make_graph(found.families, session)
    graphed.graph       # model.graph.Graph
    graphed.planned     # flows.planning.Planned: the plan, what was read, findings
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

import msgspec
from msgspec.structs import replace

from tidegate.dialect.units import READERS
from tidegate.errors import PlanError, WordsError, foreign
from tidegate.flows.discover import Family, Member
from tidegate.flows.entering import Found
from tidegate.flows.planning import Planned, make_plan
from tidegate.flows.session import Session
from tidegate.flows.wiring import Simulation, known_to, profile_of
from tidegate.graph.build import build_graph
from tidegate.graph.circles import find_circles
from tidegate.graph.ground import GIVEN, GraphGround
from tidegate.graph.missing import missing
from tidegate.graph.paths import Pause, Took, critical_path, unit_spans, why
from tidegate.graph.reach import NodeStanding, StepReach, standing
from tidegate.knowledge.naming import Naming
from tidegate.model.graph import CriticalStep, Graph, GraphNode, NodeCheck, NodeKind, Tie
from tidegate.model.manifest import Manifests
from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.model.operators import Effect
from tidegate.model.semantics import Semantics
from tidegate.model.unit import Unit, UnitId
from tidegate.model.verdict import Health
from tidegate.plan.build import plan_unit
from tidegate.report.graph.picture import GraphStory
from tidegate.schema.builtin import served_kinds

ENGINES = frozenset({*READERS, ("argoproj.io", "AppProject")})
"""Kinds that Argo CD and Flux bring themselves."""


UNWEIGHED = Ms(0)
MOST_NAMED = 4


class GraphQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants to know of a graph: all of it, or some units, or one of two ways."""

    units: tuple[str, ...] = ()
    critical: bool = False
    why: tuple[str, str] | None = None


class Graphed(msgspec.Struct, frozen=True):
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
    planned, circle = await plan_families(families, session, rules)
    members = [member for family in families for member in family.members]
    units = [one.unit for one in members]
    ground = ground_of(session.target.simulation, homes_of(units))
    unread = [one.manifests.unit.id for one in planned.read if not one.is_whole]
    craft, now = session.craft, session.world.now()

    def check(unit: Unit, body: dict[str, Json]) -> NodeCheck:
        one = plan_unit(unit)
        if craft.script(one, body, now) is not None:
            return NodeCheck()
        verdict = craft.judge(one, body, now)
        checked = verdict.checked or unit.policy.semantics.falls_back
        return NodeCheck(checked, verdict.health is Health.HEALTHY)

    wanted = _wanted(members, planned)
    owns = {one.entry: one.own.body for one in families if one.own is not None}
    graph = build_graph(wanted, planned.plan, ground, unread=unread, check=check, owns=owns)
    return Graphed(graph, planned, circle)


def homes_of(units: Iterable[Unit]) -> Iterator[str]:
    """The namespaces in which the engines look for units that no other unit of theirs brings."""
    return (
        one.id.namespace
        for one in units
        if one.id.kind and (one.parent is None or not one.parent.kind)
    )


async def plan_families(
    families: Sequence[Family], session: Session, rules: Semantics | None
) -> tuple[Planned, PlanError | None]:
    """A plan, and why units wait for each other, where they do; the plan is then without that."""
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


def ground_of(simulation: Simulation | None, homes: Iterable[str] = ()) -> GraphGround:
    """What is known before anything of a repository is; `homes` are namespaces of the engines."""
    profile = profile_of(simulation)
    namespaces = (("", "Namespace", "", home) for home in homes)
    return GraphGround(
        naming=Naming.of(known_to(simulation)),
        served={(one.kind.group, one.kind.name): one.namespaced for one in served_kinds()},
        given=GIVEN | frozenset(namespaces),
        engines=ENGINES,
        telemetry=profile.telemetry,
        polls=profile.polls,
        certifies=profile.certifies,
    )


async def graph_stories(
    session: Session, found: Found, question: GraphQuestion
) -> tuple[Found, list[tuple[Graphed, GraphStory]]]:
    """What is to be told of each alternative."""
    told = []
    for one in found.apart():
        graphed = await make_graph(one.families, session)
        told.append((graphed, tell_graph(graphed, question, session.target.simulation)))
    return found, told


def tell_graph(
    graphed: Graphed, question: GraphQuestion, simulation: Simulation | None
) -> GraphStory:
    """The graph with everything that was found out about it."""
    graph = graphed.graph
    path, waits = None, None
    if question.critical:
        path = tuple(_critical(graphed, simulation))
    if question.why is not None:
        one, other = (find_node(graph, name) for name in question.why)
        waits = tuple(why(graph, one, other))
    return GraphStory(
        graph=graph,
        inverted=find_inverted(graph),
        circles=find_circles(graph),
        lacks=missing(graph),
        path=path,
        waits=waits,
        units=_chosen(graph, question.units) if question.units else None,
    )


def find_inverted(graph: Graph) -> frozenset[int]:
    """The places of edges whose consumer cannot do without, and comes before all who bring it."""
    reach = StepReach(graph)
    wants: dict[int, list[int]] = {}
    for at, edge in enumerate(graph.edges):
        if not (edge.optional or edge.absent or edge.effect is Effect.NOTHING):
            wants.setdefault(edge.want, []).append(at)

    def is_late(at: int) -> bool:
        edge = graph.edges[at]
        return standing(graph, reach, edge.before, edge.after) is NodeStanding.BEHIND

    return frozenset(at for mine in wants.values() if all(map(is_late, mine)) for at in mine)


def _critical(graphed: Graphed, simulation: Simulation | None) -> list[CriticalStep]:
    took, pause = _times(graphed, simulation)
    return critical_path(graphed.graph, took, pause)


def spans_of(graphed: Graphed, simulation: Simulation | None) -> dict[UnitId, Ms]:
    """By unit, how long it takes by itself."""
    took, pause = _times(graphed, simulation)
    return unit_spans(graphed.graph, took, pause)


def _times(graphed: Graphed, simulation: Simulation | None) -> tuple[Took, Pause]:
    """By what rows and the profile say of how long things take."""
    naming, durations = Naming.of(known_to(simulation)), profile_of(simulation).durations
    pauses = {one.id: one.policy.semantics.pause for one in graphed.planned.plan.units}

    def took(node: GraphNode) -> Ms:
        if node.ref is None:
            return UNWEIGHED
        pods = naming.pods.get((node.ref.kind.group, node.ref.kind.name))
        if pods is not None and not pods.later:
            end = durations.run if pods.is_task else durations.ready
            return Ms(durations.pull + durations.start + end)
        row = naming.rows.row_of(node.ref.kind)
        spans = (stage.span_for(node.ref) for stage in row.stages) if row is not None else ()
        return Ms(sum(spans))

    graph = graphed.graph
    return took, lambda step: pauses[graph.steps[step].unit]


def find_node(graph: Graph, text: str) -> int:
    """A node by what somebody calls it. Raises where there is none, or several."""
    wanted = text.strip()
    found = [one for one in graph.nodes if wanted in _names(one)]
    units = [one for one in found if one.kind is NodeKind.UNIT]
    best = units if len(units) == 1 else found
    if len(best) == 1:
        return best[0].number
    if not best:
        known = {name for one in graph.nodes for name in _names(one)}
        close = get_close_matches(wanted, known, n=1)
        hint = f"did you mean `{close[0]}`?" if close else "write a unit, or `Kind/namespace/name`"
        raise WordsError("words.node", f"nothing here is called `{foreign(wanted)}`", hint=hint)
    names = ", ".join(f"`{one.name}`" for one in best[:MOST_NAMED])
    problem = f"several are called `{foreign(wanted)}`: {names}"
    raise WordsError("words.node", problem, hint="write `Kind/namespace/name`")


def _names(node: GraphNode) -> tuple[str, ...]:
    """What a node may be called: `Job/shop/migrate`, `Job/migrate`, `migrate`."""
    if node.kind is NodeKind.UNIT and node.unit is not None:
        return (str(node.unit), node.unit.name)
    if node.ref is None:
        return (node.name,)
    kind, namespace, name = node.ref.kind.name, node.ref.namespace, node.ref.name
    whole = (f"{kind}/{namespace}/{name}",) if namespace else ()
    return (*whole, f"{kind}/{name}", name, node.name)


def _chosen(graph: Graph, names: Sequence[str]) -> frozenset[UnitId]:
    """Units by their names, and all that they bring."""
    chosen = {graph.nodes[find_node(graph, name)].unit for name in names}
    children: dict[UnitId | None, list[UnitId]] = {}
    for edge in graph.edges:
        before, after = graph.nodes[edge.before], graph.nodes[edge.after]
        if edge.tie is Tie.PARENT and after.unit is not None:
            children.setdefault(before.unit, []).append(after.unit)
    pending = list(chosen)
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in chosen:
                chosen.add(child)
                pending.append(child)
    return frozenset(one for one in chosen if one is not None)

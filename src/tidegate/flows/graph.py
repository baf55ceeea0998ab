"""The dependency graph of unit trees.

async with open_workspace(request, targets, render_settings) as (session, workspace):
    result = await make_graph(workspace.unit_trees, session)
    result.graph         # model.graph.Graph
    result.plan_result   # planning.plan.PlanResult: the plan, its inputs and findings
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

import msgspec
from msgspec.structs import replace

from tidegate.dialect.units import READERS
from tidegate.errors import PlanError, UsageError, sanitize
from tidegate.flows.discover import RenderedUnit, UnitTree
from tidegate.flows.entering import Workspace
from tidegate.flows.planning import PlanResult, make_plan
from tidegate.flows.session import Session
from tidegate.flows.wiring import SimulationConfig, load_knowledge, load_profile
from tidegate.graph.build import build_graph
from tidegate.graph.circles import find_cycles
from tidegate.graph.ground import PREINSTALLED, GraphInputs
from tidegate.graph.missing import find_unmet_dependencies
from tidegate.graph.paths import (
    DelayLookup,
    DurationLookup,
    explain_wait,
)
from tidegate.graph.paths import find_critical_path as find_path
from tidegate.graph.paths import unit_durations as durations_of_units
from tidegate.graph.reach import RelativePosition, StepReachability, relative_position
from tidegate.knowledge.naming import Naming
from tidegate.model.graph import CriticalStep, EdgeKind, Graph, GraphNode, HealthCoverage, NodeKind
from tidegate.model.manifest import Manifests
from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.model.operators import Effect
from tidegate.model.semantics import Semantics
from tidegate.model.unit import Unit, UnitId
from tidegate.model.verdict import Health
from tidegate.plan.build import plan_unit
from tidegate.report.graph.picture import GraphView
from tidegate.schema.builtin import served_kinds

ENGINE_KINDS = frozenset({*READERS, ("argoproj.io", "AppProject")})
"""Kinds that Argo CD and Flux define themselves."""


NO_DURATION = Ms(0)
MAX_LISTED = 4


class GraphQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What to show of a graph: all of it, some units, the critical path, or why a node waits."""

    units: tuple[str, ...] = ()
    critical: bool = False
    why: tuple[str, str] | None = None


class GraphResult(msgspec.Struct, frozen=True):
    """A dependency graph, and the plan whose order it has."""

    graph: Graph
    plan_result: PlanResult
    cycle: PlanError | None = None
    """Why units cannot be ordered; then only the graph has the declared dependencies."""


async def make_graph(
    unit_trees: Sequence[UnitTree], session: Session, semantics: Semantics | None = None
) -> GraphResult:
    """Return the graph of these unit trees.

    Without `semantics` each unit runs with those of its dialect.
    """
    plan_result, cycle = await plan_unit_trees(unit_trees, session, semantics)
    members = [member for unit_tree in unit_trees for member in unit_tree.members]
    units = [member.unit for member in members]
    inputs = graph_inputs(session.targets.simulation, root_namespaces(units))
    incomplete = [
        unit_manifests.manifests.unit.id
        for unit_manifests in plan_result.unit_manifests
        if not unit_manifests.is_complete
    ]
    evaluator, now = session.evaluator, session.world.now()

    def check(unit: Unit, body: dict[str, Json]) -> HealthCoverage:
        planned_unit = plan_unit(unit)
        if evaluator.health_script(planned_unit, body, now) is not None:
            return HealthCoverage()
        verdict = evaluator.evaluate_health(planned_unit, body, now)
        checked = verdict.is_checked or unit.policy.semantics.falls_back
        return HealthCoverage(checked, verdict.health is Health.HEALTHY)

    manifests = _declared_manifests(members, plan_result)
    unit_resources = {
        unit_tree.root_id: unit_tree.root_document.body
        for unit_tree in unit_trees
        if unit_tree.root_document is not None
    }
    graph = build_graph(
        manifests,
        plan_result.plan,
        inputs,
        incomplete_units=incomplete,
        lookup_coverage=check,
        unit_resources=unit_resources,
    )
    return GraphResult(graph, plan_result, cycle)


def root_namespaces(units: Iterable[Unit]) -> Iterator[str]:
    """Yield the namespaces of root units, in which Argo CD or Flux look for them."""
    return (
        unit.id.namespace
        for unit in units
        if unit.id.kind and (unit.parent is None or not unit.parent.kind)
    )


async def plan_unit_trees(
    unit_trees: Sequence[UnitTree], session: Session, semantics: Semantics | None
) -> tuple[PlanResult, PlanError | None]:
    """Return a plan, and the error about a dependency cycle, if any.

    With a cycle, the plan is made without declared dependencies.
    """
    try:
        return await make_plan(unit_trees, session, semantics=semantics), None
    except PlanError as error:
        if error.code != "plan.cycle":
            raise
        independent = [
            replace(unit_tree, members=tuple(map(_without_dependencies, unit_tree.members)))
            for unit_tree in unit_trees
        ]
        return await make_plan(independent, session, semantics=semantics), error


def _without_dependencies(member: RenderedUnit) -> RenderedUnit:
    return replace(member, unit=msgspec.structs.replace(member.unit, dependencies=()))


def _declared_manifests(
    members: Sequence[RenderedUnit], plan_result: PlanResult
) -> Iterator[Manifests]:
    """Yield the manifests of each unit with all declared dependencies; empty where not known."""
    by_unit = {
        unit_manifests.manifests.unit.id: unit_manifests.manifests
        for unit_manifests in plan_result.unit_manifests
    }
    seen: set[UnitId] = set()
    for member in members:
        unit = member.unit
        if unit.id in seen:
            continue
        seen.add(unit.id)
        manifests = by_unit.get(unit.id)
        if manifests is None:
            yield Manifests(unit=unit, has_known_objects=False)
        else:
            yield msgspec.structs.replace(
                manifests, unit=_with_declared_dependencies(manifests.unit, unit)
            )


def _with_declared_dependencies(planned: Unit, declared: Unit) -> Unit:
    return msgspec.structs.replace(planned, dependencies=declared.dependencies)


def graph_inputs(
    simulation: SimulationConfig | None, engine_namespaces: Iterable[str] = ()
) -> GraphInputs:
    """Return the facts that are known before a repository is read.

    `engine_namespaces`: the namespaces of Argo CD and Flux.
    """
    profile = load_profile(simulation)
    identities = (("", "Namespace", "", namespace) for namespace in engine_namespaces)
    return GraphInputs(
        naming=Naming.of(load_knowledge(simulation)),
        served_kinds={
            (served.kind.group, served.kind.name): served.namespaced for served in served_kinds()
        },
        preinstalled=PREINSTALLED | frozenset(identities),
        engine_kinds=ENGINE_KINDS,
        telemetry_hosts=profile.telemetry,
        polling_commands=profile.polls,
        certificate_commands=profile.certifies,
    )


async def graph_views(
    session: Session, workspace: Workspace, query: GraphQuery
) -> tuple[Workspace, list[tuple[GraphResult, GraphView]]]:
    """Return the graph and its view for each alternative of the workspace."""
    views = []
    for alternative in workspace.split_alternatives():
        result = await make_graph(alternative.unit_trees, session)
        views.append((result, build_graph_view(result, query, session.targets.simulation)))
    return workspace, views


def build_graph_view(
    result: GraphResult, query: GraphQuery, simulation: SimulationConfig | None
) -> GraphView:
    """Return the graph with everything that was derived from it."""
    graph = result.graph
    path, waits = None, None
    if query.critical:
        path = tuple(_find_critical_path(result, simulation))
    if query.why is not None:
        one, other = (find_node(graph, name) for name in query.why)
        waits = tuple(explain_wait(graph, one, other))
    return GraphView(
        graph=graph,
        inverted_edges=find_inverted_edges(graph),
        cycles=find_cycles(graph),
        missing=find_unmet_dependencies(graph),
        critical_path=path,
        waits=waits,
        selected_units=_selected_units(graph, query.units) if query.units else None,
    )


def find_inverted_edges(graph: Graph) -> frozenset[int]:
    """Return the indexes of required edges whose consumer comes before all providers."""
    step_reach = StepReachability(graph)
    by_requirement: dict[int, list[int]] = {}
    for index, edge in enumerate(graph.edges):
        if not (edge.is_optional or edge.must_be_absent or edge.effect is Effect.NONE):
            by_requirement.setdefault(edge.alternative, []).append(index)

    def is_inverted(index: int) -> bool:
        edge = graph.edges[index]
        return (
            relative_position(graph, step_reach, edge.before, edge.after) is RelativePosition.AFTER
        )

    return frozenset(
        index
        for indexes in by_requirement.values()
        if all(map(is_inverted, indexes))
        for index in indexes
    )


def _find_critical_path(
    result: GraphResult, simulation: SimulationConfig | None
) -> list[CriticalStep]:
    duration, pause = _estimate_times(result, simulation)
    return find_path(result.graph, duration, pause)


def unit_durations(result: GraphResult, simulation: SimulationConfig | None) -> dict[UnitId, Ms]:
    """Return how long each unit takes by itself."""
    duration, pause = _estimate_times(result, simulation)
    return durations_of_units(result.graph, duration, pause)


def _estimate_times(
    result: GraphResult, simulation: SimulationConfig | None
) -> tuple[DurationLookup, DelayLookup]:
    """Return functions for the duration of a node and the pause after a step.

    Durations come from the catalog rows and the profile.
    """
    naming, durations = Naming.of(load_knowledge(simulation)), load_profile(simulation).durations
    pauses = {unit.id: unit.policy.semantics.pause for unit in result.plan_result.plan.units}

    def duration(node: GraphNode) -> Ms:
        if node.ref is None:
            return NO_DURATION
        pods = naming.pods.get((node.ref.kind.group, node.ref.kind.name))
        if pods is not None and not pods.later:
            end = durations.run if pods.is_task else durations.ready
            return Ms(durations.pull + durations.start + end)
        row = naming.rows.row_of(node.ref.kind)
        spans = (stage.duration_for(node.ref) for stage in row.stages) if row is not None else ()
        return Ms(sum(spans))

    graph = result.graph
    return duration, lambda step: pauses[graph.steps[step].unit]


def find_node(graph: Graph, name: str) -> int:
    """Return the number of the node with this name. Raises UsageError for none or several."""
    query = name.strip()
    matches = [node for node in graph.nodes if query in _node_names(node)]
    units = [node for node in matches if node.kind is NodeKind.UNIT]
    best = units if len(units) == 1 else matches
    if len(best) == 1:
        return best[0].number
    if not best:
        known_names = {node_name for node in graph.nodes for node_name in _node_names(node)}
        close = get_close_matches(query, known_names, n=1)
        hint = f"did you mean `{close[0]}`?" if close else "write a unit, or `Kind/namespace/name`"
        raise UsageError("words.node", f"nothing here is called `{sanitize(query)}`", hint=hint)
    names = ", ".join(f"`{node.name}`" for node in best[:MAX_LISTED])
    problem = f"several are called `{sanitize(query)}`: {names}"
    raise UsageError("words.node", problem, hint="write `Kind/namespace/name`")


def _node_names(node: GraphNode) -> tuple[str, ...]:
    """Return the names of a node: `Job/shop/migrate`, `Job/migrate`, `migrate`."""
    if node.kind is NodeKind.UNIT and node.unit is not None:
        return (str(node.unit), node.unit.name)
    if node.ref is None:
        return (node.name,)
    kind, namespace, name = node.ref.kind.name, node.ref.namespace, node.ref.name
    qualified = (f"{kind}/{namespace}/{name}",) if namespace else ()
    return (*qualified, f"{kind}/{name}", name, node.name)


def _selected_units(graph: Graph, names: Sequence[str]) -> frozenset[UnitId]:
    """Return the named units with all their descendants."""
    selected = {graph.nodes[find_node(graph, name)].unit for name in names}
    children: dict[UnitId | None, list[UnitId]] = {}
    for edge in graph.edges:
        before, after = graph.nodes[edge.before], graph.nodes[edge.after]
        if edge.kind is EdgeKind.PARENT and after.unit is not None:
            children.setdefault(before.unit, []).append(after.unit)
    pending = list(selected)
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in selected:
                selected.add(child)
                pending.append(child)
    return frozenset(unit_id for unit_id in selected if unit_id is not None)

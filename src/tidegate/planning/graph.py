"""The dependency graph of unit trees.

async with open_workspace(request, targets, render_settings) as (session, workspace):
    result = await make_graph(workspace.unit_trees, session)
    result.graph         # model.graph.Graph
    result.plan_result   # planning.plan.PlanResult: the plan, its inputs and findings
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from tidegate.clusters.sandboxes import SimulationConfig, load_knowledge, load_profile
from tidegate.clusters.session import Session
from tidegate.dialect.units import READERS
from tidegate.errors import PlanError
from tidegate.graph.build import build_graph
from tidegate.graph.inputs import PREINSTALLED, GraphInputs
from tidegate.graph.paths import DelayLookup, DurationLookup
from tidegate.graph.paths import unit_durations as durations_of_units
from tidegate.health.judge import KSTATUS
from tidegate.knowledge.catalog import KindCatalog
from tidegate.knowledge.distributions import Distribution, find_distributions
from tidegate.knowledge.named_objects import ReferenceFinder
from tidegate.model.k8s.json_fields import object_kind
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.k8s.verdict import Health
from tidegate.model.plans.graph import Graph, GraphNode, HealthCoverage
from tidegate.model.plans.manifest import Manifests
from tidegate.model.times import Ms
from tidegate.model.units.semantics import Semantics
from tidegate.model.units.unit import Unit, UnitId
from tidegate.plan.build.build import plan_unit
from tidegate.planning.manifests import UnitManifests
from tidegate.planning.plan import PlanResult
from tidegate.planning.preparation import prepare_plan
from tidegate.schema.builtin import served_kinds
from tidegate.schema.custom_kinds import builtin_groups
from tidegate.workspace.discovery.unit_tree import RenderedUnit, UnitTree, root_bodies

ENGINE_KINDS = frozenset({*READERS, ("argoproj.io", "AppProject")})
"""Kinds that Argo CD and Flux define themselves."""
NO_DURATION = Ms(0)


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
    inputs = msgspec.structs.replace(
        inputs, distributions=repository_distributions(plan_result.unit_manifests)
    )
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
        uses_kstatus = unit.policy.rules == KSTATUS
        is_awaited = not uses_kstatus or is_awaited_by_kstatus(body, evaluator.rules.catalog)
        falls_back = unit.policy.semantics.uses_generic_health and is_awaited
        checked = verdict.is_checked or falls_back
        return HealthCoverage(checked, verdict.health is Health.HEALTHY)

    manifests = _declared_manifests(members, plan_result)
    graph = build_graph(
        manifests,
        plan_result.plan,
        inputs,
        incomplete_units=incomplete,
        lookup_coverage=check,
        unit_resources=root_bodies(unit_trees),
    )
    return GraphResult(graph, plan_result, cycle)


def is_awaited_by_kstatus(body: JsonObject, catalog: KindCatalog) -> bool:
    """Return whether kstatus waits for an object of a kind without a rule, as far as is known."""
    kind = object_kind(body)
    row = catalog.find_row(kind)
    return kind.group not in builtin_groups() if row is None else row.is_ready_in_kstatus


def repository_distributions(
    unit_manifests: Iterable[UnitManifests],
) -> tuple[Distribution, ...]:
    """Return the distributions of Kubernetes that the objects of these units show."""
    return find_distributions(
        document.body for manifests in unit_manifests for document in manifests.rendered.documents
    )


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
        return await prepare_plan(unit_trees, session, semantics=semantics), None
    except PlanError as error:
        if error.code != "plan.cycle":
            raise
        independent = [unit_tree.map_members(_without_dependencies) for unit_tree in unit_trees]
        return await prepare_plan(independent, session, semantics=semantics), error


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
        references=ReferenceFinder.from_knowledge(load_knowledge(simulation)),
        served_kinds={
            (served.kind.group, served.kind.name): served.namespaced for served in served_kinds()
        },
        preinstalled=PREINSTALLED | frozenset(identities),
        engine_kinds=ENGINE_KINDS,
        telemetry_hosts=profile.telemetry,
        polling_commands=profile.polls,
        certificate_commands=profile.certifies,
    )


def unit_durations(result: GraphResult, simulation: SimulationConfig | None) -> dict[UnitId, Ms]:
    """Return how long each unit takes by itself."""
    duration, pause = estimate_times(result, simulation)
    return durations_of_units(result.graph, duration, pause)


def estimate_times(
    result: GraphResult, simulation: SimulationConfig | None
) -> tuple[DurationLookup, DelayLookup]:
    """Return functions for the duration of a node and the pause after a step.

    Durations come from the catalog rows and the profile.
    """
    naming, durations = (
        ReferenceFinder.from_knowledge(load_knowledge(simulation)),
        load_profile(simulation).durations,
    )
    pauses = {unit.id: unit.policy.semantics.pause for unit in result.plan_result.plan.units}

    def duration(node: GraphNode) -> Ms:
        if node.ref is None:
            return NO_DURATION
        pods = naming.pods.get((node.ref.kind.group, node.ref.kind.name))
        if pods is not None and not pods.later:
            end = durations.run if pods.is_task else durations.ready
            return Ms(durations.pull + durations.start + end)
        row = naming.rows.find_row(node.ref.kind)
        spans = (stage.duration_for(node.ref) for stage in row.stages) if row is not None else ()
        return Ms(sum(spans))

    graph = result.graph
    return duration, lambda step: pauses[graph.steps[step].unit]

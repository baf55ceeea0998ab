"""Context of the lint rules, built from the workspace and its plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace as replace_struct

from tidegate.clusters.session import Session
from tidegate.documents import Document
from tidegate.errors import Location
from tidegate.graph.milestones import find_ready_without_status
from tidegate.graph.missing import find_unmet_dependencies
from tidegate.graph.reachability import StepReachability
from tidegate.health.judge import ARGO
from tidegate.knowledge.distributions import Distribution, find_distributions
from tidegate.lint.context import HasCheck, Identity, LintContext, LintObject, OtherTrees
from tidegate.lint.order import StepOrder
from tidegate.linting.creating_files import CreatingFiles
from tidegate.linting.lookup import GraphReachability
from tidegate.linting.repository_files import RepositoryFiles
from tidegate.model.config import ControllerSetting
from tidegate.model.k8s.json_fields import get_text, object_kind, object_ref
from tidegate.model.k8s.kinds import NAMESPACE
from tidegate.model.k8s.objects import JsonObject, Ref, versionless_key
from tidegate.model.plans.graph import Graph, GraphNode, UnmetDependency
from tidegate.model.plans.manifest import Manifest
from tidegate.model.plans.missing_dependency import (
    DependencyType,
    MissingDependency,
    describe_missing,
)
from tidegate.model.times import Ms
from tidegate.model.units.source import ChartSource, GitSource, OciSource
from tidegate.model.units.unit import Unit, UnitId
from tidegate.model.views.lint import AssumedDependency, UncheckedInput
from tidegate.planning.graph import GraphResult, root_namespaces, unit_durations
from tidegate.planning.manifests import UnitManifests
from tidegate.planning.provided import ProvidedObjects, operator_products
from tidegate.workspace.discovery.scan import RepositoryScan
from tidegate.workspace.selection import unit_resources
from tidegate.workspace.workspace import Workspace

UNKNOWN_UNIT_CODES = frozenset(
    {"appset.unavailable", "appset.unknown", "appset.no-results", "appset.empty", "appset.clusters"}
)
"""Codes of findings about ApplicationSets whose Applications are not known."""
HEALTH_SETTING_PREFIX = "resource.customizations.health."


class LoadedContext(msgspec.Struct, frozen=True):
    """A lint context with its size and its unknown inputs."""

    context: LintContext
    unit_count: int
    object_count: int
    unknown_inputs: tuple[UncheckedInput, ...] = ()


def build_context(
    workspace: Workspace,
    session: Session,
    files: RepositoryFiles,
    graph_result: GraphResult | None,
    unit_manifests: Iterable[UnitManifests],
    repository: Workspace,
    *,
    empty_cluster: bool = False,
) -> LoadedContext:
    """Build the lint context of a workspace.

    `repository`: the workspace itself, or the one that it is an alternative of.
    """
    unit_manifests = tuple(unit_manifests)
    has_check = _health_check_lookup(session, workspace.controller_settings)
    objects = tuple(obj for rendered in unit_manifests for obj in _lint_objects(rendered))
    graph = _with_health_checks(graph_result.graph, objects, has_check) if graph_result else Graph()
    missing = find_unmet_dependencies(graph)
    context = LintContext(
        objects=objects,
        units=_collect_units(workspace, unit_manifests),
        order=StepOrder(graph_result.plan_result.plan) if graph_result else StepOrder(),
        graph=graph,
        reachability=GraphReachability.from_graph(graph),
        strict_reachability=GraphReachability.from_graph(graph, optimistic=False)
        if find_ready_without_status(graph, StepReachability(graph))
        else None,
        catalog=session.evaluator.rules.catalog,
        has_check=has_check,
        settings=workspace.controller_settings,
        unit_resources=unit_resources(workspace.unit_trees),
        overlay_targets=files.overlay_targets,
        missing_entries=files.missing_entries,
        git_ignored_files=files.git_ignored,
        sops_configs=files.sops_configs,
        encrypted_files=files.encrypted,
        value_files=files.values,
        octals=files.octals,
        helmfile_charts=files.helmfile_charts,
        applying_scripts=files.applying_scripts,
        documents={
            rendered.manifests.unit.id: rendered.rendered.documents for rendered in unit_manifests
        },
        encrypted_objects=frozenset(
            lint_object.identity for lint_object in objects if lint_object.manifest.hidden_fields
        ),
        files=files.names,
        complete_units=frozenset(
            unit.manifests.unit.id for unit in unit_manifests if unit.rendered.has_known_names
        ),
        unknown_sources=_unknown_sources(workspace, unit_manifests),
        bands=files.bands,
        empty_cluster=empty_cluster,
        durations=_unit_durations(graph_result, session),
        missing=missing,
        has_unread_units=any(
            finding.code in {"units.template", *UNKNOWN_UNIT_CODES}
            for finding in workspace.findings
        ),
        partial_reason=_partial_reason(repository),
        other_trees=_other_trees(workspace, repository, session),
        find_creating_file=_creating_files(workspace.scan, unit_manifests, missing).find,
        provided=frozenset(_provided_objects(unit_manifests, session)),
    )
    return LoadedContext(
        context, len(workspace.members), len(objects), tuple(_unknown_inputs(unit_manifests))
    )


def _partial_reason(workspace: Workspace) -> str:
    """Return why not all units of a repository are known, or an empty text."""
    if not workspace.scope.is_whole:
        return "only a part of the repository was read"
    if any(finding.code in UNKNOWN_UNIT_CODES for finding in workspace.findings):
        return "the Applications of some ApplicationSets are not known"
    return ""


def _other_trees(workspace: Workspace, repository: Workspace, session: Session) -> OtherTrees:
    """Return what is known about the alternatives to the units of a workspace."""
    catalog = session.evaluator.rules.catalog
    objects: set[tuple[str, str, str, str]] = set()
    incomplete: list[Unit] = []
    for unit_tree in repository.unit_trees:
        if any(unit_tree is linted for linted in workspace.unit_trees):
            continue
        for member in unit_tree.members:
            namespace = member.unit.destination.namespace
            if not member.has_known_names:
                incomplete.append(member.unit)
            if member.unit.policy.create_namespace:
                objects.add(versionless_key(Ref(NAMESPACE, "", namespace)))
            for body in (document.body for document in member.documents):
                ref = object_ref(body)
                refs = (ref, *operator_products(ref, body, catalog))
                objects |= {versionless_key(item) for item in refs}
                objects |= {
                    versionless_key(replace_struct(item, namespace=namespace))
                    for item in refs
                    if not item.namespace
                }
    return OtherTrees(frozenset(objects), tuple(incomplete))


def _creating_files(
    scan: RepositoryScan,
    unit_manifests: Iterable[UnitManifests],
    missing: Iterable[UnmetDependency],
) -> CreatingFiles:
    deployed = {
        document.location.name
        for rendered in unit_manifests
        for document in rendered.rendered.documents
    }
    return CreatingFiles(scan, deployed, [unmet.ref for unmet in missing if unmet.ref is not None])


def _unknown_sources(
    workspace: Workspace, unit_manifests: Iterable[UnitManifests]
) -> dict[UnitId, frozenset[str]]:
    """Return the names in the addresses of unknown charts, repositories and bases, by unit."""
    by_unit = {rendered.manifests.unit.id: rendered for rendered in unit_manifests}
    unknown: dict[UnitId, frozenset[str]] = {}
    for member in workspace.members:
        rendered = by_unit.get(member.unit.id)
        if rendered is None:
            names = frozenset(_source_names(member.unit))
        else:
            missing_inputs = rendered.rendered.missing_inputs
            names = frozenset(name for item in missing_inputs for name in _names_in(item.source))
        if names:
            unknown[member.unit.id] = names
    return unknown


def _source_names(unit: Unit) -> Iterator[str]:
    """Yield the charts of a unit, or the names of its repositories, directories and artifacts."""
    for source, path in ((item.source, item.path) for item in unit.sources):
        if isinstance(source, ChartSource | OciSource):
            address = source.chart if isinstance(source, ChartSource) else source.url
            yield address.rstrip("/").rpartition("/")[2]
        elif isinstance(source, GitSource):
            owner_and_name = source.url.rstrip("/").removesuffix(".git").split("/")[-2:]
            yield from (*owner_and_name, *path.split("/"))


def _names_in(source: str) -> Iterator[str]:
    """Yield a chart, or the names in the address of a base after its host and its owner."""
    address = source.partition("?")[0]
    _, separator, path = address.partition("://")
    parts = path.split("/")[2:] if separator else [address.rpartition("/")[2]]
    for part in parts:
        yield part.removesuffix(".git").removesuffix(".yaml").removesuffix(".yml")


def _unit_durations(graph_result: GraphResult | None, session: Session) -> dict[UnitId, Ms]:
    """Return the durations of units, only if some unit has sync windows."""
    if graph_result is None or not any(
        planned_unit.policy.windows for planned_unit in graph_result.plan_result.plan.units
    ):
        return {}
    return unit_durations(graph_result, session.targets.simulation)


def _provided_objects(
    unit_manifests: Iterable[UnitManifests], session: Session
) -> Iterator[Identity]:
    """Yield all objects of the units and the objects that operators create, by cluster."""
    catalog = session.evaluator.rules.catalog
    for rendered in unit_manifests:
        provided = ProvidedObjects.from_manifests(rendered.manifests.manifests, catalog, ())
        cluster = rendered.manifests.unit.destination.cluster
        yield from ((cluster, *object_id) for object_id in provided.identities)


def assumed_dependencies(
    dependencies: Iterable[MissingDependency], context: LintContext
) -> Iterator[AssumedDependency]:
    """Yield the missing dependencies that no incomplete unit may provide; trust roots are marked.

    The namespace of a controller is not included, because it exists with the controller.
    """
    controller_namespaces = {
        Ref(NAMESPACE, "", namespace) for namespace in root_namespaces(context.units.values())
    }
    distributions = find_distributions(obj.body for obj in context.objects)
    for dependency in dependencies:
        if (
            dependency.ref not in controller_namespaces
            and not any(_is_part_of(dependency, item) for item in distributions)
            and not _may_be_provided(dependency, context)
        ):
            names = tuple(map(str, dependency.needed_by))
            yield AssumedDependency(
                describe_missing(dependency),
                names,
                dependency.location,
                dependency.type is DependencyType.TRUST_ROOT,
            )


def _is_part_of(dependency: MissingDependency, distribution: Distribution) -> bool:
    """Return whether a distribution of Kubernetes has what is missing."""
    ref, kinds = dependency.ref, dependency.kinds
    if kinds:
        return all(kind.group in distribution.groups for kind in kinds)
    return distribution.has(ref.kind.group, ref.kind.name, ref.namespace, ref.name)


def _may_be_provided(dependency: MissingDependency, context: LintContext) -> bool:
    """Return whether a unit with unknown objects may provide the dependency.

    The unit has the name of the missing operator, or deploys to the namespace of the object.
    """
    incomplete_units = [
        unit for name, unit in context.units.items() if name not in context.complete_units
    ]
    if dependency.type in {DependencyType.OBJECT, DependencyType.SETTING, DependencyType.SERVICE}:
        return dependency.ref.namespace in {
            unit.destination.namespace for unit in incomplete_units
        } - {""}
    if dependency.type not in {DependencyType.OPERATOR, DependencyType.KIND}:
        return False
    groups = {kind.group for kind in dependency.kinds}
    rows = [row for (group, _), row in context.catalog.rows.items() if group in groups]
    operators = {row.operator for row in rows if row.operator}
    terms = operators or {dependency.ref.name, *groups} - {""}
    source_names = [
        source.canonical_location for unit in incomplete_units for source in unit.sources
    ]
    unit_names = [*(unit.id.name for unit in incomplete_units), *source_names]
    charts = {source_name.rpartition("/")[2] for source_name in source_names} - {""}
    labels = {
        label
        for row in rows
        for labels_row in row.served_by.labels
        for label in labels_row.values()
    }
    by_label = any(label.startswith(f"{chart}-") for chart in charts for label in labels)
    return by_label or any(term in unit_name for term in terms for unit_name in unit_names)


def _with_health_checks(graph: Graph, objects: Iterable[LintObject], has_check: HasCheck) -> Graph:
    """Return the graph with the health checks from Git and the fallbacks of the units."""
    objects_by_id = {
        (lint_object.unit.id, lint_object.identity): lint_object for lint_object in objects
    }

    def is_checked(node: GraphNode) -> bool:
        obj = objects_by_id.get((node.unit, node.key)) if node.unit and node.key else None
        if obj is None:
            return node.has_health_check
        return node.is_hook or node.has_health_check or has_check(obj.unit, obj.body)

    nodes = (
        node
        if node.has_health_check == (checked := is_checked(node))
        else replace_struct(node, has_health_check=checked)
        for node in graph.nodes
    )
    return replace_struct(graph, nodes=tuple(nodes))


def _collect_units(
    workspace: Workspace, unit_manifests: Iterable[UnitManifests]
) -> dict[UnitId, Unit]:
    """Return all units with their effective semantics and all their dependencies."""
    units = {member.unit.id: member.unit for member in workspace.members}
    for rendered in unit_manifests:
        unit = rendered.manifests.unit
        dependencies = units[unit.id].dependencies if unit.id in units else unit.dependencies
        units[unit.id] = replace_struct(unit, dependencies=dependencies)
    return units


def _lint_objects(unit_manifests: UnitManifests) -> Iterator[LintObject]:
    """Yield each object with its document; a generated namespace gets the location of its unit."""
    unit = unit_manifests.manifests.unit
    documents = {
        _document_key(rendered_document, unit): rendered_document
        for rendered_document in unit_manifests.rendered.documents
    }
    for manifest in unit_manifests.manifests.manifests:
        ref = manifest.ref
        namespace = ref.namespace or unit.destination.namespace
        document = documents.get((ref.kind.group, ref.kind.name, namespace, ref.name))
        yield LintObject(unit, manifest, document or _generated_document(unit, manifest))


def _document_key(document: Document, unit: Unit) -> tuple[str, str, str, str]:
    body = document.body
    kind = object_kind(body)
    name = get_text(body, "metadata", "name") or get_text(body, "metadata", "generateName")
    namespace = get_text(body, "metadata", "namespace") or unit.destination.namespace
    return (kind.group, kind.name, namespace, name)


def _generated_document(unit: Unit, manifest: Manifest) -> Document:
    ref = manifest.ref
    body: JsonObject = {
        "apiVersion": ref.kind.api_version,
        "kind": ref.kind.name,
        "metadata": {"name": ref.name},
    }
    return Document(body, unit.location or Location(manifest.origin or str(unit.id)))


def _health_check_lookup(session: Session, settings: Mapping[str, ControllerSetting]) -> HasCheck:
    """Return a function that checks whether the health rules of a unit cover an object.

    Health scripts in Git are included.
    """
    evaluator = session.evaluator
    scripted_kinds = {
        name.removeprefix(HEALTH_SETTING_PREFIX)
        for name in settings
        if name.startswith(HEALTH_SETTING_PREFIX)
    }
    cached: dict[tuple[str, str, str, str], bool] = {}

    def has_check(unit: Unit, body: JsonObject) -> bool:
        kind = object_kind(body)
        key = (unit.policy.rules, kind.group, kind.name, kind.version)
        if key not in cached:
            setting_name = f"{kind.group}_{kind.name}" if kind.group else kind.name
            scripted = unit.policy.rules == ARGO and (
                setting_name in scripted_kinds or evaluator.scripts.find_script(body) is not None
            )
            verdict = evaluator.rules.judge(body, Ms(0), rules=unit.policy.rules)
            cached[key] = scripted or verdict.is_checked
        return cached[key]

    return has_check


def _unknown_inputs(unit_manifests: Iterable[UnitManifests]) -> Iterator[UncheckedInput]:
    """Yield the missing inputs of units that were rendered without them."""
    for rendered in unit_manifests:
        unit = rendered.manifests.unit
        for missing_input in rendered.rendered.missing_inputs:
            yield UncheckedInput(f"`{unit.id}`: {missing_input.description}", unit.location)

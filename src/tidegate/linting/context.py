"""Context of the lint rules, built from the workspace and its plan."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace as replace_struct

from tidegate.clusters.session import Session
from tidegate.documents import Document, read_documents
from tidegate.errors import DocumentError, Location
from tidegate.files import PathEscapeError, RootedFiles
from tidegate.graph.milestones import find_ready_without_status
from tidegate.graph.missing import find_unmet_dependencies
from tidegate.graph.reachability import StepReachability
from tidegate.health.judge import ARGO
from tidegate.lint.context import HasCheck, Identity, LintContext, LintFile, LintObject, OctalNumber
from tidegate.lint.order import StepOrder
from tidegate.lint.rules.files import overlay_targets
from tidegate.linting.lookup import GraphReachability
from tidegate.model.config import ControllerSetting
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import JsonObject, Kind, Ref
from tidegate.model.plans.graph import Graph, GraphNode
from tidegate.model.plans.manifest import Manifest
from tidegate.model.plans.missing_dependency import (
    DependencyType,
    MissingDependency,
    describe_missing,
)
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.times import Ms
from tidegate.model.units.unit import Unit, UnitId
from tidegate.model.views.lint import AssumedDependency, UncheckedInput
from tidegate.planning.graph import GraphResult, root_namespaces, unit_durations
from tidegate.planning.manifests import UnitManifests
from tidegate.planning.missing import NAMESPACE
from tidegate.planning.provided import ProvidedObjects
from tidegate.workspace.config import load_config
from tidegate.workspace.discovery.scan import RepositoryScan
from tidegate.workspace.workspace import Workspace

SOPS_RULES = ".sops.yaml"
HEALTH_SETTING_PREFIX = "resource.customizations.health."
MAX_FILE_SIZE = 1_000_000
TEXT_SUFFIXES = (".yaml", ".yml", ".json")
_SOPS_METADATA = lazy_regex(rb"^sops:\s*(?:#.*)?$|\"sops\"\s*:", re.MULTILINE)
_OCTAL_PHASE = lazy_regex(
    rb"^\s*(?:-\s+)?[\"']?([\w./-]*(?:[pP]hase|[wW]ave|[bB]and))[\"']?\s*:\s*(0[0-7]+)\s*(?:#.*)?$",
    re.MULTILINE,
)


class LoadedContext(msgspec.Struct, frozen=True):
    """A lint context with its size and its unknown inputs."""

    context: LintContext
    unit_count: int
    object_count: int
    unknown_inputs: tuple[UncheckedInput, ...] = ()


def build_context(
    workspace: Workspace,
    session: Session,
    graph_result: GraphResult | None,
    unit_manifests: Iterable[UnitManifests],
    *,
    empty_cluster: bool = False,
) -> LoadedContext:
    """Build the lint context of a workspace."""
    unit_manifests = tuple(unit_manifests)
    scan, files = workspace.scan, frozenset(workspace.scan.files)
    has_check = _health_check_lookup(session, workspace.controller_settings)
    objects = tuple(obj for rendered in unit_manifests for obj in _lint_objects(rendered))
    encrypted_files, octals = _scan_texts(scan)
    graph = _with_health_checks(graph_result.graph, objects, has_check) if graph_result else Graph()
    overlays = tuple(_read_files(scan, scan.overlays.values()))
    context = LintContext(
        objects=objects,
        units=_collect_units(workspace, unit_manifests),
        order=StepOrder(graph_result.plan_result.plan) if graph_result else StepOrder(),
        graph=graph,
        reachability=GraphReachability(graph),
        strict_reachability=GraphReachability(graph, optimistic=False)
        if find_ready_without_status(graph, StepReachability(graph))
        else None,
        catalog=session.evaluator.rules.catalog,
        has_check=has_check,
        settings=workspace.controller_settings,
        unit_resources=dict(_unit_resources(workspace)),
        overlays=overlays,
        git_ignored_files=_git_ignored_targets(scan, overlays),
        sops_configs=tuple(_read_files(scan, _files_named(scan, SOPS_RULES))),
        encrypted_files=encrypted_files,
        value_files=tuple(_read_files(scan, _files_named(scan, "values.yaml"))),
        octals=octals,
        documents={
            rendered.manifests.unit.id: rendered.rendered.documents for rendered in unit_manifests
        },
        encrypted_objects=frozenset(
            lint_object.identity for lint_object in objects if lint_object.manifest.hidden_fields
        ),
        files=files,
        complete_units=frozenset(
            rendered.manifests.unit.id for rendered in unit_manifests if rendered.is_complete
        ),
        bands=load_config(scan.root).lint.bands if scan.files else LintContext().bands,
        empty_cluster=empty_cluster,
        durations=_unit_durations(graph_result, session),
        missing=find_unmet_dependencies(graph),
        provided=frozenset(_provided_objects(unit_manifests, session)),
    )
    return LoadedContext(
        context, len(workspace.members), len(objects), tuple(_unknown_inputs(unit_manifests))
    )


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


def _git_ignored_targets(scan: RepositoryScan, overlays: Iterable[LintFile]) -> frozenset[str]:
    tracked = {*scan.files}
    targets = {target for overlay in overlays for _, _, target in overlay_targets(overlay)}
    return frozenset(path for path in targets - tracked if (scan.root / path).is_file())


def assumed_dependencies(
    dependencies: Iterable[MissingDependency], context: LintContext
) -> Iterator[AssumedDependency]:
    """Yield the missing dependencies that no incomplete unit may provide; trust roots are marked.

    The namespace of a controller is not included, because it exists with the controller.
    """
    controller_namespaces = {
        Ref(NAMESPACE, "", namespace) for namespace in root_namespaces(context.units.values())
    }
    for dependency in dependencies:
        if dependency.ref not in controller_namespaces and not _may_be_provided(
            dependency, context
        ):
            names = tuple(map(str, dependency.needed_by))
            yield AssumedDependency(
                describe_missing(dependency),
                names,
                dependency.location,
                dependency.type is DependencyType.TRUST_ROOT,
            )


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
        falls_back = obj.unit.policy.semantics.uses_generic_health
        return node.is_hook or falls_back or has_check(obj.unit, obj.body)

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
    kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
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


def _unit_resources(workspace: Workspace) -> Iterator[tuple[UnitId, Document]]:
    """Yield the rendered unit resources; for root units, the documents in their files."""
    for unit_tree in workspace.unit_trees:
        documents = {
            _kind_and_name(rendered_document): rendered_document
            for member in unit_tree.members
            for rendered_document in member.documents
        }
        if unit_tree.root_document is not None:
            documents[_kind_and_name(unit_tree.root_document)] = unit_tree.root_document
        for member in unit_tree.members:
            name = member.unit.id
            document = documents.get((name.kind, name.namespace, name.name))
            document = document or documents.get((name.kind, "", name.name))
            if document is not None:
                yield name, document


def _kind_and_name(document: Document) -> tuple[str, str, str]:
    body = document.body
    return (
        get_text(body, "kind"),
        get_text(body, "metadata", "namespace"),
        get_text(body, "metadata", "name"),
    )


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
        kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
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


def _files_named(scan: RepositoryScan, name: str) -> list[str]:
    return [path for path in scan.files if posixpath.basename(path) == name]


def _read_content(scan: RepositoryScan, name: str) -> bytes:
    """Return the content of a file, or nothing if it cannot be read."""
    try:
        with RootedFiles(scan.root).open(name) as file:
            return file.read(MAX_FILE_SIZE)
    except (OSError, PathEscapeError, ValueError):
        return b""


def _scan_texts(scan: RepositoryScan) -> tuple[tuple[LintFile, ...], tuple[OctalNumber, ...]]:
    """Return the encrypted files and the octal phases of all files; each file is read once."""
    encrypted_files: list[LintFile] = []
    octals: list[OctalNumber] = []
    for name in scan.files:
        if not name.endswith(TEXT_SUFFIXES) or not scan.is_searched(name):
            continue
        content = _read_content(scan, name)
        if b"sops" in content and _SOPS_METADATA.search(content):
            encrypted_files += _read_files(scan, [name])
        octals += _find_octals(name, content)
    return tuple(encrypted_files), tuple(octals)


def _find_octals(name: str, content: bytes) -> Iterator[OctalNumber]:
    """Yield unquoted phases with a leading zero."""
    if b": 0" not in content:
        return
    for match in _OCTAL_PHASE.finditer(content):
        line = content.count(b"\n", 0, match.start(1)) + 1
        column = match.start(1) - content.rfind(b"\n", 0, match.start(1))
        key = match[1].decode()
        yield OctalNumber(key, match[2].decode(), Location(name, line, column, key))


def _read_files(scan: RepositoryScan, names: Iterable[str]) -> Iterator[LintFile]:
    """Yield files as documents. Other code reports unreadable files."""
    for name in names:
        if not scan.is_searched(name):
            continue
        try:
            yield LintFile(name, read_documents(_read_content(scan, name), name))
        except (DocumentError, ValueError):
            continue


def _unknown_inputs(unit_manifests: Iterable[UnitManifests]) -> Iterator[UncheckedInput]:
    """Yield the missing inputs of units that were rendered without them."""
    for rendered in unit_manifests:
        unit = rendered.manifests.unit
        for missing_input in rendered.rendered.missing_inputs:
            yield UncheckedInput(f"`{unit.id}`: {missing_input.description}", unit.location)

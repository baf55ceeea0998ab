"""The manifests of rendered units, read by dialect, and the errors in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.dialect.manifests import parse_manifests
from tidegate.dialect.ownership.tracking import APPLICATION_SET
from tidegate.dialect.units import is_dialect_kind
from tidegate.documents import Document, duplicate_errors
from tidegate.documents import read_documents as read_text
from tidegate.errors import DocumentError, Location, PlanError, RenderError, TidegateError, sanitize
from tidegate.files import RootedFiles
from tidegate.health.readiness_timeout import readiness_timeout
from tidegate.knowledge.catalog import KindCatalog
from tidegate.knowledge.references import CRD_KIND_NAME, list_produced_crds
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_text, object_kind
from tidegate.model.k8s.objects import Kind, ServedKind
from tidegate.model.plans.manifest import Manifest, Manifests
from tidegate.model.plans.plan import ItemAction
from tidegate.model.units.policy import Tracking
from tidegate.model.units.rendering import Directory, ToolDetection
from tidegate.model.units.semantics import TIDEGATE
from tidegate.model.units.source import LocalSource
from tidegate.model.units.unit import Unit, UnitId, UnitSource
from tidegate.plan.build.build import build_plan
from tidegate.planning.exclusions import fault_findings
from tidegate.planning.facts import PlanningFacts
from tidegate.planning.manifest_check import check_manifests
from tidegate.planning.projects import find_rejected_objects
from tidegate.render.plain import list_manifest_files
from tidegate.schema.duplicate_items import find_duplicate_items
from tidegate.workspace.discovery.unit_tree import RenderedUnit, require_rendered
from tidegate.workspace.locations import FieldLocator
from tidegate.workspace.rendering.result import RenderFailure, RenderResult, render_notes


def replace_unmergeable(manifests: Manifests) -> tuple[Manifests, list[Finding]]:
    """Return the manifests; objects with duplicate list keys are replaced instead of applied.

    Only client-side apply accepts such lists. Flux applies server-side, where the server
    rejects them.
    """
    if manifests.unit.policy.tracking is Tracking.FLUX:
        return manifests, []
    findings: list[Finding] = []
    checked = tuple(
        _check_duplicates(manifest, manifests, findings) for manifest in manifests.manifests
    )
    return (
        msgspec.structs.replace(manifests, manifests=checked) if findings else manifests
    ), findings


def _check_duplicates(
    manifest: Manifest, manifests: Manifests, findings: list[Finding]
) -> Manifest:
    if manifest.action is not ItemAction.APPLY or manifest.options.replace:
        return manifest
    duplicates = find_duplicate_items(manifest.ref.kind, manifest.body)
    if not duplicates:
        return manifest
    findings.append(_duplicate_finding(manifest, manifests, duplicates))
    handling = msgspec.structs.replace(manifest.options, replace=True)
    return msgspec.structs.replace(manifest, options=handling)


def _duplicate_finding(manifest: Manifest, manifests: Manifests, duplicates: list[str]) -> Finding:
    return Finding(
        code="units.duplicate-entries",
        severity=Severity.WARNING,
        message=f"{manifest.ref} has list entries with the same key:"
        f" {sanitize('; '.join(duplicates))}",
        location=manifests.unit.location or Location(manifest.origin),
        reason=(
            f"the API server rejects the list from {manifest.origin} in an apply; the object is"
            " replaced instead, which drops fields of other managers"
        ),
        fix="keep one entry for each key",
    )


class UnitIndex(msgspec.Struct, frozen=True):
    """The ids of all units of a plan, and the parent of each."""

    parents: Mapping[UnitId, UnitId | None]

    @classmethod
    def from_units(cls, units: Iterable[Unit]) -> UnitIndex:
        return cls({unit.id: unit.parent for unit in units})

    def _creates(self, unit_id: UnitId, child: UnitId) -> bool:
        """Return whether a unit creates another one.

        A unit that creates itself or one of its parents starts without waiting for that.
        """
        ancestors: dict[UnitId, None] = {}
        ancestor: UnitId | None = unit_id
        while ancestor is not None and ancestor not in ancestors:
            ancestors[ancestor] = None
            ancestor = self.parents.get(ancestor)
        return child in self.parents and child not in ancestors

    def link_unit_resource(self, manifest: Manifest, unit: Unit, kinds: KnownKinds) -> Manifest:
        """Link a unit resource to the unit it defines; skip it if its kind is not served.

        Unit resources do not gate: their controllers do not run while Tidegate does their work.
        """
        kind, ref = manifest.ref.kind, manifest.ref
        if not is_dialect_kind(kind):
            return manifest
        unit_id = UnitId(kind.name, unit.destination.cluster, ref.namespace, ref.name)
        child_units = (unit_id,) if self._creates(unit.id, unit_id) else ()
        action = manifest.action if kinds.serves(kind) else ItemAction.SKIP
        return msgspec.structs.replace(
            manifest,
            child_units=child_units,
            action=action,
            is_gating=False,
            is_awaited=kind.name == APPLICATION_SET,
        )


class KnownKinds(msgspec.Struct, frozen=True):
    """The kinds of a cluster, by group and name."""

    served: frozenset[tuple[str, str]]
    """Kinds that are served, or defined by the plan."""
    cluster_scoped: frozenset[tuple[str, str]]
    """Kinds without namespaces."""
    operator_defined: frozenset[tuple[str, str]]
    """Kinds that an operator defines when it sees the documents."""
    catalog: KindCatalog
    """Knowledge of kinds that are neither served nor defined."""

    @classmethod
    def from_served(
        cls, kinds: Iterable[ServedKind], documents: Iterable[Document], catalog: KindCatalog
    ) -> KnownKinds:
        """Return the kinds that the cluster serves and that the documents define."""
        kinds = tuple(kinds)
        served = {(served_kind.kind.group, served_kind.kind.name) for served_kind in kinds}
        cluster_scoped = {
            (served_kind.kind.group, served_kind.kind.name)
            for served_kind in kinds
            if not served_kind.namespaced
        }
        operator_defined: set[tuple[str, str]] = set()
        for document in documents:
            body, is_definition = document.body, get_text(document.body, "kind") == CRD_KIND_NAME
            kind = object_kind(body)
            operator_crds = (
                [] if is_definition else list_produced_crds(catalog.find_row(kind), body, kind)
            )
            for crd in [body] if is_definition else operator_crds:
                name = (get_text(crd, "spec", "group"), get_text(crd, "spec", "names", "kind"))
                operator_defined |= set() if is_definition else {name} - served
                cluster_scoped |= {name} if get_text(crd, "spec", "scope") == "Cluster" else set()
                served.add(name)
        return cls(
            frozenset(served), frozenset(cluster_scoped), frozenset(operator_defined), catalog
        )

    def serves(self, kind: Kind) -> bool:
        return (kind.group, kind.name) in self.served

    def with_kind_wait(self, manifest: Manifest, unit: Unit) -> Manifest:
        """Let an object of an operator-defined kind wait for that kind, with Tidegate semantics.

        Argo CD and Flux dry-run everything before the first write, and fail.
        """
        kind, handling = manifest.ref.kind, manifest.options
        if (
            unit.policy.semantics.name != TIDEGATE.name
            or (kind.group, kind.name) not in self.operator_defined
        ):
            return manifest
        waiting = msgspec.structs.replace(handling, skip_missing_kind=True)
        return msgspec.structs.replace(manifest, options=waiting)

    def is_namespaced(self, kind: Kind) -> bool | None:
        name = (kind.group, kind.name)
        if is_dialect_kind(kind):
            return True
        if name in self.served:
            return name not in self.cluster_scoped
        row = self.catalog.find_row(kind)
        return False if row is not None and kind.name in row.cluster_wide else None


class UnitManifests(msgspec.Struct, frozen=True):
    """The manifests of a unit, with its render result."""

    manifests: Manifests
    rendered: RenderResult

    @property
    def is_complete(self) -> bool:
        """Whether all objects of the unit are known."""
        rendered = self.rendered
        return not (rendered.undecrypted or rendered.missing_inputs or rendered.lookup_error)

    @property
    def notes(self) -> tuple[TidegateError, ...]:
        """Notes about uncertain results; an empty result is rarely intended.

        For units of a repository these notes are findings of the discovery instead.
        """
        unit, notes = self.manifests.unit, render_notes(self.rendered)
        sources = unit.sources
        if self.rendered.documents or notes or not sources:
            return notes if unit.is_path else ()
        request, name, noun = sources[0].request, str(sources[0].source), "directory"
        if isinstance(request, Directory) and request.must_be_manifests:
            name, noun = request.files[0], "file"
        problem = f"`{name}` contains no objects"
        hint = f"check that it is the right {noun}"
        return (
            RenderError("render.nothing", problem, hint=hint),
            *_skipped_file_errors(sources[0]),
        )


def _skipped_file_errors(source: UnitSource) -> Iterator[TidegateError]:
    """Yield the errors of files in a directory that were skipped as no manifests, like Argo CD."""
    request = source.request
    directory = request.directory if isinstance(request, ToolDetection) else request
    if not isinstance(directory, Directory) or not isinstance(source.source, LocalSource):
        return
    directory = msgspec.structs.replace(directory, root=Path(source.source.path), path=source.path)
    within = RootedFiles(directory.root)
    for name in list_manifest_files(directory, within):
        try:
            read_text(within.read(name, directory.size_limit), name)
        except DocumentError as error:
            yield error


class ManifestSet(msgspec.Struct):
    """The manifests of all units, with faulty units apart."""

    units: list[UnitManifests] = msgspec.field(default_factory=list)
    faulty: dict[UnitId, RenderedUnit] = msgspec.field(default_factory=dict)
    """Units that cannot be rolled out."""
    findings: list[Finding] = msgspec.field(default_factory=list)
    """Findings about the faulty units."""
    rejected: dict[UnitId, str] = msgspec.field(default_factory=dict)
    """By unit, why its project rejects it."""
    valid_parts: list[Manifests] = msgspec.field(default_factory=list)
    """The valid manifests of faulty units."""
    errors: list[TidegateError] = msgspec.field(default_factory=list)
    """Errors in the PATH that the user named."""

    def add_faulty(
        self, member: RenderedUnit, unit_manifests: UnitManifests, errors: list[TidegateError]
    ) -> None:
        """Add a faulty unit; its valid manifests can still be checked."""
        unit = member.unit
        self.faulty[unit.id] = member
        self.valid_parts.append(unit_manifests.manifests)
        if unit.is_path:
            self.errors += errors
        else:
            self.findings += fault_findings(unit, errors)


def find_further_problems(manifest_set: ManifestSet, facts: PlanningFacts) -> tuple[Finding, ...]:
    """Return further problems where a unit is faulty, so that all are reported at once.

    Raises all of them if the errors are in the PATH that the user named.
    """
    if not manifest_set.valid_parts:
        return ()
    all_manifests = [
        *(unit_manifests.manifests for unit_manifests in manifest_set.units),
        *manifest_set.valid_parts,
    ]
    known = {manifests.unit.id for manifests in all_manifests}
    resolved = [without_unknown_dependencies(manifests, known) for manifests in all_manifests]
    plan = build_plan(resolved, (), readiness_timeout=readiness_timeout)
    locator = FieldLocator(facts.root)
    findings = check_manifests(plan, facts.evaluator, facts.kinds, locator)
    if not manifest_set.errors:
        return findings
    further = [
        error_from_finding(finding) for finding in findings if finding.severity is Severity.ERROR
    ]
    located = [*locator.locate_errors(manifest_set.errors), *further]
    raise located[0] if len(located) == 1 else ExceptionGroup("invalid objects", located)


def error_from_finding(finding: Finding) -> PlanError:
    """Return a finding as an error that stops a command."""
    hint = finding.reason or finding.fix
    return PlanError(finding.code, finding.message, location=finding.location, hint=hint)


def read_manifests(members: Iterable[RenderedUnit], facts: PlanningFacts) -> ManifestSet:
    """Read the manifests of all units. Raises if the PATH of the user could not be rendered.

    A unit that could not be read is faulty, and so are its child units.
    """
    members = list(members)
    require_rendered(members)
    unit_index = UnitIndex.from_units(rendered_unit.unit for rendered_unit in members)
    documents: dict[str, list[Document]] = {}
    for rendered_unit in members:
        documents.setdefault(rendered_unit.unit.destination.cluster, []).extend(
            rendered_unit.documents
        )
    kinds_by_cluster = {
        name: KnownKinds.from_served(
            facts.kinds[name], cluster_documents, facts.evaluator.rules.catalog
        )
        for name, cluster_documents in documents.items()
    }
    result = ManifestSet()
    for member in members:
        unit, rendered = member.unit, member.result
        if (
            isinstance(rendered, RenderFailure)
            or unit.parent in result.faulty
            or unit.project_error
        ):
            result.faulty[unit.id] = member
            result.rejected |= {unit.id: unit.project_error} if unit.project_error else {}
            continue
        unit_manifests, errors = _read_unit(
            unit, rendered, unit_index, kinds_by_cluster[unit.destination.cluster]
        )
        if errors:
            result.add_faulty(member, unit_manifests, errors)
        else:
            _add_unit(member, unit_manifests, result, facts)
    return result


def _duplicate_key_errors(unit: Unit, rendered: RenderResult) -> Iterator[TidegateError]:
    """Yield errors for duplicate keys in the user's files; Kubernetes uses the last one."""
    for document in rendered.documents if unit.is_path else ():
        yield from duplicate_errors(document)


def _add_unit(
    member: RenderedUnit, unit_manifests: UnitManifests, result: ManifestSet, facts: PlanningFacts
) -> None:
    """Add a valid unit, or a faulty one if its project does not allow all objects."""
    manifests, duplicates = replace_unmergeable(unit_manifests.manifests)
    result.findings += duplicates
    rejections = find_rejected_objects(manifests, facts.existing)
    if rejections:
        result.rejected[member.unit.id] = "its project does not permit all of its objects"
        result.faulty[member.unit.id] = member
        result.findings += rejections
    else:
        result.units.append(replace(unit_manifests, manifests=manifests))


def without_unknown_dependencies(manifests: Manifests, known: Collection[UnitId]) -> Manifests:
    """Remove dependencies on units that are not in the plan; findings report those."""
    unit = manifests.unit
    dependencies = tuple(
        dependency
        for dependency in unit.dependencies
        if dependency.unit is None or dependency.unit in known
    )
    if dependencies == unit.dependencies:
        return manifests
    return msgspec.structs.replace(
        manifests, unit=msgspec.structs.replace(unit, dependencies=dependencies)
    )


def _empty_prune_error(manifests: Manifests) -> PlanError | None:
    """Return an error if pruning would delete all objects because none are rendered.

    Argo CD refuses that by itself, and only if there are objects to prune (`autoSync` in
    `controller/appcontroller.go` of Argo CD 3.6). Flux applies an empty Kustomization: kustomize
    refuses only a file without any field (`CheckEmpty` in `api/types/kustomization.go` of
    kustomize 5.8).
    """
    unit = manifests.unit
    is_guarded = (
        unit.policy.prune
        and not unit.policy.allow_empty
        and unit.policy.semantics.name == TIDEGATE.name
        and unit.id.kind != APPLICATION_SET
    )
    if not is_guarded or manifests.manifests or not unit.sources:
        return None
    unit_problem = "renders no objects; pruning would delete everything it manages"
    hint = "check that it is the right directory, or allow it with `--allow-empty`"
    error = PlanError(
        "plan.empty", f"`{unit.id}` {unit_problem}", location=unit.location, hint=hint
    )
    error.unit_problem = unit_problem
    return error


def _read_unit(
    unit: Unit, rendered: RenderResult, unit_index: UnitIndex, kinds: KnownKinds
) -> tuple[UnitManifests, list[TidegateError]]:
    """Return the manifests of a unit, and the errors in them."""
    parsed, parse_errors = parse_manifests(
        unit, rendered.documents, kinds.is_namespaced, rendered.secret_fields
    )
    waiting = (kinds.with_kind_wait(manifest, unit) for manifest in parsed.manifests)
    manifests = tuple(unit_index.link_unit_resource(manifest, unit, kinds) for manifest in waiting)
    unit_manifests = UnitManifests(msgspec.structs.replace(parsed, manifests=manifests), rendered)
    errors: list[TidegateError] = [*_duplicate_key_errors(unit, rendered), *parse_errors]
    # A release may consist of hooks only, none of which runs in the next action.
    has_hooks = unit.policy.release is not None and bool(rendered.documents)
    is_valid = not errors and unit_manifests.is_complete and not has_hooks
    if is_valid and (empty_error := _empty_prune_error(unit_manifests.manifests)):
        errors.append(empty_error)
    return unit_manifests, errors

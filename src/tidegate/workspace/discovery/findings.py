"""Findings about the units of a repository, their objects, and failed renders."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator

import msgspec
from msgspec import structs

from tidegate.dialect.argo.appset.reader import relocate_to_template
from tidegate.dialect.flux.version import FluxVersion, find_flux_version, soften_for_version
from tidegate.dialect.ownership.tracking import APPLICATION_SET
from tidegate.documents import Document
from tidegate.errors import Location, SourceError, TidegateError, sanitize
from tidegate.model.display import join_quoted
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.text.suggest import find_misspelled
from tidegate.model.units.chart_request import ChartRequest
from tidegate.model.units.policy import Tracking
from tidegate.model.units.rendering import FluxDetails
from tidegate.model.units.source import ChartSource, LocalSource, OciSource, SourceObject
from tidegate.model.units.unit import Unit, UnitId
from tidegate.source.urls import redact_password
from tidegate.workspace.discovery.object_checks import check_objects
from tidegate.workspace.discovery.scan import RepositoryScan
from tidegate.workspace.discovery.unit_tree import RenderedUnit, UnitTree, is_flux_unit
from tidegate.workspace.rendering.flux_inputs import UNSET_VARIABLE
from tidegate.workspace.rendering.result import (
    UNDECRYPTED_DATA,
    RenderFailure,
    RenderResult,
    render_notes,
)

UNIT_CUTOFF = 0.8
"""The minimum similarity of a dependency, which certainly does not exist, to a unit."""


def repository_findings(
    unit_trees: Collection[UnitTree], scan: RepositoryScan
) -> Iterator[Finding]:
    """Yield the findings about units, about their objects, and about failed renders.

    Root units, and ApplicationSets that no unit creates, are checked in their files.
    """
    yield from dict.fromkeys((*_appset_findings(scan), *_tree_findings(unit_trees, scan)))


def _appset_findings(scan: RepositoryScan) -> Iterator[Finding]:
    for name, generated in scan.generated.items():
        is_patched = bool(scan.overlay_index.including(name))
        if not scan.declared[name].units and not is_patched:
            yield from generated.findings


def _tree_findings(unit_trees: Collection[UnitTree], scan: RepositoryScan) -> Iterator[Finding]:
    known_units = KnownUnits.from_trees(unit_trees)
    yield from _overwritten_units(unit_trees, scan)
    yield from _repeated_roots(unit_trees)
    for unit_tree in unit_trees:
        yield from soften_for_version(
            _findings_of(unit_tree, known_units, scan), _flux_version(unit_tree)
        )
    all_members = [member for unit_tree in unit_trees for member in unit_tree.members]
    yield from _assumed_source_findings(all_members)
    yield from _unknown_variable_findings(all_members)


def _flux_version(unit_tree: UnitTree) -> FluxVersion | None:
    """Return the version of Flux that the units of a tree deploy."""
    return find_flux_version(
        (document for member in unit_tree.members for document in member.documents),
        (source for member in unit_tree.members for source in member.declared.sources),
    )


def _findings_of(
    unit_tree: UnitTree, known_units: KnownUnits, scan: RepositoryScan
) -> Iterator[Finding]:
    yield from unit_tree.findings
    unit_findings = [*_root_findings(unit_tree, scan)]
    members = [member for member in unit_tree.members if not member.is_raw]
    for member in members:
        unit_findings += member.declared.findings
        unit_findings += _document_findings(member, scan)
    yield from unit_findings
    faulty_keys = {
        key
        for finding in unit_findings
        if finding.severity is Severity.ERROR
        for key in _finding_keys(finding)
    }
    for member in members:
        if faulty_keys.isdisjoint(_unit_keys(member.unit)):
            yield from render_failure_findings(member)
        yield from _uncertainty_findings(member)
        yield from _unknown_dependency_findings(member.unit, known_units)
        yield from _self_managed_findings(member)


def _document_findings(member: RenderedUnit, scan: RepositoryScan) -> Iterator[Finding]:
    """Yield what a server would reject in the objects of a unit, unless the dialect reports it."""
    findings = _check_documents(member.documents, scan)
    if member.unit.id.kind == APPLICATION_SET:
        findings = _merge_by_field(map(relocate_to_template, findings))
    yield from _without_reported(findings, member.declared.findings)


def _finding_keys(finding: Finding) -> Iterator[tuple[str, int, str]]:
    """Yield the file, line and unit of a finding; the unit is empty if it names none."""
    name, line = (finding.location.name, finding.location.line) if finding.location else ("", 0)
    yield from ((name, line, unit) for unit in finding.unit_names or ("",))


def _unit_keys(unit: Unit) -> tuple[tuple[str, int, str], ...]:
    """Return the keys of findings about a unit."""
    name, line = (unit.location.name, unit.location.line) if unit.location else ("", 0)
    return (name, line, ""), (name, line, unit.id.qualified_name)


def _root_findings(unit_tree: UnitTree, scan: RepositoryScan) -> Iterator[Finding]:
    documents = [unit_tree.root_document] if unit_tree.root_document is not None else []
    findings = scan.unit_finder.find(documents).findings
    yield from findings
    yield from _without_reported(_check_documents(documents, scan), findings)


def _check_documents(documents: Iterable[Document], scan: RepositoryScan) -> Iterable[Finding]:
    return check_objects(documents, scan.locator.file)


def _without_reported(
    findings: Iterable[Finding], reported: Iterable[Finding]
) -> Iterator[Finding]:
    """Yield the findings about fields of which nothing is reported yet."""
    known = {
        (finding.location.name, finding.location.field) for finding in reported if finding.location
    }
    for finding in findings:
        if finding.location is None or (finding.location.name, finding.location.field) not in known:
            yield finding


def _overwritten_units(unit_trees: Iterable[UnitTree], scan: RepositoryScan) -> Iterator[Finding]:
    """Yield the Applications in files that an ApplicationSet generates, too, and that no tree has.

    Where another root creates the written one, the two roots are alternatives.
    """
    units = [member.unit for unit_tree in unit_trees for member in unit_tree.members]
    locations = {str(unit.location) for unit in units}
    unplaced = (
        candidate
        for candidate in scan.candidates
        if not candidate.generated_by and str(candidate.location) not in locations
    )
    written_units = {candidate.id: candidate for candidate in unplaced}
    for unit in units:
        written_unit = written_units.get(unit.id) if unit.generated_by else None
        if written_unit is not None:
            problem = f"is defined in a file and also generated by `{unit.generated_by}`"
            yield Finding(
                code="units.duplicate",
                severity=Severity.ERROR,
                message=f"`{unit.id}` {problem}",
                location=written_unit.location,
                reason=f"the ApplicationSet at {unit.location} overwrites the Application",
                fix="remove or rename one of the two",
                unit=unit.id,
                unit_problem=problem,
            )


def _repeated_roots(unit_trees: Iterable[UnitTree]) -> Iterator[Finding]:
    """Yield the roots that are defined twice in one directory.

    Roots of different directories are alternatives. So are Applications of one directory that
    deploy something else; Flux builds a directory as a whole.
    """
    first_roots: dict[tuple[UnitId, str], Unit] = {}
    for root in (unit_tree.members[0].unit for unit_tree in unit_trees):
        if root.location is None or root.generated_by or root.is_implicit:
            continue
        directory = posixpath.dirname(root.location.name)
        first = first_roots.setdefault((root.id, directory), root)
        is_same = (first.sources, first.destination) == (root.sources, root.destination)
        if first is not root and (is_same or is_flux_unit(root)):
            problem = f"is defined twice in `{directory or '.'}`"
            yield Finding(
                code="units.duplicate",
                severity=Severity.WARNING,
                message=f"`{root.id}` {problem}",
                location=root.location,
                reason="the definition that is applied last wins",
                fix=f"remove or rename one of the two; the first is at {first.location}",
                unit=root.id,
                unit_problem=problem,
            )


def _merge_by_field(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Merge the findings about one field of many Applications of one template."""
    grouped: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        grouped.setdefault(
            (finding.code, finding.location.field if finding.location else ""), []
        ).append(finding)
    for first, *others in grouped.values():
        more = f"; also affects {len(others)} more from its ApplicationSet" if others else ""
        unit_groups = (first.unit_names, *(finding.unit_names for finding in others))
        names = tuple(name for group in unit_groups for name in group) if all(unit_groups) else ()
        yield structs.replace(first, reason=f"{first.reason}{more}", unit_names=names)


def render_failure_findings(member: RenderedUnit) -> Iterator[Finding]:
    """Yield why a unit of a repository has no objects."""
    if not isinstance(member.result, RenderFailure) or member.unit.is_path:
        return  # for PATH itself, this is an error and not a finding
    for error in member.result.errors:
        needed_sources = describe_needed_sources(member.unit, error)
        unrendered = f"cannot be rendered{needed_sources}: {error.problem}"
        unit_problem = unrendered if needed_sources else error.unit_problem or error.problem
        location = (
            error.location
            if error.location and error.location.line
            else _referring_field(member.unit, error)
        )
        yield Finding(
            code=error.code,
            severity=Severity.ERROR,
            message=f"`{member.unit.id}` {unrendered}",
            location=location,
            reason=""
            if error.code in MISSING_REFERENCE_CODES or error.location in {None, location}
            else f"at {error.location}",
            fix=error.hint,
            unit=member.unit.id,
            unit_problem=unit_problem,
            error_problem=error.problem,
            cause=_common_cause(error),
        )


def _common_cause(error: TidegateError) -> str:
    """Return what units have in common that lack the same source or variable; else nothing."""
    return error.problem if error.code in {MISSING_SOURCE, UNSET_VARIABLE} else ""


def _referring_field(unit: Unit, error: TidegateError) -> Location | None:
    """Return the field of a unit that refers to what is missing; else its location."""
    if unit.location is None or error.code not in MISSING_REFERENCE_CODES:
        return unit.location
    if unit.id.kind in PATH_FIELDS and error.code == "source.path":
        return unit.location.with_field(PATH_FIELDS[unit.id.kind])
    if unit.id.kind == "Kustomization":
        return unit.location.with_field("spec.sourceRef")
    source_kinds = {
        source.source.kind for source in unit.sources if isinstance(source.source, SourceObject)
    }
    if unit.id.kind != "HelmRelease" or not source_kinds:
        return unit.location
    return unit.location.with_field(
        "spec.chartRef" if source_kinds & CHART_REF_KINDS else "spec.chart.spec.sourceRef"
    )


def describe_needed_sources(unit: Unit, error: TidegateError) -> str:
    """Return which remote sources a unit needs, where fetching failed; else an empty text."""
    sources = [
        str(source.source)
        for source in unit.sources
        if isinstance(source.source, ChartSource | OciSource)
    ]
    if not sources or not isinstance(error, SourceError):
        return ""
    return f" from {' and '.join(map(redact_password, sources))}"


MISSING_SOURCE = "source.object"
MISSING_REFERENCE_CODES = frozenset({MISSING_SOURCE, "source.path", "source.undeclared"})
"""Codes of references of units to what does not exist."""
PATH_FIELDS = {"Kustomization": "spec.path", "Application": "spec.source.path"}
"""The field for the directory, by kind of unit."""
CHART_REF_KINDS = frozenset({"OCIRepository", "HelmChart", "ExternalArtifact"})
NOTE_CODES = frozenset({"render.lookup", UNDECRYPTED_DATA})
"""Codes of what may be intended, or is reported elsewhere."""


def _uncertainty_findings(member: RenderedUnit) -> Iterator[Finding]:
    """Yield the findings about uncertain results of a rendered unit."""
    if isinstance(member.result, RenderResult) and not member.unit.is_path:
        refusals = member.result.refusals
        for error in (*refusals, *render_notes(member.result)):
            severity = Severity.NOTE if error.code in NOTE_CODES else Severity.WARNING
            severity = Severity.ERROR if error in refusals else severity
            finding = Finding.from_error(error, severity, member.unit)
            yield structs.replace(finding, cause=_common_cause(error))


def _unknown_variable_findings(members: Iterable[RenderedUnit]) -> Iterator[Finding]:
    """Yield a finding for each object with variables that is not in the repository."""
    users: dict[tuple[str, str, str], list[tuple[Unit, TidegateError]]] = {}
    for member in members:
        result = member.result
        for unknown in result.unknown_variables if isinstance(result, RenderResult) else ():
            key = (unknown.kind, unknown.namespace, unknown.name)
            users.setdefault(key, []).append((member.unit, unknown.error))
    for (kind, namespace, name), uses in users.items():
        error = uses[0][1]
        names = join_quoted([user.id for user, _ in uses], 1)
        yield Finding(
            code="units.unknown-variables",
            severity=Severity.WARNING,
            message=f"{kind} `{sanitize(namespace)}/{sanitize(name)}` with variables of"
            f" {names} is not in this repository",
            location=error.location,
            reason="placeholders replace its variables, and the fields with placeholders are not"
            " checked",
            fix=f"add the {kind}, encrypted or with example values, to check these fields",
            error_problem=error.problem,
        )


class KnownUnits(msgspec.Struct, frozen=True):
    """The units of a repository, and what is known about those that could not be read."""

    ids: frozenset[UnitId]
    unread_names: frozenset[tuple[str, str]]
    """Kinds and names of units in files below units that were not rendered."""
    opaque: tuple[UnitId, ...]
    """Units whose source could not be fetched, and that may create units."""

    @classmethod
    def from_trees(cls, unit_trees: Collection[UnitTree]) -> KnownUnits:
        members = [member for unit_tree in unit_trees for member in unit_tree.members]
        unread = [member for unit_tree in unit_trees for member in unit_tree.unread]
        return cls(
            frozenset(member.unit.id for member in members),
            frozenset(
                (unit_id.kind, unit_id.name)
                for unit_id in (
                    *(member.unit.id for member in unread),
                    *_without_namespace(members),
                )
            ),
            tuple(member.unit.id for member in (*members, *unread) if _may_create_units(member)),
        )

    def is_unread(self, missing: UnitId) -> bool:
        """Return whether a unit is in a file below a unit that was not rendered."""
        return (missing.kind, missing.name) in self.unread_names


def _without_namespace(members: Iterable[RenderedUnit]) -> Iterator[UnitId]:
    """Yield the units whose resource has no namespace, though nothing sets one: Flux rejects it."""
    for member in members:
        policy, destination = member.unit.policy, member.unit.destination
        if policy.tracking is Tracking.FLUX and not destination.namespace:
            for document in member.documents:
                metadata = get_mapping(document.body, "metadata")
                if not get_text(metadata, "namespace"):
                    kind, name = get_text(document.body, "kind"), get_text(metadata, "name")
                    yield UnitId(kind, "", "", name)


def _may_create_units(member: RenderedUnit) -> bool:
    """Return whether a unit without a tree may create units. Charts of releases rarely do."""
    if not isinstance(member.result, RenderFailure) or member.result.trees:
        return False
    return any(
        not isinstance(source.source, ChartSource) and not isinstance(source.request, ChartRequest)
        for source in member.unit.sources
    )


def _unknown_dependency_findings(unit: Unit, known_units: KnownUnits) -> Iterator[Finding]:
    known = known_units.ids
    for dependency in unit.dependencies:
        if dependency.unit is None or dependency.unit in known:
            continue
        if known_units.is_unread(dependency.unit):
            problem = f"depends on `{dependency.unit}`, which was not read"
            yield Finding(
                code="units.unread",
                severity=Severity.ERROR,
                message=f"`{unit.id}` {problem}",
                location=dependency.location,
                reason="a unit that cannot be rendered creates it",
                unit=unit.id,
                unit_problem=problem,
                missing_dependency=dependency.unit,
            )
            continue
        problem = f"depends on `{dependency.unit}`, which does not exist"
        is_uncertain = bool(known_units.opaque) and not _is_misspelt(dependency.unit, known)
        consequence = "it never starts, because its dependency never becomes ready"
        exception = f", unless `{known_units.opaque[0]}` creates it" if is_uncertain else ""
        yield Finding(
            code="units.unknown",
            severity=Severity.ERROR,
            message=f"`{unit.id}` {problem}",
            location=dependency.location,
            reason=consequence + exception,
            fix=_dependency_fix(dependency.unit, known),
            unit=unit.id,
            unit_problem=problem,
            missing_dependency=dependency.unit,
            is_uncertain=is_uncertain,
        )


def _dependency_fix(missing: UnitId, known: Collection[UnitId]) -> str:
    """Return the fix for a dependency on a unit that does not exist."""
    if other := _unit_of_other_kind(missing, known):
        return f"depend on a unit of another kind with `tidegate.dev/depends-on: {other}`"
    if closest := _closest_unit(missing, known):
        return f"did you mean `{closest}`?"
    return f"correct the name in `dependsOn`, or add `{missing}`"


def misspelt_dependencies(unit: Unit, known: Collection[UnitId]) -> Iterator[UnitId]:
    """Yield the dependencies of a unit whose name is close to that of another unit."""
    dependency_ids = (
        dependency.unit for dependency in unit.dependencies if dependency.unit is not None
    )
    return (
        dependency_id
        for dependency_id in dependency_ids
        if dependency_id not in known and _is_misspelt(dependency_id, known)
    )


def _is_misspelt(missing: UnitId, known: Collection[UnitId]) -> bool:
    return (_unit_of_other_kind(missing, known) or _closest_unit(missing, known)) is not None


def _closest_unit(missing: UnitId, known: Collection[UnitId]) -> UnitId | None:
    """Return the unit of the same kind with a similar name, or in another namespace."""
    same_kind = [
        candidate
        for candidate in sorted(known)
        if (candidate.kind, candidate.cluster) == (missing.kind, missing.cluster)
    ]
    names = {
        candidate.name: candidate
        for candidate in same_kind
        if candidate.namespace == missing.namespace
    }
    other_namespaces = [candidate for candidate in same_kind if candidate.name == missing.name]
    closest = names.get(find_misspelled(missing.name, names, cutoff=UNIT_CUTOFF))
    return closest or (other_namespaces[0] if len(other_namespaces) == 1 else None)


def _unit_of_other_kind(missing: UnitId, known: Collection[UnitId]) -> UnitId | None:
    """Return a unit of another kind with the name, as `dependsOn` refers to one kind only."""
    others = (candidate for candidate in sorted(known) if candidate.kind not in {"", missing.kind})
    same_name = [
        candidate
        for candidate in others
        if (candidate.cluster, candidate.name) == (missing.cluster, missing.name)
    ]
    same_namespace = [
        candidate for candidate in same_name if candidate.namespace == missing.namespace
    ]
    return same_namespace[0] if same_namespace else same_name[0] if len(same_name) == 1 else None


def _assumed_source_findings(members: Iterable[RenderedUnit]) -> Iterator[Finding]:
    """Yield the note about an undeclared source that is assumed to be this repository."""
    assumed = [
        (member.unit, source.path)
        for member in members
        if isinstance(member.result, RenderResult)
        for source in member.unit.sources
        if isinstance(source.source, LocalSource) and isinstance(source.details, FluxDetails)
    ]
    for unit, path in assumed[:1]:
        names = join_quoted([assumed_unit.id for assumed_unit, _ in assumed], 1)
        yield Finding(
            code="units.checkout",
            severity=Severity.NOTE,
            message=f"source `flux-system` of {names} is assumed to be this directory",
            location=unit.location,
            reason=f"no file declares the source, and `{sanitize(path)}` exists here",
            fix="declare the source if it is another repository",
        )


def _self_managed_findings(member: RenderedUnit) -> Iterator[Finding]:
    """Yield the note that an Application creates itself. For Flux, that is the bootstrap."""
    unit = member.unit
    if unit.id.kind == "Application" and any(
        child.id == unit.id for child in member.declared.units
    ):
        yield Finding(
            code="units.itself",
            severity=Severity.NOTE,
            message=f"`{unit.id}` manages itself",
            location=unit.location,
            reason="its own Application is among the objects that it renders; it is planned once",
        )

"""AppProjects of a repository and of a cluster, and what they deny to units.

    projects = Projects.from_scan(scan, settings, clusters)
    await projects.load_live(unit_trees, list_live)
    unit_trees, findings = projects.apply(unit_trees)

A project is found by its name. Projects that a unit tree renders come before those in files, of
which the closest counts; one that the repository lacks may be live in the cluster. `default`
allows everything where no file defines it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import structs
from msgspec.structs import replace

from tidegate.dialect.argo.application import IN_CLUSTER_NAME, IN_CLUSTER_SERVER
from tidegate.dialect.argo.appset.queries import RegisteredCluster
from tidegate.dialect.argo.appset.reader import relocate_to_template
from tidegate.dialect.argo.project_permissions import (
    check_application_namespace,
    check_destination,
    check_source,
    find_slow_pattern,
    is_decision_certain,
    service_account_for,
    sync_windows_for,
)
from tidegate.dialect.argo.projects import KIND, read_project, rule_paths, with_global_projects
from tidegate.dialect.ownership.tracking import ARGO_NAMESPACE
from tidegate.documents import Document, read_first_value
from tidegate.documents.document import format_path
from tidegate.errors import DocumentError, Location, sanitize
from tidegate.model.config import ControllerSetting
from tidegate.model.display import join_quoted
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.labels import selector_matches
from tidegate.model.k8s.objects import FieldPath, Json
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.model.units.project import Project, ProjectRequest, ProjectScope, ProjectViolation
from tidegate.model.units.unit import Unit
from tidegate.workspace.discovery.appsets import ListLive
from tidegate.workspace.discovery.closest_file import ClosestFileIndex
from tidegate.workspace.discovery.scan import RepositoryScan
from tidegate.workspace.discovery.unit_tree import UnitTree

DEFAULT_PROJECT = "default"
GLOBAL_PROJECTS_SETTING, IMPERSONATION_SETTING = (
    "globalProjects",
    "application.sync.impersonation.enabled",
)
PROJECT_SUFFIXES = (".yaml", ".yml", ".json", ".tpl", ".tf", ".jsonnet", ".j2", ".gotmpl")
_PROJECT_TEXT = lazy_regex(
    rb"AppProject|argocd_project|^\s*(?:additionalP|p)rojects:", re.MULTILINE
)
"""What creates a project: an object, a resource of Terraform, or a value of a chart of Argo CD."""
ParsedProject = tuple[Project, tuple[Finding, ...]]


class Projects(msgspec.Struct):
    """The projects of a repository, with the settings of Argo CD and the known clusters."""

    scan: RepositoryScan
    settings: Mapping[str, ControllerSetting]
    clusters: Sequence[RegisteredCluster]
    _in_files: ClosestFileIndex[str, Document] = msgspec.field(default_factory=ClosestFileIndex)
    _live: dict[str, Document] = msgspec.field(default_factory=dict)
    _parsed: dict[Location, ParsedProject] = msgspec.field(default_factory=dict)

    @classmethod
    def from_scan(
        cls,
        scan: RepositoryScan,
        settings: Mapping[str, ControllerSetting],
        clusters: Sequence[RegisteredCluster],
    ) -> Projects:
        projects = cls(scan, settings, clusters)
        for file, documents in scan.documents.items():
            for document in filter(_is_project, documents):
                projects._in_files.add(get_text(document.body, "metadata", "name"), file, document)
        return projects

    async def load_live(self, unit_trees: Iterable[UnitTree], list_live: ListLive) -> None:
        """List projects that the repository lacks in the clusters that have Applications.

        Projects are in the namespace of Argo CD, and so are most Applications.
        """
        lookups: dict[tuple[str, str], None] = {}
        global_names = [
            get_text(entry, "projectName")
            for entry in _global_project_entries(self.settings.get(GLOBAL_PROJECTS_SETTING))
        ]
        for unit_tree in unit_trees:
            rendered = self._rendered_projects(unit_tree)
            for unit in (member.unit for member in unit_tree.members):
                names = (
                    [unit.project_request.project, *global_names]
                    if unit.project_request is not None
                    else []
                )
                if any(self._find_document(name, unit, rendered)[0] is None for name in names):
                    namespaces = (ARGO_NAMESPACE, unit.id.namespace)
                    lookups |= dict.fromkeys(
                        (unit.id.cluster, namespace) for namespace in namespaces
                    )
        for cluster, namespace in lookups:
            for name, body in (await list_live(KIND, cluster, namespace) or {}).items():
                location = Location(f"{KIND} {namespace}/{name} in the cluster")
                self._live.setdefault(name, Document(body, location))

    def apply(self, unit_trees: Iterable[UnitTree]) -> tuple[list[UnitTree], list[Finding]]:
        """Return the trees with the projects of their units, and findings about denials."""
        findings: list[Finding] = []
        missing: dict[str, list[Unit]] = {}
        result = []
        for unit_tree in unit_trees:
            rendered = self._rendered_projects(unit_tree)
            members = []
            for member in unit_tree.members:
                unit, unit_findings = self._apply_to_unit(member.unit, rendered, missing)
                findings += unit_findings
                members.append(member if unit is member.unit else replace(member, unit=unit))
            result.append(replace(unit_tree, members=tuple(members)))
        has_projects = bool(self._parsed)
        findings += (
            _missing_finding(name, units, self._mention(name), has_projects=has_projects)
            for name, units in missing.items()
        )
        return result, list(dict.fromkeys(findings))

    def _mention(self, name: str) -> str:
        """Return a file that names a project and seems to create it, such as a template."""
        return next(
            (
                file
                for file in self.scan.files
                if file.endswith(PROJECT_SUFFIXES)
                and (content := self.scan.content(file))
                and _PROJECT_TEXT.search(content)
                and name.encode() in content
            ),
            "",
        )

    def _rendered_projects(self, unit_tree: UnitTree) -> dict[str, tuple[Document, str]]:
        """Return the projects that a tree renders by name, and the namespace of each."""
        return {
            get_text(document.body, "metadata", "name"): (
                document,
                member.unit.destination.namespace,
            )
            for member in unit_tree.members
            for document in filter(_is_project, member.documents)
        }

    def _apply_to_unit(
        self,
        unit: Unit,
        rendered: Mapping[str, tuple[Document, str]],
        missing: dict[str, list[Unit]],
    ) -> tuple[Unit, list[Finding]]:
        project_request = unit.project_request
        if project_request is None:
            return unit, []
        project, findings = self._find_project(project_request.project, unit, rendered)
        if project is None:
            if project_request.project != DEFAULT_PROJECT:
                missing.setdefault(project_request.project, []).append(unit)
            return unit, []
        if project.labels and self._has_unknown_globals:
            project = structs.replace(project, may_inherit=True)
        global_projects = tuple(self._global_projects(project, unit, rendered))
        project = with_global_projects(project, global_projects) if global_projects else project
        scope = self._project_scope(project, project_request)
        return self._with_scope(unit, project_request, scope, list(findings))

    def _with_scope(
        self,
        unit: Unit,
        project_request: ProjectRequest,
        scope: ProjectScope,
        findings: list[Finding],
    ) -> tuple[Unit, list[Finding]]:
        refusals = [
            *_refusals(unit, project_request, scope, has_namespace=self._has_known_namespace(unit))
        ]
        policy = structs.replace(
            unit.policy,
            project_scope=scope,
            windows=sync_windows_for(scope.project, project_request, unit.id.name),
        )
        if self._impersonates and policy.identity is None:
            account = service_account_for(scope, project_request, unit.id.namespace)
            if isinstance(account, ProjectViolation):
                refusals.append((account, "spec.destination"))
            else:
                policy = structs.replace(policy, identity=ImpersonatedUser(user=account))
        governed = structs.replace(unit, policy=policy)
        findings += (denial_finding(governed, refusal, field) for refusal, field in refusals)
        if not refusals:
            findings += _uncertainty_findings(unit, project_request, scope)
        is_forbidden = refusals and not scope.project.may_inherit
        reason = f"project `{scope.project.name}` does not permit it" if is_forbidden else ""
        return structs.replace(governed, project_error=reason), findings

    def _has_known_namespace(self, unit: Unit) -> bool:
        """Return whether a parent or the file of an Application determines its namespace."""
        if unit.location is None or (unit.parent is not None and unit.parent.kind):
            return True
        documents = self.scan.documents.get(unit.location.name, ())
        return not any(
            document.location == unit.location
            and not get_text(document.body, "metadata", "namespace")
            for document in documents
        )

    @property
    def _has_unknown_globals(self) -> bool:
        """Return whether a file sets global projects that no known object has."""
        if GLOBAL_PROJECTS_SETTING in self.settings:
            return False
        marker = GLOBAL_PROJECTS_SETTING.encode()
        names = (name.rpartition("/")[2] for name in self.scan.files)
        return GLOBAL_PROJECTS_SETTING in names or bool(self.scan.documents_containing(marker))

    @property
    def _impersonates(self) -> bool:
        setting = self.settings.get(IMPERSONATION_SETTING)
        return setting is not None and str(setting.value).lower() == "true"

    def _find_project(
        self, name: str, unit: Unit, rendered: Mapping[str, tuple[Document, str]]
    ) -> tuple[Project | None, tuple[Finding, ...]]:
        document, namespace = self._find_document(name, unit, rendered)
        document = document or self._live.get(name)
        if document is None:
            return None, ()
        if document.location not in self._parsed:
            locate = _FieldLocations.from_document(document, self.scan)
            self._parsed[document.location] = read_project(document, namespace, locate)
        return self._parsed[document.location]

    def _find_document(
        self, name: str, unit: Unit, rendered: Mapping[str, tuple[Document, str]]
    ) -> tuple[Document | None, str]:
        """Return the project as the repository has it, and its namespace; None without one."""
        if name in rendered:
            return rendered[name]
        match = self._in_files.find(name, unit.location.name if unit.location else "")
        return match[1] if match else None, ""

    def _global_projects(
        self, project: Project, unit: Unit, rendered: Mapping[str, tuple[Document, str]]
    ) -> Iterator[Project]:
        for entry in _global_project_entries(self.settings.get(GLOBAL_PROJECTS_SETTING)):
            name, labels = get_text(entry, "projectName"), dict(project.labels)
            if (
                name
                and name != project.name
                and selector_matches(get_mapping(entry, "labelSelector"), labels)
            ):
                other, _ = self._find_project(name, unit, rendered)
                if other is not None:
                    yield other

    def _project_scope(self, project: Project, project_request: ProjectRequest) -> ProjectScope:
        """Return the scope with the cluster's server and name in Argo CD, where both are known."""
        server, name = project_request.server, project_request.cluster
        if server == IN_CLUSTER_SERVER or name == IN_CLUSTER_NAME:
            return ProjectScope(project=project, server=IN_CLUSTER_SERVER, cluster=IN_CLUSTER_NAME)
        for known_cluster in self.clusters:
            if (name and known_cluster.name == name) or (
                server and known_cluster.server.rstrip("/") == server
            ):
                return ProjectScope(
                    project=project,
                    server=known_cluster.server.rstrip("/"),
                    cluster=known_cluster.name,
                )
        return ProjectScope(project=project, server=server, cluster=name)


class _FieldLocations(msgspec.Struct, frozen=True):
    """Locations of the rules of a project, in its file as it is."""

    document: Document
    locations: Mapping[FieldPath, Location]

    @classmethod
    def from_document(cls, document: Document, scan: RepositoryScan) -> _FieldLocations:
        file = scan.locator.file(document.location.name)
        paths = rule_paths(document) if file.contains(document) else ()
        return cls(document, {path: file.locations.find(document, path) for path in paths})

    def __call__(self, path: FieldPath) -> Location:
        return self.locations.get(path) or self.document.location.with_field(format_path(path))


def denial_finding(unit: Unit, refusal: ProjectViolation, field_name: str = "") -> Finding:
    """Return the finding that a project denies something to a unit, at a field of the unit."""
    name = unit.project_request.project if unit.project_request else ""
    scope = unit.policy.project_scope
    may_inherit = scope is not None and scope.project.may_inherit
    finding = Finding(
        code="argo.project",
        severity=Severity.NOTE if may_inherit else Severity.ERROR,
        message=(
            f"project `{sanitize(name)}` does not permit {sanitize(refusal.message)}"
            f" for `{unit.id}`"
        ),
        reason=f"{sanitize(refusal.rule)}: {refusal.location}",
        fix="permit it in the project, or move the Application to another project",
        unit_names=(unit.id.qualified_name,),
        unit=unit.id,
        cause=f"{name}: {refusal.rule}: {refusal.message}",
    )
    return at_unit_field(unit, field_name, finding)


def _refusals(
    unit: Unit, project_request: ProjectRequest, scope: ProjectScope, *, has_namespace: bool
) -> Iterator[tuple[ProjectViolation, str]]:
    for url in project_request.repositories:
        if refusal := check_source(scope.project, url):
            yield refusal, "spec.source"
    if has_namespace and (refusal := check_application_namespace(scope.project, unit.id.namespace)):
        yield refusal, "metadata.namespace"
    if (project_request.server or project_request.cluster) and (
        refusal := check_destination(scope, project_request.namespace)
    ):
        yield refusal, "spec.destination"


def _uncertainty_findings(
    unit: Unit, project_request: ProjectRequest, scope: ProjectScope
) -> Iterator[Finding]:
    project = scope.project
    slow = find_slow_pattern(project) if unit.id.namespace != project.namespace else ""
    if is_decision_certain(scope, project_request.namespace) and not slow:
        return
    reason = f"`{sanitize(slow)}` could take forever to match and is not evaluated" if slow else ""
    unknown = "server" if scope.cluster else "name"
    yield Finding(
        code="argo.project-unknown",
        severity=Severity.NOTE,
        message=f"unknown whether project `{sanitize(project.name)}` permits `{unit.id}`",
        location=unit.location,
        reason=reason
        or (
            "the project permits only clusters that are registered for it"
            if project.only_scoped
            else (
                f"{project.location_of_list('destinations')} matches on the {unknown} of the"
                " cluster, which is unknown"
            )
        ),
        fix=(
            ""
            if slow or project.only_scoped
            else f"set the {unknown} of the cluster in `clusters` of tidegate.yaml"
        ),
    )


def at_unit_field(unit: Unit, field: str, finding: Finding) -> Finding:
    """Return the finding at a field of the unit; of a generated unit, at that of the template."""
    located = structs.replace(finding, location=unit.location and unit.location.with_field(field))
    return relocate_to_template(located) if unit.generated_by else located


def _missing_finding(
    name: str, units: Sequence[Unit], mention: str, *, has_projects: bool
) -> Finding:
    """Return a warning; a note if something else may create the project.

    `mention`: a file that no unit deploys and that seems to create it. If no unit has its project
    here, all may be made elsewhere.
    """
    names = join_quoted([unit.id for unit in units], 1)
    finding = Finding(
        code="argo.project-missing",
        severity=Severity.WARNING if has_projects and not mention else Severity.NOTE,
        message=f"project `{sanitize(name)}` of {names} not found",
        reason=f"`{mention}` seems to create it, but no unit here deploys this file"
        if mention
        else (
            "it is neither in the repository nor in a connected cluster; without it, Argo CD"
            " rejects the Application"
        ),
        fix="add the AppProject, or correct the name",
        cause=f"projects {mention}",
    )
    return at_unit_field(units[0], "spec.project", finding)


def _is_project(document: Document) -> bool:
    body = document.body
    return body.get("kind") == KIND and get_text(body, "apiVersion").startswith("argoproj.io/")


def _global_project_entries(setting: ControllerSetting | None) -> list[dict[str, Json]]:
    """Return the entries of `globalProjects`; none if the setting is invalid."""
    try:
        value = read_first_value(str(setting.value), setting.location.name) if setting else None
    except DocumentError:
        return []
    return get_mappings({"entries": value}, "entries")

"""AppProjects of a repository and of a cluster, and what they keep units from.

    projects = Projects.of(scan, settings, clusters)
    await projects.look(families, lives)
    families, findings = projects.govern(families)

A project goes by its name. Those that a family renders come before those that stand in files, and
of these the nearest counts; what the repository does not have may live in the cluster. `default`
allows everything where nobody writes it down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import structs
from msgspec.structs import replace

from tidegate.dialect.argo.application import OWN_CLUSTER, OWN_SERVER
from tidegate.dialect.argo.permits import (
    account_for,
    has_slow_pattern,
    is_certain,
    refuse_destination,
    refuse_home,
    refuse_source,
    windows_for,
)
from tidegate.dialect.argo.projects import KIND, project_paths, read_project, with_global
from tidegate.dialect.argo.sets.asking import KnownCluster
from tidegate.dialect.argo.sets.reading import in_template
from tidegate.dialect.tracking import ARGO_HOME
from tidegate.documents import Document, FieldPath, find_places, read, read_value
from tidegate.documents.document import path_text
from tidegate.errors import DocumentError, Place, foreign
from tidegate.files import read_whole
from tidegate.flows.discover.families import Family
from tidegate.flows.discover.nearest import Nearest
from tidegate.flows.discover.scan import Scan
from tidegate.flows.discover.sets import AskLives
from tidegate.model.config import Switch
from tidegate.model.finding import Finding, Severity
from tidegate.model.identity import Identity
from tidegate.model.labels import matches
from tidegate.model.objects import Json
from tidegate.model.project import Project, ProjectClaim, Reach, Refusal
from tidegate.model.reading import mapping, mappings, text
from tidegate.model.unit import Unit

DEFAULT = "default"
GLOBAL, IMPERSONATES = "globalProjects", "application.sync.impersonation.enabled"
Told = tuple[Project, tuple[Finding, ...]]


class Projects(msgspec.Struct):
    """The projects that stand in files, how Argo CD is set, and the clusters that are known."""

    scan: Scan
    settings: Mapping[str, Switch]
    clusters: Sequence[KnownCluster]
    _near: Nearest[str, Document] = msgspec.field(default_factory=Nearest)
    _living: dict[str, Document] = msgspec.field(default_factory=dict)
    _read: dict[Place, Told] = msgspec.field(default_factory=dict)

    @classmethod
    def of(
        cls, scan: Scan, settings: Mapping[str, Switch], clusters: Sequence[KnownCluster]
    ) -> Projects:
        found = cls(scan, settings, clusters)
        for file, documents in scan.documents.items():
            for one in filter(_is_project, documents):
                found._near.add(text(one.body, "metadata", "name"), file, one)
        return found

    async def look(self, families: Iterable[Family], lives: AskLives) -> None:
        """Ask the clusters that have Applications for projects that the repository has not.

        They are where Argo CD is, and that is where most Applications are.
        """
        wanted: dict[tuple[str, str], None] = {}
        added = [text(one, "projectName") for one in _entries(self.settings.get(GLOBAL))]
        for family in families:
            own = self._rendered(family)
            for unit in (one.unit for one in family.members):
                names = [unit.claim.project, *added] if unit.claim is not None else []
                if any(self._document(name, unit, own)[0] is None for name in names):
                    homes = (ARGO_HOME, unit.id.namespace)
                    wanted |= dict.fromkeys((unit.id.cluster, home) for home in homes)
        for cluster, home in wanted:
            for name, body in (await lives(KIND, cluster, home) or {}).items():
                place = Place(f"{KIND} {home}/{name} in the cluster")
                self._living.setdefault(name, Document(body, place))

    def govern(self, families: Iterable[Family]) -> tuple[list[Family], list[Finding]]:
        """The families with units that know their projects, and what these refuse."""
        findings: list[Finding] = []
        missing: dict[str, list[Unit]] = {}
        governed = []
        for family in families:
            own = self._rendered(family)
            members = []
            for member in family.members:
                unit, told = self._governed(member.unit, own, missing)
                findings += told
                members.append(member if unit is member.unit else replace(member, unit=unit))
            governed.append(replace(family, members=tuple(members)))
        findings += (_missing(name, units) for name, units in missing.items())
        return governed, list(dict.fromkeys(findings))

    def _rendered(self, family: Family) -> dict[str, tuple[Document, str]]:
        """By name, the projects that a family brings, and the namespace each goes to."""
        return {
            text(one.body, "metadata", "name"): (one, member.unit.destination.namespace)
            for member in family.members
            for one in filter(_is_project, member.documents)
        }

    def _governed(
        self,
        unit: Unit,
        own: Mapping[str, tuple[Document, str]],
        missing: dict[str, list[Unit]],
    ) -> tuple[Unit, list[Finding]]:
        claim = unit.claim
        if claim is None:
            return unit, []
        project, findings = self._find(claim.project, unit, own)
        if project is None:
            if claim.project != DEFAULT:
                missing.setdefault(claim.project, []).append(unit)
            return unit, []
        others = tuple(self._global(project, unit, own))
        project = with_global(project, others) if others else project
        reach = self._reach(project, claim)
        return self._under(unit, claim, reach, list(findings))

    def _under(
        self, unit: Unit, claim: ProjectClaim, reach: Reach, findings: list[Finding]
    ) -> tuple[Unit, list[Finding]]:
        refusals = [*_refusals(unit, claim, reach)]
        policy = structs.replace(
            unit.policy, reach=reach, windows=windows_for(reach.project, claim, unit.id.name)
        )
        if self._impersonates and policy.identity is None:
            account = account_for(reach, claim, unit.id.namespace)
            if isinstance(account, Refusal):
                refusals.append((account, "spec.destination"))
            else:
                policy = structs.replace(policy, identity=Identity(user=account))
        findings += (refused(unit, one, place) for one, place in refusals)
        if not refusals:
            findings += _unsure(unit, claim, reach)
        why = f"its project `{reach.project.name}` does not allow it" if refusals else ""
        return structs.replace(unit, policy=policy, refused=why), findings

    @property
    def _impersonates(self) -> bool:
        said = self.settings.get(IMPERSONATES)
        return said is not None and str(said.value).lower() == "true"

    def _find(
        self, name: str, near: Unit, own: Mapping[str, tuple[Document, str]]
    ) -> tuple[Project | None, tuple[Finding, ...]]:
        document, home = self._document(name, near, own)
        document = document or self._living.get(name)
        if document is None:
            return None, ()
        if document.place not in self._read:
            place_of = _Places.of(document, self.scan)
            self._read[document.place] = read_project(document, home, place_of)
        return self._read[document.place]

    def _document(
        self, name: str, near: Unit, own: Mapping[str, tuple[Document, str]]
    ) -> tuple[Document | None, str]:
        """The project as the repository has it, and the namespace it goes to."""
        if name in own:
            return own[name]
        found = self._near.find(name, near.where.name if near.where else "")
        return found[1] if found else None, ""

    def _global(
        self, project: Project, near: Unit, own: Mapping[str, tuple[Document, str]]
    ) -> Iterator[Project]:
        for one in _entries(self.settings.get(GLOBAL)):
            name, labels = text(one, "projectName"), dict(project.labels)
            if name and name != project.name and matches(mapping(one, "labelSelector"), labels):
                other, _ = self._find(name, near, own)
                if other is not None:
                    yield other

    def _reach(self, project: Project, claim: ProjectClaim) -> Reach:
        """The cluster as Argo CD has it: by its server and its name, where both are known."""
        server, name = claim.server, claim.cluster
        if server == OWN_SERVER or name == OWN_CLUSTER:
            return Reach(project=project, server=OWN_SERVER, cluster=OWN_CLUSTER)
        for one in self.clusters:
            if (name and one.name == name) or (server and one.server.rstrip("/") == server):
                return Reach(project=project, server=one.server.rstrip("/"), cluster=one.name)
        return Reach(project=project, server=server, cluster=name)


class _Places(msgspec.Struct, frozen=True):
    """Where the rules of a project stand, in its file as it is."""

    document: Document
    known: Mapping[FieldPath, Place]

    @classmethod
    def of(cls, document: Document, scan: Scan) -> _Places:
        paths = [*project_paths(document)]
        try:
            content = read_whole(scan.root / document.place.name)
            is_there = document in read(content, document.place.name)
        except (OSError, ValueError, DocumentError):
            return cls(document, {})
        places = find_places(content, [(document, one) for one in paths]) if is_there else ()
        return cls(document, dict(zip(paths, places, strict=False)))

    def __call__(self, path: FieldPath) -> Place:
        return self.known.get(path) or self.document.place.at(path_text(path))


def refused(unit: Unit, refusal: Refusal, field_name: str = "") -> Finding:
    """That a project does not allow something of a unit; the unit's own place is at fault."""
    name = unit.claim.project if unit.claim else ""
    finding = Finding(
        code="argo.project",
        severity=Severity.ERROR,
        sentence=f"project `{foreign(name)}` does not allow {foreign(refusal.sentence)}"
        f" to `{unit.id}`",
        why=f"{foreign(refusal.rule)}: {refusal.where}",
        fix="allow it there, or give the Application another project",
        about=(unit.id.called,),
    )
    return at_field(unit, field_name, finding)


def _refusals(unit: Unit, claim: ProjectClaim, reach: Reach) -> Iterator[tuple[Refusal, str]]:
    for url in claim.repositories:
        if refusal := refuse_source(reach.project, url):
            yield refusal, "spec.source"
    if refusal := refuse_home(reach.project, unit.id.namespace):
        yield refusal, "metadata.namespace"
    if (claim.server or claim.cluster) and (refusal := refuse_destination(reach, claim.namespace)):
        yield refusal, "spec.destination"


def _unsure(unit: Unit, claim: ProjectClaim, reach: Reach) -> Iterator[Finding]:
    project = reach.project
    slow = has_slow_pattern(project) if unit.id.namespace != project.home else ""
    if is_certain(reach, claim.namespace) and not slow:
        return
    why = f"`{foreign(slow)}` could take for ever and is not tried" if slow else ""
    lack = "server" if reach.cluster else "name"
    yield Finding(
        code="argo.project-unsure",
        severity=Severity.WARNING,
        sentence=f"nobody knows whether project `{foreign(project.name)}` allows `{unit.id}`",
        where=unit.where,
        why=why
        or (
            "it allows only clusters that are registered for it"
            if project.only_scoped
            else f"the {lack} of its cluster is not known, and {project.place_of('destinations')}"
            " asks for it"
        ),
        fix=""
        if slow or project.only_scoped
        else "name the cluster in `clusters` of tidegate.yaml",
    )


def at_field(unit: Unit, field: str, finding: Finding) -> Finding:
    """At a field of the unit; of one that a set makes, of the template."""
    placed = structs.replace(finding, where=unit.where and unit.where.at(field))
    return in_template(placed) if unit.made_by else placed


def _missing(name: str, units: Sequence[Unit]) -> Finding:
    more = f" and {len(units) - 1} more" if len(units) > 1 else ""
    finding = Finding(
        code="argo.project-missing",
        severity=Severity.WARNING,
        sentence=f"project `{foreign(name)}` of `{units[0].id}`{more} is not known here",
        why="it is not in the repository, nor seen in a cluster; without it Argo CD refuses the"
        " Application",
        fix="add the AppProject, or correct the name",
    )
    return at_field(units[0], "spec.project", finding)


def _is_project(document: Document) -> bool:
    kind, version = (text(document.body, one) for one in ("kind", "apiVersion"))
    return kind == KIND and version.startswith("argoproj.io/")


def _entries(said: Switch | None) -> list[dict[str, Json]]:
    """The global projects that Argo CD is told of; what cannot be read names none."""
    try:
        value = read_value(str(said.value), said.where.name) if said else None
    except DocumentError:
        return []
    return mappings({"entries": value}, "entries")

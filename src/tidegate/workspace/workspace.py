"""Units for a PATH, resolved for the chosen clusters.

async with open_workspace(request, target, settings) as (session, workspace):
    plan = await prepare_plan(workspace.unit_trees, session)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.clusters.reader import list_argocd_objects
from tidegate.clusters.session import ClusterTargets, LoadedRepository, Session, open_session
from tidegate.dialect.argo.appset.queries import RegisteredCluster
from tidegate.dialect.argo.argocd_cm import read_argocd_config
from tidegate.dialect.units import RESOURCE_HINT
from tidegate.errors import Location, PlanError, UsageError
from tidegate.health.lua import LuaRules
from tidegate.model.config import ControllerSetting
from tidegate.model.display import count_noun
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.capabilities import Capabilities
from tidegate.model.k8s.objects import Json
from tidegate.model.units.expressions import HealthExpressions
from tidegate.model.units.rendering import NO_ROOT
from tidegate.model.units.unit import Unit, UnitId
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.cluster_inputs import (
    ClusterDataReader,
    ClusterLookups,
    ClusterReleaseReader,
)
from tidegate.workspace.config import load_config
from tidegate.workspace.discovery.appsets import clusters_from_secrets
from tidegate.workspace.discovery.controller_settings import APPLICATION
from tidegate.workspace.discovery.discover import (
    discover,
    distinct_names,
    select_trees,
)
from tidegate.workspace.discovery.object_checks import find_typos
from tidegate.workspace.discovery.result import DiscoveryResult
from tidegate.workspace.discovery.scan import RepositoryScan
from tidegate.workspace.discovery.unit_tree import RenderedUnit, UnitTree
from tidegate.workspace.policies import configure_units
from tidegate.workspace.rendering.result import UNAVAILABLE_SOURCE_CODES, RenderFailure
from tidegate.workspace.request import LoadRequest
from tidegate.workspace.scope import Scope
from tidegate.workspace.selection import select_unit_ids

NO_CAPABILITIES = Capabilities()


class Workspace(msgspec.Struct, frozen=True):
    """The selected unit trees, with the findings about the repository."""

    unit_trees: tuple[UnitTree, ...]
    findings: tuple[Finding, ...] = ()
    are_alternatives: bool = False
    """Whether trees have units in common, so that only one of them can be deployed."""
    unavailable: frozenset[UnitId] = frozenset()
    """Units that cannot be rendered, and are assumed to be healthy."""
    controller_settings: Mapping[str, ControllerSetting] = msgspec.field(default_factory=dict)
    """Settings of the real controllers, by name."""
    scan: RepositoryScan = msgspec.field(default_factory=lambda: RepositoryScan(NO_ROOT, ()))
    """The scan of the tree that all locations refer to."""
    scope: Scope = Scope()
    """The selected part of the repository."""
    selected_names: tuple[str, ...] = ()
    """Names of the selected units, without the units below them; empty for all."""
    repository_trees: tuple[UnitTree, ...] = ()
    """All trees, with the unit resources of units whose parents are not selected."""
    repository: LoadedRepository = LoadedRepository()
    """What a session for these units needs to know of their repository."""
    reads_cluster: bool = False
    """Whether discovery read objects of the cluster."""

    @classmethod
    def from_discovery(
        cls, discovery: DiscoveryResult, request: LoadRequest, scripts: LuaRules
    ) -> Workspace:
        """Return the workspace of a discovery.

        `scripts`: all health rules that are used. Raises UsageError if a flag for plain units is
        given for a repository.
        """
        if discovery.is_repository and request.plain_unit_flags:
            raise _plain_unit_error(request)
        if request.selection is not None:
            names = select_unit_ids(discovery.unit_trees, request.selection)
            request = replace(request, units=names)
        unit_trees = configure_units(
            select_trees(discovery, request),
            discovery.controller_settings,
            request.policy,
            gates_children=scripts.find(*APPLICATION) is not None,
        )
        selected = DiscoveryResult(unit_trees, are_separate=discovery.are_separate)
        members = [member for unit_tree in unit_trees for member in unit_tree.members]
        all_members = (member for unit_tree in discovery.unit_trees for member in unit_tree.members)
        is_narrowed = bool(request.entry or request.units)
        scope = Scope.from_members(all_members, members) if is_narrowed else Scope()
        return cls(
            unit_trees,
            (
                *filter(scope.includes, discovery.findings),
                *find_typos(members, discovery.scan.locator),
            ),
            selected.are_alternatives,
            controller_settings=discovery.controller_settings,
            scan=discovery.scan,
            scope=scope,
            selected_names=request.units,
            repository_trees=discovery.unit_trees,
        )

    @property
    def members(self) -> tuple[RenderedUnit, ...]:
        return tuple(member for unit_tree in self.unit_trees for member in unit_tree.members)

    @property
    def depends_on_cluster(self) -> bool:
        """Whether units may differ with other kinds or objects in the cluster."""
        return self.reads_cluster or any(map(_may_see_kinds, self.members))

    @property
    def deployable_trees(self) -> tuple[UnitTree, ...]:
        """All trees, where they can be deployed together. Raises PlanError for alternatives."""
        if self.are_alternatives:
            roots = (unit_tree.members[0].unit for unit_tree in self.unit_trees)
            names = (f"`{name}`" for name in distinct_names(roots))
            problem = f"several roots create the same units: {', '.join(names)}"
            hint = "select one with `--root`"
            raise PlanError("plan.root", problem, hint=hint)
        return self.unit_trees

    def findings_for(self, members: Iterable[RenderedUnit]) -> tuple[Finding, ...]:
        """Return the findings about these units alone."""
        keys = {(member.unit.id, member.unit.location) for member in members}
        return tuple(
            finding
            for finding, units in self._findings_with_units()
            if any((u.id, u.location) in keys for u in units)
        )

    @property
    def findings_by_unit(self) -> dict[tuple[UnitId, Location | None], tuple[Finding, ...]]:
        """The findings about each unit, by its ID and location."""
        grouped: dict[tuple[UnitId, Location | None], list[Finding]] = {}
        for finding, units in self._findings_with_units():
            for unit in units:
                grouped.setdefault((unit.id, unit.location), []).append(finding)
        return {unit: tuple(findings) for unit, findings in grouped.items()}

    @property
    def faulty_units(self) -> dict[UnitId, Finding]:
        """Units with an error in their definition, and the first of their errors."""
        return self.faulty_units_for()

    def faulty_units_for(self, codes: Collection[str] = ()) -> dict[UnitId, Finding]:
        """Return the units with errors of these codes, or of any code, and the first of them."""
        faults: dict[UnitId, Finding] = {}
        for finding, units in self._findings_with_units():
            if finding.severity is Severity.ERROR and (not codes or finding.code in codes):
                for unit in units:
                    faults.setdefault(unit.id, finding)
        return faults

    def _findings_with_units(self) -> Iterator[tuple[Finding, list[Unit]]]:
        """Yield each finding that has a location, with the units that it is about.

        These are the units that it names, else those that start at the last line before it.
        """
        files: dict[str, list[tuple[int, Unit]]] = {}
        for unit in (member.unit for member in self.members):
            if unit.location is not None:
                files.setdefault(unit.location.name, []).append((unit.location.line, unit))
        for finding in self.findings:
            units_in_file = files.get(finding.location.name, []) if finding.location else []
            if finding.location is None or not units_in_file:
                continue
            if finding.unit_names:
                yield (
                    finding,
                    [
                        unit
                        for _, unit in units_in_file
                        if unit.id.qualified_name in finding.unit_names
                    ],
                )
            else:
                lines = (line for line, _ in units_in_file if 0 < line <= finding.location.line)
                first = max(lines, default=finding.location.line)
                yield finding, [unit for line, unit in units_in_file if line == first]

    def split_alternatives(self) -> list[Workspace]:
        """Return a workspace for each alternative, as they are not deployed together."""
        if not self.are_alternatives:
            return [self]
        scopes = (
            Scope.from_members(self.members, unit_tree.members) for unit_tree in self.unit_trees
        )
        return [
            replace(
                self,
                unit_trees=(unit_tree,),
                findings=tuple(filter(scope.includes, self.findings)),
                are_alternatives=False,
                scope=scope,
            )
            for unit_tree, scope in zip(self.unit_trees, scopes, strict=True)
        ]

    def require_no_errors(self, more_findings: tuple[Finding, ...], *, keep_going: bool) -> None:
        """Raise PlanError if a unit has an error, unless the other units are to continue."""
        errors = [
            finding
            for finding in (*self.findings, *more_findings)
            if finding.severity is Severity.ERROR
        ]
        if errors and not keep_going:
            problem = f"nothing was written: {count_noun(len(errors), 'error')} reported above"
            hint = "skip units with errors and their dependents with `--skip-broken`"
            raise PlanError("plan.errors", problem, hint=hint)


def file_and_line(location: Location | None) -> tuple[str, int]:
    """Return the file and the line of a location; an empty name and 0 without one."""
    return (location.name, location.line) if location else ("", 0)


@asynccontextmanager
async def open_workspace(
    request: LoadRequest,
    target: ClusterTargets,
    settings: RenderSettings,
    loaded: Workspace | None = None,
) -> AsyncIterator[tuple[Session, Workspace]]:
    """Open a session for a target, and yield it with the workspace loaded for it.

    `loaded`: the workspace, if it was loaded before and does not depend on the cluster, which is
    simulated.
    Units may be for a cluster that the target does not name: a simulated one is added, and the
    context of a real one is in the configuration. Raises PlanError if it is not.
    """
    expressions = await asyncio.to_thread(_health_expressions, Path(request.path_or_url))
    target = replace(target, expressions=expressions)
    if loaded is not None:
        async with open_session(target, settings) as session:
            session.use_repository(loaded.repository)
            missing = _missing_clusters(loaded, target)
            if missing:
                session.add_clusters(missing)
            yield session, loaded
        return
    async with AsyncExitStack() as stack:
        session, workspace = await _open_and_load(request, target, settings, stack)
        missing = _missing_clusters(workspace, target)
        if missing and target.simulation is not None:
            session.add_clusters(missing)  # new simulated clusters serve the same kinds
        elif missing:
            await stack.aclose()
            contexts = _contexts_for(missing, request, target)
            extended_target = replace(target, clusters=(*target.contexts.items(), *contexts))
            session, workspace = await _open_and_load(request, extended_target, settings, stack)
        yield session, workspace


def _missing_clusters(workspace: Workspace, target: ClusterTargets) -> list[str]:
    """Return the destination clusters of units that a target does not have."""
    clusters = destination_clusters(workspace.unit_trees)
    return [cluster for cluster in clusters if cluster not in target.contexts]


def _health_expressions(path: Path) -> tuple[HealthExpressions, ...]:
    """Return the health expressions of the repository of a path; none for an address."""
    return load_config(path).health if path.exists() else ()


async def _open_and_load(
    request: LoadRequest, target: ClusterTargets, settings: RenderSettings, stack: AsyncExitStack
) -> tuple[Session, Workspace]:
    session = await stack.enter_async_context(open_session(target, settings))
    return session, await load_workspace(session, request)


async def load_workspace(session: Session, request: LoadRequest) -> Workspace:
    """Load the workspace as it is now, for the clusters of a session."""
    target, settings = session.targets, session.render_settings
    contexts = target.contexts
    data_reader = ClusterDataReader(session.world, next(iter(contexts)))
    settings = replace(settings, get_cluster_data=data_reader)
    registered_clusters: dict[tuple[str, str], dict[str, RegisteredCluster]] = {}
    releases = ClusterReleaseReader(session.world, contexts, next(iter(contexts)))
    settings = replace(settings, get_release=releases, get_release_manifest=releases.read_manifest)
    settings = replace(
        settings, look_up=ClusterLookups(session), is_simulated=bool(target.simulation)
    )

    async def get_capabilities(cluster: str) -> Capabilities:
        return await session.capabilities(session.cluster_or_default(cluster))

    async def list_live(
        kind: str, cluster: str, namespace: str
    ) -> Mapping[str, dict[str, Json]] | None:
        resolved_cluster = session.cluster_or_default(cluster)
        objects = await list_argocd_objects(
            session.world, kind, namespace, cluster=resolved_cluster
        )
        if kind == "Secret":
            registered_clusters[resolved_cluster, namespace] = clusters_from_secrets(
                (objects or {}).values()
            )
        # A simulated cluster without such objects does not mean that Argo CD has none.
        return objects or None if target.simulation else objects

    discovery = await discover(request, settings, get_capabilities, list_live)
    argocd_config = read_argocd_config(discovery.controller_settings)
    repository = LoadedRepository(
        root=discovery.scan.root,
        declared_clusters=discovery.clusters,
        registered_clusters=registered_clusters,
        scripts=discovery.scripts,
        owner_label=argocd_config.instance_label if argocd_config.labels_only else "",
    )
    session.use_repository(repository)
    workspace = Workspace.from_discovery(discovery, request, session.evaluator.scripts)
    reads = bool(registered_clusters or data_reader.has_read)
    return replace(workspace, repository=repository, reads_cluster=reads)


def _may_see_kinds(member: RenderedUnit) -> bool:
    """Return whether a unit may differ with other kinds: a chart, or one that is not rendered."""
    result = member.result
    if isinstance(result, RenderFailure):
        return not all(error.code in UNAVAILABLE_SOURCE_CODES for error in result.errors)
    return any(source.is_chart for source in result.sources)


def _contexts_for(
    missing: list[str], request: LoadRequest, target: ClusterTargets
) -> list[tuple[str, str | None]]:
    """Return the contexts of clusters from the configuration. Raises PlanError if it has none.

    The cluster without a name has the context of the target.
    """
    config = load_config(Path(request.path_or_url))
    contexts: dict[str, str | None] = {"": target.context}
    contexts |= {
        name: cluster.context for name in missing if (cluster := config.find_cluster(name))
    }
    unknown = [name for name in missing if name not in contexts]
    if unknown:
        raise _unknown_clusters_error(unknown)
    return [(name, contexts[name]) for name in missing]


async def load_without_cluster(
    request: LoadRequest, settings: RenderSettings, *, only_units: bool = False
) -> Workspace:
    """Load the workspace for no cluster in particular.

    With `only_units`, charts and overlays without units are not rendered.
    """
    settings = replace(settings, search_pattern=RESOURCE_HINT if only_units else None)

    async def get_capabilities(_cluster: str) -> Capabilities:
        return NO_CAPABILITIES

    discovery = await discover(request, settings, get_capabilities)
    return Workspace.from_discovery(discovery, request, discovery.scripts)


def destination_clusters(unit_trees: Iterable[UnitTree]) -> list[str]:
    """Return the destination clusters of units, each once."""
    members = (member for unit_tree in unit_trees for member in unit_tree.members)
    return list(dict.fromkeys(member.unit.destination.cluster for member in members))


def require_known_clusters(workspace: Workspace, session: Session) -> None:
    """Raise PlanError if units are for a cluster that the session does not have."""
    require_clusters(destination_clusters(workspace.unit_trees), session)


def require_clusters(names: Iterable[str], session: Session) -> None:
    """Raise PlanError if the session does not have a cluster of such a name."""
    missing = [name for name in dict.fromkeys(names) if name not in session.targets.contexts]
    if missing:
        raise _unknown_clusters_error(missing)


def _plain_unit_error(request: LoadRequest) -> UsageError:
    flags = ", ".join(f"`{flag}`" for flag in request.plain_unit_flags)
    verb = "applies" if len(request.plain_unit_flags) == 1 else "apply"
    problem = (
        f"{flags} {verb} only to a plain directory, chart or overlay; this repository defines units"
    )
    hint = "set it in the unit, or set PATH to one directory of manifests"
    return UsageError("usage.plain", problem, location=Location(request.path_or_url), hint=hint)


def _unknown_clusters_error(missing: list[str]) -> PlanError:
    names = ", ".join(f"`{name}`" for name in missing)
    problem = f"unknown destination clusters: {names}"
    hint = "map each one with `--cluster NAME=CONTEXT`, or in `clusters` of tidegate.yaml"
    return PlanError("plan.cluster", problem, hint=hint)

"""Assumptions: missing dependencies that simulated clusters get as given objects.

async with open_with_assumptions(request, target, settings) as (session, workspace, missing):
    ...

Units whose source cannot be fetched are assumed to provide what other units need.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager

import msgspec
from msgspec.structs import replace

from tidegate.clusters.session import ClusterTargets, Session
from tidegate.errors import TidegateError
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.objects import Kind
from tidegate.model.plans.missing_dependency import NEVER_ASSUMED, DependencyType, MissingDependency
from tidegate.model.simulation.preinstalled import (
    GivenCluster,
    GivenKind,
    GivenOperator,
    format_kind_title,
)
from tidegate.model.units.unit import Unit, UnitId
from tidegate.planning.missing import find_missing
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.discovery.findings import (
    describe_needed_sources,
    misspelt_dependencies,
)
from tidegate.workspace.discovery.unit_tree import RenderedUnit
from tidegate.workspace.rendering.result import UNAVAILABLE_SOURCE_CODES, RenderFailure
from tidegate.workspace.request import LoadRequest
from tidegate.workspace.workspace import (
    Workspace,
    destination_clusters,
    load_workspace,
    open_workspace,
    require_known_clusters,
)


def with_unavailable_units(workspace: Workspace) -> Workspace:
    """Return the workspace with unavailable units listed, and their errors as warnings."""
    unavailable = [member for member in workspace.members if _is_unavailable(member)]
    opaque_messages: dict[tuple[UnitId | None, str, str], str] = {
        (member.unit.id, error.code, error.problem): _opaque_message(member.unit, error)
        for member in unavailable
        for error in _render_errors(member)
    }
    unit_ids = {member.unit.id for member in workspace.members}
    units = [member.unit for member in workspace.members]
    typos = {(unit.id, name) for unit in units for name in misspelt_dependencies(unit, unit_ids)}
    findings = tuple(_as_warning(finding, opaque_messages, typos) for finding in workspace.findings)
    return replace(
        workspace,
        findings=findings,
        unavailable=frozenset(member.unit.id for member in unavailable),
    )


def _is_unavailable(member: RenderedUnit) -> bool:
    """Return whether a unit could not be rendered only because its source cannot be fetched."""
    if not isinstance(member.result, RenderFailure) or member.unit.is_path:
        return False
    return all(error.code in UNAVAILABLE_SOURCE_CODES for error in _render_errors(member))


def _render_errors(member: RenderedUnit) -> tuple[TidegateError, ...]:
    return member.result.errors if isinstance(member.result, RenderFailure) else ()


def _opaque_message(unit: Unit, error: TidegateError) -> str:
    return f"cannot render `{unit.id}`{describe_needed_sources(unit, error)}: {error.problem}"


def _as_warning(
    finding: Finding,
    opaque_messages: Mapping[tuple[UnitId | None, str, str], str],
    typos: Collection[tuple[UnitId | None, UnitId | None]],
) -> Finding:
    """Return a finding as a warning if what it reports as missing is assumed to exist.

    `opaque_messages`: by unit, code and problem of an error of its source.
    `typos`: units, each with a misspelt dependency.
    """
    is_typo = (finding.unit, finding.missing_dependency) in typos
    if finding.code in {"units.unknown", "units.unread"} and not is_typo:
        reason = "not in this part of the repository; the dependency is assumed to be ready"
        return msgspec.structs.replace(finding, severity=Severity.WARNING, reason=reason)
    if finding.code == "appset.unavailable":
        reason = "its Applications are unknown; what other units need from them is assumed to exist"
        return msgspec.structs.replace(finding, severity=Severity.WARNING, reason=reason)
    message = opaque_messages.get((finding.unit, finding.code, finding.error_problem))
    if message is None:
        return finding
    return Finding(
        code="units.unavailable",
        severity=Severity.WARNING,
        message=message,
        location=finding.location,
        reason="its objects are unknown; what other units need from them is assumed to exist",
        fix=finding.fix,
        unit=finding.unit,
    )


@asynccontextmanager
async def open_with_assumptions(
    request: LoadRequest,
    target: ClusterTargets,
    render_settings: RenderSettings,
    *,
    empty_cluster: bool = False,
    loaded: Workspace | None = None,
) -> AsyncIterator[tuple[Session, Workspace, tuple[MissingDependency, ...]]]:
    """Open a session and a workspace, with the missing dependencies of simulated clusters.

    The clusters then have the assumed objects, unless an empty cluster is requested. Charts see
    which kinds exist and may render more dependencies: units that depend on the cluster are loaded
    again until nothing new is missing. Alternative root units have different dependencies: for them
    nothing is assumed. `loaded`: the workspace, if it was loaded before and does not depend on the
    cluster.
    """
    missing: tuple[MissingDependency, ...] = ()
    is_searched = False
    assumes = target.simulation is not None and not empty_cluster
    render_settings = replace(render_settings, skips_unavailable=assumes, requires_data=not assumes)
    while True:
        opening = open_workspace(request, target, render_settings, loaded)
        async with opening as (session, workspace):
            config = session.targets.simulation
            if config is None or workspace.are_alternatives:
                yield session, workspace, ()
                return
            assumed = dict(config.assumed)
            if not is_searched:
                newly_missing = await find_missing(workspace, session)
                assumed = _merge_given(assumed, given_for_missing(newly_missing))
                missing = _unique((*missing, *newly_missing))
            if empty_cluster or assumed == dict(config.assumed):
                yield (
                    session,
                    workspace if empty_cluster else with_unavailable_units(workspace),
                    missing,
                )
                return
            target = replace(session.targets, simulation=replace(config, assumed=assumed))
            is_searched = not workspace.depends_on_cluster
            loaded = workspace if is_searched else None


async def reload_with_assumptions(
    session: Session, request: LoadRequest
) -> tuple[Workspace, tuple[MissingDependency, ...]]:
    """Load the workspace again for an open session, with its newly missing dependencies.

    Simulated clusters get the assumed objects, and new destination clusters are created.
    """
    missing: tuple[MissingDependency, ...] = ()
    while True:
        workspace = await load_workspace(session, request)
        config = session.targets.simulation
        if config is None:
            require_known_clusters(workspace, session)
            return workspace, ()
        new = [
            cluster
            for cluster in destination_clusters(workspace.unit_trees)
            if cluster not in session.targets.contexts
        ]
        if new:
            session.add_clusters(new)
            continue
        if not session.render_settings.skips_unavailable:
            return workspace, ()
        newly_missing = await find_missing(workspace, session)
        missing = _unique((*missing, *newly_missing))
        new_given = {
            name: given
            for name, given in given_for_missing(newly_missing).items()
            if _merge_given(config.assumed, {name: given}) != dict(config.assumed)
        }
        if not new_given:
            return with_unavailable_units(workspace), missing
        session.assume(new_given)


def given_for_missing(dependencies: Iterable[MissingDependency]) -> dict[str, GivenCluster]:
    """Return the given objects that replace missing dependencies, by cluster.

    Missing objects of the application itself stay missing.
    """
    given_clusters: dict[str, GivenCluster] = {}
    for dependency in dependencies:
        if dependency.type not in NEVER_ASSUMED:
            given = given_clusters.get(dependency.cluster, GivenCluster())
            given_clusters[dependency.cluster] = given.merged_with(given_for_dependency(dependency))
    return given_clusters


def given_for_dependency(dependency: MissingDependency) -> GivenCluster:
    """Return the given objects that replace one missing dependency."""
    ref, kinds = dependency.ref, dependency.kinds
    match dependency.type:
        case DependencyType.OPERATOR if ref.name:
            operator = GivenOperator(ref.name, definitions=not dependency.has_crds)
            return GivenCluster(operators=(operator,))
        case DependencyType.OPERATOR:
            served = (_given_kind(kind, dependency, defined=False) for kind in kinds)
            return GivenCluster(kinds=tuple(served))
        case DependencyType.KIND:
            defined = (_given_kind(kind, dependency, defined=True) for kind in kinds)
            return GivenCluster(kinds=tuple(defined))
        case DependencyType.NAMESPACE:
            return GivenCluster(namespaces=(ref.name,))
        case DependencyType.OBJECT:
            object_name = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
            return GivenCluster(
                names={format_kind_title(ref.kind.group, ref.kind.name): (object_name,)}
            )
        case (
            DependencyType.SETTING
            | DependencyType.SERVICE
            | DependencyType.PART
            | DependencyType.TRUST_ROOT
        ):
            return GivenCluster()


def _given_kind(kind: Kind, dependency: MissingDependency, *, defined: bool) -> GivenKind:
    return GivenKind(
        name=f"{kind.api_version}/{kind.name}",
        cluster_wide=dependency.cluster_wide,
        defined=defined,
        served=not dependency.is_served,
    )


def _merge_given(
    old: Mapping[str, GivenCluster], new: Mapping[str, GivenCluster]
) -> dict[str, GivenCluster]:
    names = dict.fromkeys((*old, *new))
    none = GivenCluster()
    return {name: old.get(name, none).merged_with(new.get(name, none)) for name in names}


def _unique(dependencies: Iterable[MissingDependency]) -> tuple[MissingDependency, ...]:
    """Return each dependency once, as it was first reported."""
    by_key: dict[tuple[str, DependencyType, object], MissingDependency] = {}
    for dependency in dependencies:
        by_key.setdefault((dependency.cluster, dependency.type, dependency.ref), dependency)
    return tuple(by_key.values())

"""Assumptions: missing dependencies that simulated clusters get as given objects.

async with open_with_assumptions(request, target, settings) as (session, workspace, missing):
    ...

Units whose source cannot be fetched are assumed to provide what other units need.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from msgspec.structs import replace

from tidegate.flows.absences import find_missing
from tidegate.flows.entering import (
    Workspace,
    destination_clusters,
    load_workspace,
    open_workspace,
    require_known_clusters,
)
from tidegate.flows.opaque import with_unavailable_units
from tidegate.flows.pointing import LoadRequest
from tidegate.flows.rendering import RenderSettings
from tidegate.flows.session import ClusterTargets, Session
from tidegate.model.absence import NEVER_ASSUMED, DependencyType, MissingDependency
from tidegate.model.given import GivenCluster, GivenKind, GivenOperator, format_kind_title
from tidegate.model.objects import Kind


@asynccontextmanager
async def open_with_assumptions(
    request: LoadRequest,
    target: ClusterTargets,
    render_settings: RenderSettings,
    *,
    greenfield: bool = False,
) -> AsyncIterator[tuple[Session, Workspace, tuple[MissingDependency, ...]]]:
    """Open a session and a workspace, with the missing dependencies of simulated clusters.

    The clusters then have the assumed objects, unless `greenfield` is set. Charts see which
    kinds exist and may render more dependencies, so this is repeated until nothing new is
    missing. Alternative root units have different dependencies: for them nothing is assumed.
    """
    missing: tuple[MissingDependency, ...] = ()
    render_settings = replace(
        render_settings, skips_unavailable=target.simulation is not None and not greenfield
    )
    while True:
        async with open_workspace(request, target, render_settings) as (session, workspace):
            config = session.targets.simulation
            if config is None or workspace.are_alternatives:
                yield session, workspace, ()
                return
            newly_missing = await find_missing(workspace, session)
            given = given_for_missing(newly_missing)
            assumed = _merge_given(config.assumed, given)
            missing = _unique((*missing, *newly_missing))
            if greenfield or assumed == dict(config.assumed):
                yield (
                    session,
                    workspace if greenfield else with_unavailable_units(workspace),
                    missing,
                )
                return
            target = replace(session.targets, simulation=replace(config, assumed=assumed))


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

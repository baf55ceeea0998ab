"""Names for shell completion, from a repository and a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.clusters.reader import ClusterReader
from tidegate.clusters.session import ClusterTargets, Session, open_session
from tidegate.dialect.controllers.known import CONTROLLERS
from tidegate.health.argo.verdicts import is_hook
from tidegate.inspection.lineage import matches_kind
from tidegate.model.k8s.json_fields import object_ref
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.plan.changes.rerun import JOB_KIND
from tidegate.workspace.rendering.context import user_render_settings
from tidegate.workspace.request import LoadRequest
from tidegate.workspace.selection import list_resources
from tidegate.workspace.workspace import load_without_cluster
from tidegate.world.requests import Selection, View

TIMEOUT = Ms(2 * SECOND)
"""Limit of cluster requests: the user waits at the cursor."""


async def list_unit_names(path: str, kinds: Sequence[str]) -> list[str]:
    """Return names of units and sources in a repository; nothing is fetched."""
    workspace = await load_without_cluster(
        LoadRequest(path_or_url=path), user_render_settings(offline=True), only_units=True
    )
    return [
        resource.id.name
        for resource in list_resources(workspace.unit_trees)
        if resource.id.kind in kinds
    ]


async def list_object_names(path: str, kind: str) -> list[str]:
    """Return names of objects that a repository renders, of a kind as users write it."""
    return [ref.name for ref, _ in await _rendered_objects(path) if matches_kind(ref.kind, kind)]


async def list_kind_names(path: str) -> list[str]:
    """Return the kinds that a repository renders, as users type them."""
    return [*dict.fromkeys(ref.kind.name.lower() for ref, _ in await _rendered_objects(path))]


async def list_job_names(path: str) -> list[str]:
    """Return names of Jobs and hooks that a repository renders."""
    return [
        ref.name
        for ref, body in await _rendered_objects(path)
        if (ref.kind.group, ref.kind.name) == JOB_KIND or is_hook(body)
    ]


async def _rendered_objects(path: str) -> list[tuple[Ref, dict[str, Json]]]:
    """Return all objects that the units of a repository render to; nothing is fetched."""
    workspace = await load_without_cluster(
        LoadRequest(path_or_url=path), user_render_settings(offline=True)
    )
    bodies = (
        document.body
        for unit_tree in workspace.unit_trees
        for member in unit_tree.members
        for document in member.documents
    )
    return [
        (
            object_ref(body),
            body,
        )
        for body in bodies
    ]


async def list_live_object_names(target: ClusterTargets, kind: str) -> list[str]:
    """Return names of objects of a kind in a cluster, if it answers in time."""
    async with open_session(target, user_render_settings(offline=True)) as session:
        served = {
            served_kind.kind
            for served_kind in await session.kinds()
            if matches_kind(served_kind.kind, kind)
        }
        return await _list_names(session, sorted(served))


async def list_live_unit_names(target: ClusterTargets, kinds: Sequence[str]) -> list[str]:
    """Return names of units and sources in a cluster, if it answers in time."""
    groups = {
        (CONTROLLERS[kind_name].group, kind_name) for kind_name in kinds if kind_name in CONTROLLERS
    }
    async with open_session(target, user_render_settings(offline=True)) as session:
        served = [served_kind.kind for served_kind in await session.kinds()]
        served_kinds = {(kind.group, kind.name): kind for kind in reversed(served)}
        return await _list_names(
            session,
            [
                served_kinds[group_kind]
                for group_kind in sorted(groups)
                if group_kind in served_kinds
            ],
        )


async def _list_names(session: Session, kinds: Sequence[Kind]) -> list[str]:
    reader = ClusterReader(session.world, timeout=TIMEOUT)
    listing = await reader.list_each(Selection(kind, view=View.METADATA) for kind in kinds)
    return [live.ref.name for live in listing.items]

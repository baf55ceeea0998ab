"""Suspension and resumption of units and sources in their cluster.

unit resource     where the cluster has it: with the fields of its dialect
record            else: a ConfigMap of Tidegate next to the journal of the unit
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidegate.clusters.session import Session, user_identity
from tidegate.controllers.requests import LiveUnitResource, patch_object
from tidegate.controllers.takeover import find_running_controllers
from tidegate.dialect.controllers.requests import is_suspended, suspend_patch
from tidegate.engine.records.markers import build_suspension, suspension_ref
from tidegate.engine.records.storage import TIDEGATE_NAMESPACE
from tidegate.errors import Location
from tidegate.model.k8s.kinds import NAMESPACE
from tidegate.model.k8s.objects import Json, Ref
from tidegate.model.units.unit import UnitId
from tidegate.workspace.selection import SelectedResource
from tidegate.world.errors import raise_for_error
from tidegate.world.messages import AlreadyExists, NotFound
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import Request, Verb, Write


class SuspensionResult(msgspec.Struct, frozen=True):
    """The result of suspending or resuming a unit or a source."""

    resource: SelectedResource
    live_resource: LiveUnitResource | None
    """The unit resource as it was; None if only a Tidegate record exists."""
    is_suspended_in_git: bool
    """Whether Git suspends it, so that the next rollout does so again."""


async def suspend(
    resource: SelectedResource, session: Session, *, suspended: bool
) -> SuspensionResult:
    """Suspend a unit or source, or resume it. Raises ClusterError."""
    live = await session.reader(resource.id.cluster).get(resource.cluster_ref.ref)
    live_resource = None if live is None else LiveUnitResource(resource.id, live)
    if live_resource is not None:
        await patch_object(
            live_resource.cluster_ref, suspend_patch(live_resource.body, suspend=suspended), session
        )
    if live_resource is None or not suspended:
        await _write_record(resource.id, session, suspended=suspended)
    return SuspensionResult(resource, live_resource, is_suspended(resource.body))


async def find_controllers(
    resumed: Sequence[SuspensionResult], session: Session
) -> tuple[frozenset[tuple[str, str]], tuple[str, ...]]:
    """Return the clusters and kinds whose controllers continue with resumed resources.

    Also return notes on what is not visible.
    """
    cluster_kinds = {
        (result.resource.id.cluster, result.resource.id.kind)
        for result in resumed
        if result.live_resource
    }
    reachable = sorted(
        cluster_kind
        for cluster_kind in cluster_kinds
        if cluster_kind[0] in session.targets.contexts
    )
    return await find_running_controllers(reachable, session)


async def _write_record(unit_id: UnitId, session: Session, *, suspended: bool) -> None:
    """Write the record of a suspension, or delete it."""
    location, tracking_id = Location(str(unit_id)), unit_id.tracking_id
    if not suspended:
        request = _delete_request(tracking_id)
        (outcome,) = await send_requests(session.world, request, cluster=unit_id.cluster)
        raise_for_error(outcome, "resuming", location, ignored=NotFound)
        return
    for request in (_namespace_request(), build_suspension(tracking_id, user_identity())):
        (outcome,) = await send_requests(session.world, request, cluster=unit_id.cluster)
        raise_for_error(outcome, "suspending", location, ignored=AlreadyExists)


def _delete_request(tracking_id: str) -> Request:
    return Write(verb=Verb.DELETE, ref=suspension_ref(tracking_id))


def _namespace_request() -> Request:
    body: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TIDEGATE_NAMESPACE}}
    ref = Ref(NAMESPACE, "", TIDEGATE_NAMESPACE)
    return Write(verb=Verb.CREATE, ref=ref, body=msgspec.json.encode(body))

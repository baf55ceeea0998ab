"""Requests to a running Argo CD or Flux controller, like their own commands.

Requests and responses are on the unit resources. Progress messages of a controller are printed
while Tidegate waits, so that the user need not wait for the timeout.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from tidegate.clusters.session import Session
from tidegate.controllers.takeover import find_running_controllers
from tidegate.dialect.controllers.known import CONTROLLERS, SOURCE_KINDS, is_paused_by_us
from tidegate.dialect.controllers.requests import (
    ControllerResponse,
    RequestState,
    SyncRequest,
    flux_response,
    is_refreshed,
    is_suspended,
    reconcile_patch,
    refresh_patch,
    resume_response,
    source_reference,
    sync_patch,
    sync_response,
)
from tidegate.errors import ClusterError, Location, UsageError, WaitTimeoutError, sanitize
from tidegate.model.k8s.objects import ClusterRef, JsonObject, LiveObject, object_body
from tidegate.model.times import MINUTE, SECOND, Ms, format_duration
from tidegate.model.units.unit import UnitId
from tidegate.planning.exclusions import find_suspended
from tidegate.workspace.request import UnitSelection
from tidegate.workspace.selection import SelectedResource, select_resources
from tidegate.workspace.workspace import Workspace
from tidegate.world.errors import raise_for_error
from tidegate.world.messages import (
    Response,
    Success,
    WatchEnded,
    WatchEvent,
    WatchEventType,
)
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import PatchType, Selection, Verb, Watch, Write

PrintLine = Callable[[str], None]
FIELD_MANAGER = "tidegate-asking"
"""A manager that never applies: the next rollout does not revert a user's request."""
REQUEST_TIMEOUT = Ms(5 * MINUTE)
"""The default timeout of the `flux` command."""
RESOURCE_PARTS = 3


class LiveUnitResource(msgspec.Struct, frozen=True):
    """A live unit resource or source."""

    id: UnitId
    live: LiveObject

    @property
    def cluster_ref(self) -> ClusterRef:
        return ClusterRef(self.id.cluster, self.live.ref)

    @property
    def body(self) -> JsonObject:
        return object_body(self.live)

    @property
    def title(self) -> str:
        """The name as the `flux` command prints it."""
        return f"{self.id.kind} {self.id.name} in {self.id.namespace} namespace"


class ControllerAnswer(msgspec.Struct, frozen=True):
    """The response of a controller to a request about one unit or source."""

    id: UnitId
    response: ControllerResponse

    @property
    def is_done(self) -> bool:
        return self.response.state is RequestState.DONE

    @property
    def document(self) -> dict[str, object]:
        """The answer as a JSON document."""
        unit_id, response = self.id, self.response
        return {
            "kind": unit_id.kind,
            "namespace": unit_id.namespace,
            "name": unit_id.name,
            "cluster": unit_id.cluster,
            "state": str(response.state),
            "revision": response.revision,
            "message": response.message,
        }


async def are_controllers_running(resources: Sequence[SelectedResource], session: Session) -> bool:
    """Return whether the controllers of all resources are running. Raises if only some are."""
    by_cluster_kind = {(resource.id.cluster, resource.id.kind): resource for resource in resources}
    reachable = [
        cluster_kind
        for cluster_kind in by_cluster_kind
        if cluster_kind[0] in session.targets.contexts
    ]
    running, _ = await find_running_controllers(reachable, session)
    absent = [
        resource
        for cluster_kind, resource in by_cluster_kind.items()
        if cluster_kind not in running
    ]
    if not running or not absent:
        return bool(running)
    titles = " and ".join(dict.fromkeys(CONTROLLERS[kind].title for _, kind in running))
    problem = f"{titles} is running, but no controller is running for `{absent[0].id}`"
    hint = "select units of one controller, or roll out from here with `--take-over`"
    raise ClusterError("cluster.controller-active", problem, hint=hint)


async def get_live_resources(
    resources: Iterable[SelectedResource], session: Session
) -> list[LiveUnitResource]:
    """Return the live resources. Raises ClusterError if one is missing or suspended."""
    live_resources = []
    for resource in resources:
        live = await session.reader(resource.id.cluster).get(resource.cluster_ref.ref)
        if live is None:
            problem = f"`{resource.id}` not found in the cluster"
            hint = "select its parent unit; list parents with `tidegate units`"
            raise ClusterError("cluster.unit", problem, location=resource.location, hint=hint)
        live_resources.append(LiveUnitResource(resource.id, live))
    for live_resource in live_resources:
        if is_suspended(live_resource.body) and not is_paused_by_us(live_resource.body):
            raise suspended_error(live_resource.id)
    return live_resources


async def refuse_suspended(
    selection: UnitSelection, workspace: Workspace, session: Session
) -> None:
    """Raise ClusterError if a selected unit or source is suspended.

    A caller who names it expects a rollout.
    """
    resources = select_resources(workspace.repository_trees, selection)
    for unit_id in await find_suspended((resource.id for resource in resources), session):
        raise suspended_error(unit_id)


def suspended_error(unit_id: UnitId) -> ClusterError:
    problem = f"`{unit_id}` is suspended"
    hint = f"resume it with `tidegate resume --unit {unit_id}`"
    return ClusterError("cluster.suspended", problem, hint=hint)


async def reconcile(
    resources: Sequence[LiveUnitResource], session: Session, print_line: PrintLine, timeout: Ms
) -> list[ControllerAnswer]:
    """Request a reconciliation from Flux controllers, and wait until all are current.

    All are requested before the first wait, so that a dependency does not delay its dependents.
    """
    now = datetime.fromtimestamp(session.world.now() / SECOND, UTC)
    stamp = f"{now:%Y-%m-%dT%H:%M:%S.%f}Z"
    for resource in resources:
        print_line(f"► annotating {resource.title}")
        await patch_object(resource.cluster_ref, reconcile_patch(stamp), session)
        print_line(f"✔ {resource.id.kind} annotated")
    return [
        ControllerAnswer(
            resource.id, await _await_reconciled(resource, stamp, session, print_line, timeout)
        )
        for resource in resources
    ]


async def _await_reconciled(
    resource: LiveUnitResource, stamp: str, session: Session, print_line: PrintLine, timeout: Ms
) -> ControllerResponse:
    print_line(f"◎ waiting for {resource.id.kind} reconciliation")
    response = await _await_response(
        resource, lambda body: flux_response(body, stamp), session, print_line, timeout
    )
    _print_reconciled(resource, response, print_line)
    return response


def _print_reconciled(
    resource: LiveUnitResource, response: ControllerResponse, print_line: PrintLine
) -> None:
    verb = "fetched" if resource.id.kind in SOURCE_KINDS else "applied"
    shows_revision = response.revision and resource.id.kind != "Application"
    _print_result(
        response,
        f"{verb} revision {response.revision}" if shows_revision else response.message,
        print_line,
    )


async def await_resumed(
    resource: LiveUnitResource, session: Session, print_line: PrintLine, timeout: Ms
) -> ControllerAnswer:
    """Wait until a controller has reconciled a resumed resource, given as it was before.

    Raises WaitTimeoutError.
    """
    print_line(f"◎ waiting for {resource.id.kind} reconciliation")
    before = resource.body
    response = await _await_response(
        resource, lambda body: resume_response(body, before), session, print_line, timeout
    )
    if response.state is RequestState.DONE:
        print_line(f"✔ {resource.id.kind} {resource.id.name} reconciliation completed")
    _print_reconciled(resource, response, print_line)
    return ControllerAnswer(resource.id, response)


def _print_result(response: ControllerResponse, message: str, print_line: PrintLine) -> None:
    """Print the last line: the result that the controller reports."""
    is_done = response.state is RequestState.DONE
    print_line(f"✔ {sanitize(message)}" if is_done else f"✗ {sanitize(response.message)}")


async def get_live_sources(
    units: Iterable[LiveUnitResource], known_resources: Iterable[SelectedResource], session: Session
) -> list[LiveUnitResource]:
    """Return the live sources of Flux units, each once. Raises ClusterError if one is missing."""
    keys = dict.fromkeys(source_reference(unit.body) for unit in units)
    by_key = {
        (resource.id.kind, resource.id.namespace, resource.id.name): resource
        for resource in known_resources
    }
    sources = []
    for key in (source_key for source_key in keys if source_key is not None):
        if key not in by_key:
            problem = f"source {'/'.join(key)} not found in this repository"
            hint = "run the command without `--with-source`"
            raise ClusterError("cluster.unit", problem, hint=hint)
        sources.append(by_key[key])
    if sources and not await are_controllers_running(sources, session):
        problem = "cannot fetch the source: Flux's source-controller is not running"
        raise ClusterError("cluster.unit", problem, location=Location(str(sources[0].id)))
    return await get_live_resources(sources, session)


def build_sync_request(
    *, by: str, revision: str, prunes: bool, forces: bool, resources: Iterable[str]
) -> SyncRequest:
    """Return a sync request for Argo CD. Raises UsageError for a resource it cannot express."""
    return SyncRequest(
        initiated_by=by,
        revision=revision,
        prune=prunes,
        force=forces,
        resources=tuple(map(_parse_resource, resources)),
    )


def _parse_resource(value: str) -> tuple[str, str, str, str]:
    """Return group, kind, namespace and name of a resource; patterns are not allowed."""
    parts = value.split(":")
    if len(parts) != RESOURCE_PARTS or "*" in value or value.startswith("!"):
        problem = f"`{sanitize(value)}` is not a single resource; Argo CD does not accept patterns"
        hint = "use GROUP:KIND:[NAMESPACE/]NAME, or roll out from here with `--take-over`"
        raise UsageError("usage.resource", problem, hint=hint)
    group, kind, name = parts
    namespace, _, base_name = name.rpartition("/")
    return group, kind, namespace, base_name


async def refresh(
    application: LiveUnitResource, session: Session, *, hard: bool, timeout: Ms = REQUEST_TIMEOUT
) -> None:
    """Let Argo CD compare an Application again, and wait until it has."""
    await patch_object(application.cluster_ref, refresh_patch(hard=hard), session)

    def read_response(body: JsonObject) -> ControllerResponse:
        state = RequestState.DONE if is_refreshed(body) else RequestState.PENDING
        return ControllerResponse(state, "waiting for the refresh")

    await _await_response(application, read_response, session, lambda _: None, timeout)


async def sync_with_argocd(
    application: LiveUnitResource,
    request: SyncRequest,
    session: Session,
    print_line: PrintLine,
    timeout: Ms | None = None,
) -> ControllerAnswer:
    """Let Argo CD sync an Application, and wait until the operation has finished.

    Without `timeout` the wait is unlimited, like that of `argocd app sync`.
    """
    print_line(f"► requesting sync of {application.id.namespace}/{application.id.name}")
    await refresh(application, session, hard=False, timeout=timeout or REQUEST_TIMEOUT)
    live = await session.reader(application.id.cluster).get(application.live.ref)
    application = replace(application, live=live or application.live)
    if application.body.get("operation") is not None:
        problem = f"another operation of `{application.id}` is already in progress"
        raise ClusterError("cluster.controller-busy", problem, hint="wait until it has finished")
    await patch_object(application.cluster_ref, sync_patch(application.body, request), session)
    print_line(f"◎ waiting for the operation of {application.id.namespace}/{application.id.name}")
    before = application.body
    response = await _await_response(
        application, lambda body: sync_response(body, before), session, print_line, timeout
    )
    revision = f" ({response.revision})" if response.revision else ""
    _print_result(response, f"{response.message or 'synced'}{revision}", print_line)
    return ControllerAnswer(application.id, response)


async def _await_response(
    resource: LiveUnitResource,
    read_response: Callable[[JsonObject], ControllerResponse],
    session: Session,
    print_line: PrintLine,
    timeout: Ms | None,
) -> ControllerResponse:
    """Return the response of a controller. Raises WaitTimeoutError.

    Without a timeout the wait is unlimited.
    """
    last_message = ""
    async with aclosing(watch_object(resource.cluster_ref, session, timeout)) as states:
        async for body in states:
            if body is None:
                problem = f"`{resource.id}` was deleted while waiting for it"
                raise ClusterError("cluster.unit", problem)
            response = read_response(body)
            if response.state is not RequestState.PENDING:
                return response
            if response.message != last_message:
                last_message = response.message
                print_line(f"◎ {sanitize(last_message)}")
    print_line("✗ context deadline exceeded")
    problem = (
        f"`{resource.id}` was not ready within {format_duration(timeout or Ms(0))}: {last_message}"
    )
    hint = f"show its Events with `tidegate events --for {resource.id.kind}/{resource.id.name}`"
    raise WaitTimeoutError("cluster.wait-timeout", problem, hint=hint)


async def watch_object(
    cluster_ref: ClusterRef, session: Session, timeout: Ms | None
) -> AsyncGenerator[JsonObject | None]:
    """Yield an object as it is and after each change; None when it is deleted.

    Ends at the timeout.
    """
    world, ref = session.world, cluster_ref.ref
    client, until = world.client(), None if timeout is None else Ms(world.now() + timeout)
    selection = Selection(ref.kind, ref.namespace, field_selector=f"metadata.name={ref.name}")
    request_id = client.submit(Watch(selection), cluster=cluster_ref.cluster)
    try:
        while until is None or world.now() < until:
            for message in await client.wait(until):
                if isinstance(message, WatchEvent):
                    is_deleted = message.type is WatchEventType.DELETED
                    yield None if is_deleted else object_body(message.live)
                elif isinstance(message, Response | WatchEnded):
                    location = Location(str(ref))
                    raise_for_error(message.outcome, "watching the object", location)
    finally:
        client.cancel(request_id)


async def patch_object(
    cluster_ref: ClusterRef, change: JsonObject, session: Session
) -> LiveObject | None:
    """Patch some fields of a live object, regardless of concurrent writes."""
    write = Write(
        verb=Verb.PATCH,
        patch_type=PatchType.MERGE,
        ref=cluster_ref.ref,
        body=msgspec.json.encode(change),
        manager=FIELD_MANAGER,
    )
    (outcome,) = await send_requests(session.world, write, cluster=cluster_ref.cluster)
    location = Location(str(cluster_ref.ref))
    raise_for_error(outcome, "sending the request to the controller", location)
    return outcome.live if isinstance(outcome, Success) else None

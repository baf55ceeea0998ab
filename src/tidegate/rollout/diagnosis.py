"""Diagnosis of failed objects: their pods, logs, Events and missing dependencies.

The cluster is queried once, after the end of the rollout; queries that time out are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.clusters.sandboxes import explain_unserved
from tidegate.errors import sanitize
from tidegate.knowledge.catalog import KindCatalog
from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.kinds import EVENT, JOB, POD, REPLICA_SET
from tidegate.model.k8s.labels import format_selector
from tidegate.model.k8s.objects import ClusterRef, JsonObject, LiveObject, Ref
from tidegate.model.k8s.pods import container_statuses
from tidegate.model.plans.plan import Plan, PlanFragment
from tidegate.model.redaction import Redactor
from tidegate.model.rollouts.causes import failing_objects, refused_objects
from tidegate.model.rollouts.evidence import (
    ContainerFailure,
    ContainerLog,
    Evidence,
    KubeEvent,
    MissingRef,
    PodFailure,
    ProducerRef,
    StepRelation,
)
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.planning.provided import find_item, find_producers, find_step
from tidegate.planning.requirements import QUERY_TIMEOUT, find_missing
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import ListPage, Outcome, RawResponse, Success
from tidegate.world.one_shot import send_requests
from tidegate.world.protocol import World
from tidegate.world.requests import Get, List, Logs, Request, Selection

LOG_LINES = 10
MAX_PODS = 2
LIST_LIMIT = 500
"""Objects of a namespace that are examined."""
STARTING_REASONS = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons of waiting containers that have only not started yet."""
CREATED_POD = lazy_regex(r"Created pod: (\S+)")
"""Message of a controller about a new pod; a deleted pod is known by its Events only."""


class DiagnosisContext(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of the diagnosis besides the cluster: the plan and the operator knowledge."""

    plan: Plan = msgspec.field(default_factory=lambda: Plan.from_fragment(PlanFragment()))
    catalogue: KindCatalog = msgspec.field(default_factory=lambda: KindCatalog({}, {}))
    redactor: Redactor = msgspec.field(default_factory=Redactor)
    """Redacts secret values."""
    raw_world: World | None = None
    """The World of the session; a simulated one can be inspected."""


async def diagnose(
    world: Dispatcher, progress: RolloutProgress, context: DiagnosisContext
) -> tuple[Evidence, ...]:
    """Return evidence about the objects that made a rollout fail."""
    rejected = () if progress.failed_steps() else refused_objects(progress)
    raw_world, catalogue = context.raw_world, context.catalogue
    return (
        *await collect_evidence(world, failing_objects(progress), context),
        *(
            Evidence(
                ref=cluster_ref.ref,
                cluster=cluster_ref.cluster,
                not_served_reason=explain_unserved(raw_world, cluster_ref.ref.kind, catalogue),
            )
            for cluster_ref in rejected
        ),
    )


async def collect_evidence(
    world: Dispatcher, refs: Iterable[ClusterRef], context: DiagnosisContext
) -> tuple[Evidence, ...]:
    """Return evidence about these objects."""
    return tuple(
        [
            await _ClusterDiagnosis(world, cluster_ref.cluster, context).collect(cluster_ref.ref)
            for cluster_ref in refs
        ]
    )


async def read_logs(
    world: Dispatcher, refs: Iterable[ClusterRef], context: DiagnosisContext, tail: int
) -> list[ContainerLog]:
    """Return the last log lines of the unhealthy pods of these objects."""
    logs: list[ContainerLog] = []
    for cluster_ref in refs:
        logs += await _ClusterDiagnosis(world, cluster_ref.cluster, context).read_logs(
            cluster_ref.ref, tail
        )
    return logs


class _ClusterDiagnosis:
    """Diagnosis queries to one cluster."""

    def __init__(self, world: Dispatcher, cluster: str, context: DiagnosisContext) -> None:
        self._world = world
        self._cluster = cluster
        self._context = context

    async def collect(self, ref: Ref) -> Evidence:
        (outcome,) = await self._query(Get(ref))
        live = outcome.live if isinstance(outcome, Success) else None
        missing = await self._missing_dependencies(ref, live)
        context = self._context
        unserved = explain_unserved(context.raw_world, ref.kind, context.catalogue)
        if live is None:
            return Evidence(
                ref=ref, cluster=self._cluster, missing=missing, not_served_reason=unserved
            )
        pods, replica_sets = await self._find_pods(live)
        failing = sorted(pods, key=_failure_rank)[-MAX_PODS:][::-1]
        pod_ends = tuple([await self._pod_end(pod) for pod in failing])
        events = await self._collect_events(live, replica_sets, failing)
        return Evidence(
            ref=ref,
            cluster=self._cluster,
            pods=pod_ends,
            events=events,
            missing=missing,
            not_served_reason=unserved,
        )

    async def read_logs(self, ref: Ref, tail: int) -> list[ContainerLog]:
        (response,) = await self._query(Get(ref))
        live = response.live if isinstance(response, Success) else None
        pods, _ = await self._find_pods(live) if live else ([], [])
        containers = [
            (_pod_ref(pod), status)
            for pod in pods
            for status in container_statuses(pod)
            if _has_logs(status)
        ]
        requests = [
            Logs(ref=pod, container=get_text(status, "name"), tail=tail)
            for pod, status in containers
        ]
        outcomes = await self._query(*requests) if requests else ()
        return [
            ContainerLog(
                object=ref,
                pod=pod,
                container=get_text(status, "name"),
                state=self._redact(_container_state(status)),
                lines=self._log_lines(outcome),
            )
            for (pod, status), outcome in zip(containers, outcomes, strict=True)
        ]

    async def _missing_dependencies(
        self, ref: Ref, live: LiveObject | None
    ) -> tuple[MissingRef, ...]:
        """Return missing dependencies of an object, and those of their producers that are due."""
        result: dict[Ref, MissingRef] = {}
        bodies = {ref: self._body(ref, live)}
        pending = [ref]
        while pending:
            current = pending.pop(0)
            for missing in await self._find_missing(current, bodies[current]):
                producers = self._find_producers(missing, consumer=ref)
                result.setdefault(missing, MissingRef(ref=missing, producers=producers))
                due = [
                    producer.ref
                    for producer in producers
                    if producer.relation is not StepRelation.AFTER
                ]
                new = [producer for producer in due if producer not in bodies]
                bodies |= {producer: self._body(producer) for producer in new}
                pending += new
        return tuple(result.values())

    async def _find_missing(self, ref: Ref, body: JsonObject) -> list[Ref]:
        catalogue = self._context.catalogue
        return await find_missing(self._world, ref, body, catalogue, cluster=self._cluster)

    def _find_producers(self, missing: Ref, *, consumer: Ref) -> tuple[ProducerRef, ...]:
        plan, catalogue = self._context.plan, self._context.catalogue
        step = find_step(plan, consumer, self._cluster)
        consumer_step = step.id if step else ""
        producers = find_producers(
            plan, missing, catalogue, consumer_step=consumer_step, cluster=self._cluster
        )
        return tuple(producers)

    def _body(self, ref: Ref, live: LiveObject | None = None) -> JsonObject:
        """Return the live body, or that of the plan: a hook may be deleted."""
        step = find_step(self._context.plan, ref, self._cluster)
        item = find_item(step, ref) if step else None
        raw = live.body if live else item.body if item else b""
        body: JsonObject = msgspec.json.decode(raw or b"{}")  # an awaited object has no body
        return body

    async def _query(self, *requests: Request) -> tuple[Outcome, ...]:
        return await send_requests(
            self._world, *requests, cluster=self._cluster, timeout=QUERY_TIMEOUT
        )

    async def _find_pods(self, live: LiveObject) -> tuple[list[JsonObject], list[JsonObject]]:
        """Return the unhealthy pods of an object, and the ReplicaSets that own them."""
        if live.ref.kind == POD:
            return [_decode(live)], []
        labels = format_selector(get_value(_decode(live), "spec", "selector"))
        namespace = live.ref.namespace
        requests = [
            List(Selection(kind, namespace, labels), LIST_LIMIT) for kind in (POD, REPLICA_SET)
        ]
        pods, replica_sets = [_items(outcome) for outcome in await self._query(*requests)]
        owned_sets = _owned(replica_sets, {live.uid})
        owners = {
            live.uid,
            *(get_text(replica_set, "metadata", "uid") for replica_set in owned_sets),
        }
        completes = live.ref.kind == JOB
        return [
            pod for pod in _owned(pods, owners) if not _is_healthy(pod, completes=completes)
        ], owned_sets

    async def _pod_end(self, pod: JsonObject) -> PodFailure:
        ref = _pod_ref(pod)
        ended = [
            container
            for container in map(self._container_end, container_statuses(pod))
            if container is not None
        ]
        containers = [*ended, *(_running_init_containers(pod) or _running_containers(pod))]
        requests = [
            Logs(ref=ref, container=container.name, tail=LOG_LINES) for container in containers
        ]
        outcomes = await self._query(*requests) if requests else ()
        return PodFailure(
            ref=ref,
            phase=get_text(pod, "status", "phase"),
            reason=self._redact(get_text(pod, "status", "reason")) or _not_ready_reason(pod),
            message=self._redact(get_text(pod, "status", "message") or _unschedulable_message(pod)),
            containers=tuple(
                msgspec.structs.replace(container, log=self._last_lines(outcome))
                for container, outcome in zip(containers, outcomes, strict=True)
            ),
        )

    def _container_end(self, status: JsonObject) -> ContainerFailure | None:
        """Return a container that failed or cannot run; None for others."""
        terminated = get_mapping(status, "state", "terminated")
        waiting = get_mapping(status, "state", "waiting")
        last_terminated = get_mapping(status, "lastState", "terminated")
        if terminated and not get_int(terminated, "exitCode"):
            return None
        if (
            not terminated
            and not last_terminated
            and get_text(waiting, "reason") in {"", *STARTING_REASONS}
        ):
            return None
        termination = terminated or last_terminated
        return ContainerFailure(
            name=get_text(status, "name"),
            reason=self._redact(get_text(waiting, "reason") or get_text(termination, "reason")),
            message=self._redact(get_text(waiting, "message") or get_text(termination, "message")),
            exit_code=get_int(termination, "exitCode") if termination else None,
            restarts=get_int(status, "restartCount"),
        )

    async def _collect_events(
        self, live: LiveObject, replica_sets: list[JsonObject], pods: list[JsonObject]
    ) -> tuple[KubeEvent, ...]:
        """Return the Events of an object, of its ReplicaSets and of its pods."""
        events = await self._list_events(live.ref, f"involvedObject.uid={live.uid}")
        for replica_set in replica_sets[-MAX_PODS:]:
            selector = f"involvedObject.uid={get_text(replica_set, 'metadata', 'uid')}"
            events += await self._list_events(live.ref, selector)
        names = [get_text(pod, "metadata", "name") for pod in pods] or _created_pod_names(events)[
            -MAX_PODS:
        ]
        for name in names:
            selector = f"involvedObject.kind=Pod,involvedObject.name={name}"
            events += await self._list_events(live.ref, selector)
        events.sort(key=lambda body: (event_time(body), get_text(body, "metadata", "name")))
        return tuple(dict.fromkeys(map(self._to_kube_event, events)))

    async def _list_events(self, ref: Ref, fields: str) -> list[JsonObject]:
        selection = Selection(EVENT, ref.namespace, field_selector=fields)
        (outcome,) = await self._query(List(selection, LIST_LIMIT))
        return _items(outcome)

    def _to_kube_event(self, body: JsonObject) -> KubeEvent:
        involved = get_mapping(body, "involvedObject")
        return KubeEvent(
            subject=f"{get_text(involved, 'kind')} {get_text(involved, 'name')}",
            reason=self._redact(get_text(body, "reason")),
            message=self._redact(get_text(body, "message")),
            is_warning=get_text(body, "type") == "Warning",
            count=max(1, get_int(body, "count")),
        )

    def _last_lines(self, outcome: Outcome) -> tuple[str, ...]:
        return self._log_lines(outcome)[-LOG_LINES:]

    def _log_lines(self, outcome: Outcome) -> tuple[str, ...]:
        if not isinstance(outcome, RawResponse):
            return ()
        return tuple(map(self._redact, outcome.body.decode(errors="replace").splitlines()))

    def _redact(self, value: str) -> str:
        return sanitize(self._context.redactor.redact(value))


def _decode(live: LiveObject) -> JsonObject:
    body: JsonObject = msgspec.json.decode(live.body)
    return body


def _items(outcome: Outcome) -> list[JsonObject]:
    return [_decode(live) for live in outcome.items] if isinstance(outcome, ListPage) else []


def _owned(bodies: Iterable[JsonObject], owners: set[str]) -> list[JsonObject]:
    return [
        body
        for body in bodies
        if any(
            get_text(owner_reference, "uid") in owners
            for owner_reference in get_mappings(body, "metadata", "ownerReferences")
        )
    ]


def _is_healthy(pod: JsonObject, *, completes: bool) -> bool:
    """Return whether a pod is healthy; one that `completes` is so when it has succeeded."""
    return get_text(pod, "status", "phase") == "Succeeded" or not (
        completes or _not_ready_reason(pod)
    )


def _not_ready_reason(pod: JsonObject) -> str:
    """Return the reason why a pod is not ready; empty if it is."""
    for condition in get_mappings(pod, "status", "conditions"):
        condition_type, status = get_text(condition, "type"), get_text(condition, "status")
        if condition_type in {"Ready", "PodScheduled"} and status != "True":
            return get_text(condition, "reason", default="NotReady")
    return "" if get_mappings(pod, "status", "conditions") else "NotReady"


def _unschedulable_message(pod: JsonObject) -> str:
    """Return why a pod cannot be scheduled; empty if it is scheduled."""
    for condition in get_mappings(pod, "status", "conditions"):
        if (
            get_text(condition, "type") == "PodScheduled"
            and get_text(condition, "status") == "False"
        ):
            return get_text(condition, "message")
    return ""


def _running_init_containers(pod: JsonObject) -> list[ContainerFailure]:
    """Return the init containers that the others wait for, counted like kubectl."""
    inits = get_mappings(pod, "status", "initContainerStatuses")
    sidecars = {
        get_text(container, "name")
        for container in get_mappings(pod, "spec", "initContainers")
        if get_text(container, "restartPolicy") == "Always"
    }
    return [
        ContainerFailure(
            name=get_text(status, "name"),
            reason=f"Init:{index}/{len(inits)}",
            message="init container is still running; the other containers wait for it",
            restarts=get_int(status, "restartCount"),
        )
        for index, status in enumerate(inits)
        if get_mapping(status, "state", "running") and get_text(status, "name") not in sidecars
    ]


def _running_containers(pod: JsonObject) -> list[ContainerFailure]:
    """Return the running containers that did not restart."""
    return [
        ContainerFailure(
            name=get_text(status, "name"),
            reason="Running" if status.get("ready") is True else "Running, not ready",
            is_running=True,
        )
        for status in get_mappings(pod, "status", "containerStatuses")
        if get_mapping(status, "state", "running") and not _has_restarted(status)
    ]


def _pod_ref(pod: JsonObject) -> Ref:
    return Ref(POD, get_text(pod, "metadata", "namespace"), get_text(pod, "metadata", "name"))


def _has_logs(status: JsonObject) -> bool:
    """Return whether a container may have printed something, and has not just succeeded."""
    terminated = get_mapping(status, "state", "terminated")
    has_succeeded = bool(terminated) and not get_int(terminated, "exitCode")
    return not has_succeeded and (
        bool(terminated) or "running" in get_mapping(status, "state") or _has_restarted(status)
    )


def _has_restarted(status: JsonObject) -> bool:
    return bool(get_mapping(status, "lastState", "terminated"))


def _container_state(status: JsonObject) -> str:
    """Return the state of a container, with its exit code."""
    ((state, details), *_) = [*get_mapping(status, "state").items()] or [("waiting", {})]
    termination = get_mapping(status, "state", "terminated") or get_mapping(
        status, "lastState", "terminated"
    )
    exit_text = f", exit code {get_int(termination, 'exitCode')}" if termination else ""
    return f"{get_text(details, 'reason') or state}{exit_text}"


def _failure_rank(pod: JsonObject) -> tuple[bool, str, str]:
    """Return a sort key: failed pods last, and the newest of them at the end."""
    metadata = get_mapping(pod, "metadata")
    failed = get_text(pod, "status", "phase") == "Failed"
    return failed, get_text(metadata, "creationTimestamp"), get_text(metadata, "name")


def _created_pod_names(events: Iterable[JsonObject]) -> list[str]:
    """Return the names of pods in the controllers' Events about created pods."""
    matches = (CREATED_POD.fullmatch(get_text(event, "message")) for event in events)
    return [match[1] for match in matches if match is not None]


def event_time(body: JsonObject) -> str:
    return (
        get_text(body, "lastTimestamp")
        or get_text(body, "eventTime")
        or get_text(body, "firstTimestamp")
    )

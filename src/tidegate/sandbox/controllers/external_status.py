"""Statuses that components outside the cluster's workloads write, after a delay.

Services and Ingresses get an address. APIServices are available if they are local, or if their
Service has endpoints. HorizontalPodAutoscalers find their target, and metrics if an API serves
them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from tidegate.model.k8s.json_fields import (
    get_int,
    get_list,
    get_mapping,
    get_mappings,
    get_text,
    get_value,
)
from tidegate.model.k8s.kinds import (
    API_SERVICE,
    DEPLOYMENT,
    ENDPOINT_SLICE,
    REPLICA_SET,
    SERVICE,
    STATEFUL_SET,
)
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.conditions import conditions_of, find_condition, next_condition
from tidegate.sandbox.controllers.interface import Controller, MapFunc, ObjectReader, Reconciliation
from tidegate.sandbox.controllers.selectors import slices_for_service
from tidegate.sandbox.controllers.writes import patch, ref_from_reference, update_status
from tidegate.sandbox.kinds import SERVICE_NAME_LABEL
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.world.messages import WatchEventType

StatusFunc = Callable[[ObjectReader, StoredObject, Ms], JsonObject | None]
"""A function that computes a status; None if there is nothing to write."""
LOCAL_API = ("Local", "Local APIServices are always available")
CHECKS_PASSED = ("Passed", "all checks passed")
HTTPS = 443
AUTOSCALER = Kind("autoscaling", "v2", "HorizontalPodAutoscaler")
AUTOSCALER_V1 = Kind("autoscaling", "v1", "HorizontalPodAutoscaler")
V1_CONDITIONS_ANNOTATION = "autoscaling.alpha.kubernetes.io/conditions"
SCALABLE_KINDS = (DEPLOYMENT, STATEFUL_SET, REPLICA_SET, Kind("", "v1", "ReplicationController"))
SCALABLE_KIND_NAMES = frozenset(kind.name for kind in SCALABLE_KINDS)
SCALE_FOUND = ("SucceededGetScale", "the HPA controller was able to get the target's current scale")
SCALE_NOT_FOUND = "the HPA controller was unable to get the target's current scale"
"""Message for a missing target.

Like `reconcileAutoscaler` in `pkg/controller/podautoscaler/horizontal.go` of Kubernetes 1.36.4.
"""
READY_FOR_NEW_SCALE = ("ReadyForNewScale", "recommended size matches current size")
VALID_METRIC_FOUND = (
    "ValidMetricFound",
    "the HPA was able to successfully calculate a replica count",
)
WITHIN_RANGE = ("DesiredWithinRange", "the desired count is within the acceptable range")
SCALING_DISABLED = (
    "ScalingDisabled",
    "scaling is disabled since the replica count of the target is zero",
)
METRICS_APIS = {"Pods": "custom", "Object": "custom", "External": "external"}
"""The metrics API of a metric type; other types are resource metrics."""


class ExternalStatus(NamedTuple):
    """An external status of a kind."""

    kind: Kind
    """The kind."""
    delay: Ms
    """Time until the status is written."""
    status: StatusFunc
    """Function that computes the status; None for an object without one, or without one yet."""
    map_event: MapFunc = lambda _view, _event: ()
    """Function that maps a change of another kind to the objects to reconcile."""
    watched_kinds: tuple[Kind, ...] = ()
    """The other kinds."""


def external_status_controller(external_status: ExternalStatus) -> Controller:
    """Return the controller that writes the external status of every object of a kind."""

    def reconcile(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
        stored = reader.get(ref)
        if stored is None or stored.is_deleting:
            return
        status = external_status.status(reader, stored, now)
        if status is not None:
            yield from update_status(stored, status)

    def map_event(reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
        ref = event.stored.ref
        if (ref.kind.group, ref.kind.name) == (
            external_status.kind.group,
            external_status.kind.name,
        ):
            if event.change is not WatchEventType.DELETED:
                yield ref
        else:
            yield from external_status.map_event(reader, event)

    kinds = (external_status.kind, *external_status.watched_kinds)
    return Controller(
        f"stamp-{external_status.kind.name}",
        reconcile,
        map_event,
        delay=external_status.delay,
        kinds=kinds,
    )


def simulated_address(stored: StoredObject) -> str:
    """Return an address of the benchmarking network 198.18.0.0/15, derived from the uid."""
    third, fourth = hashlib.blake2b(stored.uid.encode(), digest_size=2).digest()
    return f"198.18.{third}.{fourth}"


def load_balancer_status(
    _reader: ObjectReader, service: StoredObject, _now: Ms
) -> JsonObject | None:
    """Return the status of a Service of type LoadBalancer, with an address; else None."""
    if get_text(service.body, "spec", "type") != "LoadBalancer":
        return None
    status = get_mapping(service.body, "status")
    ingress: Json = [{"ip": simulated_address(service), "ipMode": "VIP"}]
    return {**status, "loadBalancer": {"ingress": ingress}}


def ingress_status(_reader: ObjectReader, ingress: StoredObject, _now: Ms) -> JsonObject | None:
    """Return the status of an Ingress, with an address: a controller for its class is assumed."""
    return {"loadBalancer": {"ingress": [{"ip": simulated_address(ingress)}]}}


def api_service_status(
    reader: ObjectReader, api_service: StoredObject, now: Ms
) -> JsonObject | None:
    """Return the status of an APIService: whether requests can reach it.

    The responses of its server are not checked.

    Like `sync` in `pkg/controllers/status/local/local_available_controller.go` and `sync` in
    `pkg/controllers/status/remote/remote_available_controller.go` of k8s.io/kube-aggregator 0.36.4.
    """
    status, reason_and_message = _check_service(
        reader, get_mapping(api_service.body, "spec", "service")
    )
    condition = next_condition(
        conditions_of(api_service), "Available", status, reason_and_message, now=now
    )
    return {"conditions": [condition]}


def _check_service(reader: ObjectReader, service: JsonObject) -> tuple[str, tuple[str, str]]:
    if not service:
        return "True", LOCAL_API
    name, namespace = get_text(service, "name"), get_text(service, "namespace")
    service_title = f'service/{name} in "{namespace}"'
    stored = reader.get(Ref(SERVICE, namespace, name))
    if stored is None:
        return "False", ("ServiceNotFound", f"{service_title} is not present")
    port = get_int(service, "port", default=HTTPS)
    ports = [
        candidate
        for candidate in get_mappings(stored.body, "spec", "ports")
        if candidate.get("port") == port
    ]
    if not ports:
        return "False", ("ServicePortError", f"{service_title} is not listening on port {port}")
    slices = slices_for_service(reader, stored.ref)
    if not slices:
        return "False", ("EndpointsNotFound", f"cannot find endpointslices for {service_title}")
    if not any(_has_ready_endpoint(slice_, get_text(ports[0], "name")) for slice_ in slices):
        problem = f'have no addresses with port name "{get_text(ports[0], "name")}"'
        return "False", ("MissingEndpoints", f"endpointslices for {service_title} {problem}")
    return "True", CHECKS_PASSED


def _has_ready_endpoint(slice_: StoredObject, port: str) -> bool:
    if not any(
        get_text(slice_port, "name") == port for slice_port in get_mappings(slice_.body, "ports")
    ):
        return False
    return any(
        get_list(endpoint, "addresses") and get_value(endpoint, "conditions", "ready") is not False
        for endpoint in get_mappings(slice_.body, "endpoints")
    )


def map_to_api_services(reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    """Yield the APIServices whose Service or endpoints changed."""
    ref = event.stored.ref
    if ref.kind not in (SERVICE, ENDPOINT_SLICE):
        return
    name = ref.name if ref.kind == SERVICE else event.stored.labels.get(SERVICE_NAME_LABEL)
    for api_service in reader.list_objects(API_SERVICE):
        service = get_mapping(api_service.body, "spec", "service")
        if (service.get("namespace"), service.get("name")) == (ref.namespace, name):
            yield api_service.ref


def autoscaler_status(reader: ObjectReader, autoscaler: StoredObject, now: Ms) -> JsonObject | None:
    """Return the status of an autoscaler; without a metrics API scaling is inactive.

    Like `reconcileAutoscaler` in `pkg/controller/podautoscaler/horizontal.go` of Kubernetes 1.36.4.
    """
    target = get_mapping(autoscaler.body, "spec", "scaleTargetRef")
    target_ref = ref_from_reference(target, autoscaler.ref.namespace)
    target_object = reader.get(target_ref)
    known = conditions_of(autoscaler)
    if target_object is None:
        plural = f"{target_ref.kind.name.lower()}s.{target_ref.kind.group}".rstrip(".")
        reason_and_message = (
            "FailedGetScale",
            f'{SCALE_NOT_FOUND}: {plural} "{target_ref.name}" not found',
        )
        unable = next_condition(known, "AbleToScale", "False", reason_and_message, now=now)
        return {"desiredReplicas": 0, "conditions": [unable]}
    replicas = get_int(target_object.body, "status", "replicas")
    spec_replicas = get_int(target_object.body, "spec", "replicas", default=1)
    if spec_replicas and _has_metrics_api(reader, autoscaler):
        return {
            **({"currentReplicas": replicas} if replicas else {}),
            "desiredReplicas": replicas,
            "conditions": [
                next_condition(known, "AbleToScale", "True", READY_FOR_NEW_SCALE, now=now),
                next_condition(known, "ScalingActive", "True", VALID_METRIC_FOUND, now=now),
                next_condition(known, "ScalingLimited", "False", WITHIN_RANGE, now=now),
            ],
        }
    reason_and_message = _metrics_error(autoscaler) if spec_replicas else SCALING_DISABLED
    return {
        **({"currentReplicas": replicas} if replicas else {}),
        "desiredReplicas": get_int(autoscaler.body, "status", "desiredReplicas"),
        "conditions": [
            next_condition(known, "AbleToScale", "True", SCALE_FOUND, now=now),
            next_condition(known, "ScalingActive", "False", reason_and_message, now=now),
        ],
    }


def autoscaler_v2_status(
    reader: ObjectReader, autoscaler: StoredObject, now: Ms
) -> JsonObject | None:
    """Return the status of an autoscaler of version 2; None for another version."""
    is_v2 = autoscaler.ref.kind.version == AUTOSCALER.version
    return autoscaler_status(reader, autoscaler, now) if is_v2 else None


def metrics_api_service(autoscaler: JsonObject) -> str:
    """Return the name of the APIService for the first metric of an autoscaler."""
    metrics = get_mappings(autoscaler, "spec", "metrics")
    metrics_type = METRICS_APIS.get(get_text(metrics[0], "type"), "") if metrics else ""
    return f"v1beta1.{metrics_type}.metrics.k8s.io" if metrics_type else "v1beta1.metrics.k8s.io"


def _has_metrics_api(reader: ObjectReader, autoscaler: StoredObject) -> bool:
    """Return whether the metrics API of an autoscaler is available."""
    api_service = reader.get(Ref(API_SERVICE, "", metrics_api_service(autoscaler.body)))
    available = find_condition(conditions_of(api_service), "Available") if api_service else None
    return get_value(available, "status") == "True"


def _reconcile_v1_autoscaler(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
    """Reconcile an autoscaler of version 1, whose conditions are JSON in an annotation."""
    stored = reader.get(ref)
    if stored is None or stored.is_deleting or ref.kind != AUTOSCALER_V1:
        return
    status = autoscaler_status(reader, stored, now) or {}
    conditions = get_mappings(status.pop("conditions", []))
    recorded = get_text(stored.metadata, "annotations", V1_CONDITIONS_ANNOTATION, default="[]")
    if _without_times(get_mappings(msgspec.json.decode(recorded))) != _without_times(conditions):
        annotations: JsonObject = {
            V1_CONDITIONS_ANNOTATION: msgspec.json.encode(conditions).decode()
        }
        yield patch(stored, {"metadata": {"annotations": annotations}})
    yield from update_status(stored, status)


def _without_times(conditions: Iterable[JsonObject]) -> list[tuple[Json, Json, Json]]:
    """Return type, status and reason of conditions, without their times."""
    return [
        (condition.get("type"), condition.get("status"), condition.get("reason"))
        for condition in conditions
    ]


def _map_v1_autoscaler_event(reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    if event.stored.ref.kind.name == AUTOSCALER_V1.name:
        if event.change is not WatchEventType.DELETED:
            yield event.stored.ref
    else:
        yield from map_to_autoscalers(reader, event)


def map_to_autoscalers(reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    """Yield the autoscalers of a workload that is new or has another number of pods.

    All autoscalers, if a metrics API changed.
    """
    stored, before = event.stored, event.before
    if stored.ref.kind == API_SERVICE and stored.ref.name.endswith("metrics.k8s.io"):
        yield from (candidate.ref for candidate in reader.list_objects(AUTOSCALER))
        return
    if stored.ref.kind.name not in SCALABLE_KIND_NAMES or _replica_counts(
        stored
    ) == _replica_counts(before):
        return
    for autoscaler in reader.list_objects(AUTOSCALER, stored.ref.namespace):
        target = get_mapping(autoscaler.body, "spec", "scaleTargetRef")
        target_name = (target.get("kind"), target.get("name"))
        if target_name == (stored.ref.kind.name, stored.ref.name):
            yield autoscaler.ref


def _replica_counts(stored: StoredObject | None) -> tuple[Json, Json] | None:
    if stored is None:
        return None
    return get_value(stored.body, "spec", "replicas"), get_value(stored.body, "status", "replicas")


def _metrics_error(autoscaler: StoredObject) -> tuple[str, str]:
    metrics = get_mappings(autoscaler.body, "spec", "metrics")
    metric_type = get_text(metrics[0], "type") if metrics else ""
    kind = metric_type if metric_type in (*METRICS_APIS, "ContainerResource") else "Resource"
    name = get_text(metrics[0], "resource", "name", default="cpu") if metrics else "cpu"
    api = f"{METRICS_APIS.get(kind, 'resource')} metrics API"
    resource = f"{METRICS_APIS.get(kind, 'pods')}.metrics.k8s.io"
    return f"FailedGet{kind}Metric", (
        f"the HPA was unable to compute the replica count: failed to get {name} utilization: "
        f"unable to get metrics for resource {name}: unable to fetch metrics from {api}: "
        f"the server could not find the requested resource (get {resource})"
    )


INGRESS = Kind("networking.k8s.io", "v1", "Ingress")
EXTERNAL_STATUSES = (
    ExternalStatus(SERVICE, Ms(5 * SECOND), load_balancer_status),
    ExternalStatus(INGRESS, Ms(5 * SECOND), ingress_status),
    ExternalStatus(
        API_SERVICE,
        Ms(SECOND),
        api_service_status,
        map_to_api_services,
        watched_kinds=(SERVICE, ENDPOINT_SLICE),
    ),
    ExternalStatus(
        AUTOSCALER,
        Ms(15 * SECOND),
        autoscaler_v2_status,
        map_to_autoscalers,
        watched_kinds=(*SCALABLE_KINDS, API_SERVICE),
    ),
)
V1_AUTOSCALERS = Controller(
    "old-autoscalers",
    _reconcile_v1_autoscaler,
    _map_v1_autoscaler_event,
    delay=Ms(15 * SECOND),
    kinds=(AUTOSCALER, *SCALABLE_KINDS, API_SERVICE),
)
EXTERNAL_STATUS_CONTROLLERS = (
    *(external_status_controller(stamp) for stamp in EXTERNAL_STATUSES),
    V1_AUTOSCALERS,
)

"""Controllers that select pods by label: EndpointSlices of Services, and PodDisruptionBudgets.

One reconciliation covers all Services, or all budgets, of a namespace. Pods do not name their
Services, so a reconciliation of one Service would read every pod; this way every pod is read
once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.kinds import (
    DEPLOYMENT,
    ENDPOINT_SLICE,
    NAMESPACE,
    POD,
    REPLICA_SET,
    SERVICE,
)
from tidegate.model.k8s.labels import selector_matches
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.times import Ms
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.conditions import conditions_of, next_condition, scaled_value
from tidegate.sandbox.controllers.interface import Controller, ObjectReader, Reconciliation
from tidegate.sandbox.controllers.pods import is_ready, phase_of
from tidegate.sandbox.kinds import SERVICE_NAME_LABEL
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.world.messages import WatchEventType
from tidegate.world.requests import Write

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"
CONTROLLER = "endpointslice-controller.k8s.io"
MAX_ENDPOINTS = 100
"""Maximum number of endpoints in a slice.

Like `MaxEndpointsPerSlice` in `pkg/controller/endpointslice/config/v1alpha1/defaults.go` of
Kubernetes 1.36.4.
"""
MAX_NAME_PREFIX = 58
DISRUPTION_BUDGET = Kind("policy", "v1", "PodDisruptionBudget")


class LabelIndex:
    """An index of objects by label, for selectors.

    The first label of a selector is looked up in the index; the other requirements are checked
    on the objects with that label.
    """

    def __init__(self, objects: Iterable[StoredObject], selectors: Iterable[Json]) -> None:
        self._all = list(objects)
        self._by_label: dict[tuple[str, Json], list[StoredObject]] = defaultdict(list)
        indexed_keys = {
            first[0] for selector in selectors if (first := _first_label(selector)) is not None
        }
        for stored in self._all:
            for key, value in stored.labels.items():
                if key in indexed_keys:
                    self._by_label[key, value].append(stored)

    def select(self, selector: Json) -> list[StoredObject]:
        """Return the objects that a selector with `matchLabels` and `matchExpressions` matches."""
        first = _first_label(selector)
        candidates = self._all if first is None else self._by_label.get(first, [])
        return [stored for stored in candidates if selector_matches(selector, stored.labels)]


def _first_label(selector: Json) -> tuple[str, Json] | None:
    return next(iter(get_mapping(selector, "matchLabels").items()), None)


def reconcile_endpoint_slices(reader: ObjectReader, ref: Ref, _now: Ms) -> Reconciliation:
    """Update the EndpointSlices of all Services of a namespace.

    Like `syncService` in `pkg/controller/endpointslice/endpointslice_controller.go` of Kubernetes
    1.36.4 and `Reconcile` in `reconciler.go` of k8s.io/endpointslice 0.36.4.
    """
    services = [
        candidate
        for candidate in reader.list_objects(SERVICE, ref.name)
        if _has_endpoints(candidate)
    ]
    if not services:
        return
    pods = (
        pod
        for pod in reader.list_objects(POD, ref.name)
        if _ipv4_addresses(pod) and phase_of(pod) not in ("Succeeded", "Failed")
    )
    pod_index = LabelIndex(pods, (_selector(service) for service in services))
    for service in services:
        desired = dict(_desired_slices(service, pod_index.select(_selector(service))))
        existing = {
            owned.ref.name: owned
            for owned in reader.list_owned(service.uid)
            if owned.ref.kind == ENDPOINT_SLICE
        }
        yield from _write_slices(service, desired, existing)


def slices_for_service(reader: ObjectReader, service: Ref) -> list[StoredObject]:
    """Return the EndpointSlices of a Service, including those of other controllers."""
    return [
        slice_
        for slice_ in reader.list_objects(ENDPOINT_SLICE, service.namespace)
        if slice_.labels.get(SERVICE_NAME_LABEL) == service.name
    ]


def _has_endpoints(service: StoredObject) -> bool:
    spec = get_mapping(service.body, "spec")
    return bool(get_mapping(spec, "selector")) and get_text(spec, "type") != "ExternalName"


def _selector(service: StoredObject) -> Json:
    return {"matchLabels": get_mapping(service.body, "spec", "selector")}


def _ipv4_addresses(pod: StoredObject) -> list[Json]:
    pod_ips: list[Json] = [
        pod_ip.get("ip") for pod_ip in get_mappings(pod.body, "status", "podIPs")
    ]
    first = get_text(pod.body, "status", "podIP")
    addresses = pod_ips or ([first] if first else [])
    return [address for address in addresses if ":" not in str(address)]


def _desired_slices(
    service: StoredObject, pods: list[StoredObject]
) -> Iterator[tuple[str, JsonObject]]:
    """Yield names and bodies of slices; pods that resolve the ports alike share slices.

    Like `reconcileByPortMapping` in `reconciler.go` of k8s.io/endpointslice 0.36.4.
    """
    groups: dict[bytes, tuple[list[Json], list[Json]]] = {}
    for pod in pods:
        ports = _ports(service, pod)
        if ports or not get_mappings(service.body, "spec", "ports"):
            _, endpoints = groups.setdefault(msgspec.json.encode(ports), (ports, []))
            endpoints.append(_endpoint(service, pod))
    for ports, endpoints in groups.values() or [([], [])]:
        for start in range(0, max(1, len(endpoints)), MAX_ENDPOINTS):
            prefix = service.ref.name[:MAX_NAME_PREFIX]
            suffix = writes.compute_hash([service.uid, ports, start])[:5]
            yield (
                f"{prefix}-{suffix}",
                _slice_body(service, ports, endpoints[start : start + MAX_ENDPOINTS]),
            )


def _slice_body(service: StoredObject, ports: list[Json], endpoints: list[Json]) -> JsonObject:
    reserved = {SERVICE_NAME_LABEL, MANAGED_BY, HEADLESS}
    labels = {key: value for key, value in service.labels.items() if key not in reserved}
    if get_text(service.body, "spec", "clusterIP") in ("", "None"):
        labels[HEADLESS] = ""
    return {
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports,
        "labels": {**labels, SERVICE_NAME_LABEL: service.ref.name, MANAGED_BY: CONTROLLER},
    }


def _ports(service: StoredObject, pod: StoredObject) -> list[Json]:
    ports: list[Json] = []
    for port in get_mappings(service.body, "spec", "ports"):
        protocol = get_text(port, "protocol", default="TCP")
        target = port.get("targetPort", port.get("port"))
        port_number = _named_port(pod, target, protocol) if isinstance(target, str) else target
        if port_number:
            name: Json = {"name": get_text(port, "name"), "port": port_number, "protocol": protocol}
            extra = {"appProtocol": port["appProtocol"]} if "appProtocol" in port else {}
            ports.append({**get_mapping(name), **extra})
    return ports


def _named_port(pod: StoredObject, name: str, protocol: str) -> int:
    sidecars = [
        init_container
        for init_container in get_mappings(pod.body, "spec", "initContainers")
        if init_container.get("restartPolicy") == "Always"
    ]
    for container in (*get_mappings(pod.body, "spec", "containers"), *sidecars):
        for port in get_mappings(container, "ports"):
            is_same_protocol = get_text(port, "protocol", default="TCP") == protocol
            if is_same_protocol and port.get("name") == name:
                return get_int(port, "containerPort")
    return 0


def _endpoint(service: StoredObject, pod: StoredObject) -> JsonObject:
    serving = is_ready(pod)
    publishes = get_value(service.body, "spec", "publishNotReadyAddresses") is True
    endpoint: JsonObject = {
        "addresses": _ipv4_addresses(pod),
        "conditions": {
            "ready": publishes or (serving and not pod.is_deleting),
            "serving": serving,
            "terminating": pod.is_deleting,
        },
        "targetRef": {
            "kind": POD.name,
            "namespace": pod.ref.namespace,
            "name": pod.ref.name,
            "uid": pod.uid,
        },
    }
    if node := get_text(pod.body, "spec", "nodeName"):
        endpoint["nodeName"] = node
    hostname = get_text(pod.body, "spec", "hostname")
    if hostname and get_text(pod.body, "spec", "subdomain") == service.ref.name:
        endpoint["hostname"] = hostname
    return endpoint


def _write_slices(
    service: StoredObject, desired: dict[str, JsonObject], existing: dict[str, StoredObject]
) -> Iterator[Write]:
    for name, body in desired.items():
        slice_ = existing.get(name)
        labels = get_mapping(body, "labels")
        content = {key: value for key, value in body.items() if key != "labels"}
        if slice_ is None:
            metadata: JsonObject = {
                "name": name,
                "generateName": f"{service.ref.name}-",
                "namespace": service.ref.namespace,
                "labels": labels,
                "ownerReferences": [writes.owner_reference(service)],
            }
            yield writes.create(
                ENDPOINT_SLICE, service.ref.namespace, {"metadata": metadata, **content}
            )
        elif slice_.labels != labels or any(
            slice_.body.get(key) != content[key] for key in content
        ):
            removed_labels = dict.fromkeys(sorted(slice_.labels.keys() - labels.keys()))
            change: JsonObject = {"metadata": {"labels": {**labels, **removed_labels}}, **content}
            yield writes.patch(slice_, change)
    yield from (writes.delete(slice_) for name, slice_ in existing.items() if name not in desired)


def _endpoint_fields(pod: StoredObject | None) -> Json:
    """Return the fields of a pod that EndpointSlices depend on."""
    if pod is None:
        return None
    return {
        "labels": pod.labels,
        "addresses": [*_ipv4_addresses(pod)],
        "ready": is_ready(pod),
        "phase": phase_of(pod) in ("Succeeded", "Failed"),
        "deleting": pod.is_deleting,
    }


def _map_endpoint_event(_reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    ref = event.stored.ref
    is_service = ref.kind == SERVICE and event.change is not WatchEventType.DELETED
    if is_service or (ref.kind == POD and _affects_endpoints(event)):
        yield Ref(NAMESPACE, "", ref.namespace)


def _affects_endpoints(event: StoreEvent) -> bool:
    if not _ipv4_addresses(event.stored):
        return False
    return event.change is WatchEventType.DELETED or _endpoint_fields(
        event.stored
    ) != _endpoint_fields(event.before)


ENDPOINTS = Controller(
    "endpoints", reconcile_endpoint_slices, _map_endpoint_event, delay=Ms(100), kinds=(SERVICE, POD)
)


def reconcile_disruption_budgets(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
    """Update all PodDisruptionBudgets of a namespace; every pod is read once."""
    budgets = reader.list_objects(DISRUPTION_BUDGET, ref.name)
    if not budgets:
        return
    pods = LabelIndex(
        reader.list_objects(POD, ref.name), (_budget_selector(candidate) for candidate in budgets)
    )
    for budget in budgets:
        selector = _budget_selector(budget)
        covered = pods.select(selector) if isinstance(selector, dict) else []
        if not budget.is_deleting:
            yield from writes.update_status(budget, _budget_status(reader, budget, covered, now))


def _budget_selector(budget: StoredObject) -> Json:
    return get_value(budget.body, "spec", "selector")


def _budget_status(
    reader: ObjectReader, budget: StoredObject, pods: list[StoredObject], now: Ms
) -> JsonObject:
    """Return the status: expected pods, healthy pods, and allowed disruptions.

    Like `trySync` and `updatePdbStatus` in `pkg/controller/disruption/disruption.go` of Kubernetes
    1.36.4.
    """
    expected, desired = _expected_pod_count(reader, budget, pods)
    healthy = sum(is_ready(pod) and not pod.is_deleting for pod in pods)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    reason_and_message = ("SufficientPods", "") if allowed else ("InsufficientPods", "")
    condition = next_condition(
        conditions_of(budget),
        "DisruptionAllowed",
        "True" if allowed else "False",
        reason_and_message,
        now=now,
    )
    return {
        "observedGeneration": budget.generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": [{**condition, "observedGeneration": budget.generation}],
    }


def _expected_pod_count(
    reader: ObjectReader, budget: StoredObject, pods: list[StoredObject]
) -> tuple[int, int]:
    """Return the number of expected pods, and how many of them must be healthy.

    Like `getExpectedPodCount` in `pkg/controller/disruption/disruption.go` of Kubernetes 1.36.4.
    """
    spec = get_mapping(budget.body, "spec")
    min_available, max_unavailable = spec.get("minAvailable"), spec.get("maxUnavailable")
    if max_unavailable is None and isinstance(min_available, int):
        return len(pods), min_available
    scale = _expected_scale(reader, pods)
    if max_unavailable is not None:
        return scale, max(0, scale - scaled_value(max_unavailable, total=scale, round_up=True))
    return scale, scaled_value(min_available, total=scale, round_up=True)


def _expected_scale(reader: ObjectReader, pods: list[StoredObject]) -> int:
    """Return the sum of the replicas of the pods' controllers, each counted once.

    Like `getExpectedScale` in `pkg/controller/disruption/disruption.go` of Kubernetes 1.36.4.
    """
    scales: dict[str, int] = {}
    for ref in dict.fromkeys(map(writes.controller_ref, pods)):
        owner = _scale_owner(reader, ref) if ref else None
        if owner is not None:
            scales[owner.uid] = get_int(owner.body, "spec", "replicas", default=1)
    return sum(scales.values())


def _scale_owner(reader: ObjectReader, ref: Ref) -> StoredObject | None:
    """Return the object that sets the number of pods: the Deployment for a ReplicaSet of one.

    Like `getPodDeployment` in `pkg/controller/disruption/disruption.go` of Kubernetes 1.36.4.
    """
    owner = reader.get(ref)
    if owner is not None and ref.kind == REPLICA_SET:
        deployment_ref = writes.controller_ref(owner)
        if deployment_ref is not None and deployment_ref.kind.name == DEPLOYMENT.name:
            return reader.get(deployment_ref)
    return owner


def _budget_fields(pod: StoredObject | None) -> tuple[dict[str, Json], bool, bool, str] | None:
    """Return the fields of a pod that PodDisruptionBudgets depend on."""
    if pod is None:
        return None
    return pod.labels, is_ready(pod), pod.is_deleting, phase_of(pod)


def _map_budget_event(_reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    ref = event.stored.ref
    is_deleted = event.change is WatchEventType.DELETED
    is_relevant = is_deleted or _budget_fields(event.stored) != _budget_fields(event.before)
    if (ref.kind == DISRUPTION_BUDGET and not is_deleted) or (ref.kind == POD and is_relevant):
        yield Ref(NAMESPACE, "", ref.namespace)


DISRUPTION_BUDGETS = Controller(
    "budgets",
    reconcile_disruption_budgets,
    _map_budget_event,
    delay=Ms(100),
    kinds=(DISRUPTION_BUDGET, POD),
)
SELECTOR_CONTROLLERS = (ENDPOINTS, DISRUPTION_BUDGETS)

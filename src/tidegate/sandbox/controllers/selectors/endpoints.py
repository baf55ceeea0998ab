"""Services: which pods stand behind them, as EndpointSlices.

A look is at all Services of a namespace. Pods do not name their Services, so a look at one Service
would have to ask every pod; a look at all of them asks every pod once.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import mapping, mappings, number, part, text
from tidegate.sandbox.controllers.namespaces import NAMESPACE
from tidegate.sandbox.controllers.pods import POD, is_ready, phase_of
from tidegate.sandbox.controllers.reaction import Controller, Looking, Sight
from tidegate.sandbox.controllers.selectors.labelled import Labelled
from tidegate.sandbox.controllers.writes import create, delete, digest_of, owner_reference, patch
from tidegate.sandbox.server.store import Body, Stored, Transition
from tidegate.world.calls import Write
from tidegate.world.facts import Change

SERVICE = Kind("", "v1", "Service")
SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice")
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"
CONTROLLER = "endpointslice-controller.k8s.io"
LARGEST = 100
"""So many endpoints fit into a slice."""
LONGEST_PREFIX = 58


def keep_endpoints(view: Sight, ref: Ref, _now: Ms) -> Looking:
    """The slices of all Services of a namespace are as its pods are."""
    services = [one for one in view.all_of(SERVICE, ref.name) if _has_endpoints(one)]
    if not services:
        return
    pods = (
        pod
        for pod in view.all_of(POD, ref.name)
        if _addresses(pod) and phase_of(pod) not in ("Succeeded", "Failed")
    )
    known = Labelled(pods, (_selector(service) for service in services))
    for service in services:
        wanted = dict(_slices(service, known.matching(_selector(service))))
        there = {own.ref.name: own for own in view.owned_by(service.uid) if own.ref.kind == SLICE}
        yield from _write(service, wanted, there)


def _has_endpoints(service: Stored) -> bool:
    spec = mapping(service.body, "spec")
    return bool(mapping(spec, "selector")) and text(spec, "type") != "ExternalName"


def _selector(service: Stored) -> Json:
    return {"matchLabels": mapping(service.body, "spec", "selector")}


def _addresses(pod: Stored) -> list[Json]:
    listed: list[Json] = [one.get("ip") for one in mappings(pod.body, "status", "podIPs")]
    first = text(pod.body, "status", "podIP")
    known = listed or ([first] if first else [])
    return [address for address in known if ":" not in str(address)]


def _slices(service: Stored, pods: list[Stored]) -> Iterator[tuple[str, Body]]:
    """Names and bodies: pods that map the ports alike share slices."""
    groups: dict[bytes, tuple[list[Json], list[Json]]] = {}
    for pod in pods:
        ports = _ports(service, pod)
        if ports or not mappings(service.body, "spec", "ports"):
            _, endpoints = groups.setdefault(msgspec.json.encode(ports), (ports, []))
            endpoints.append(_endpoint(service, pod))
    for ports, endpoints in groups.values() or [([], [])]:
        for start in range(0, max(1, len(endpoints)), LARGEST):
            prefix = service.ref.name[:LONGEST_PREFIX]
            ending = digest_of([service.uid, ports, start])[:5]
            yield f"{prefix}-{ending}", _body(service, ports, endpoints[start : start + LARGEST])


def _body(service: Stored, ports: list[Json], endpoints: list[Json]) -> Body:
    reserved = {SERVICE_NAME, MANAGED_BY, HEADLESS}
    labels = {key: value for key, value in service.labels.items() if key not in reserved}
    if text(service.body, "spec", "clusterIP") in ("", "None"):
        labels[HEADLESS] = ""
    return {
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports,
        "labels": {**labels, SERVICE_NAME: service.ref.name, MANAGED_BY: CONTROLLER},
    }


def _ports(service: Stored, pod: Stored) -> list[Json]:
    ports: list[Json] = []
    for port in mappings(service.body, "spec", "ports"):
        protocol = text(port, "protocol", default="TCP")
        target = port.get("targetPort", port.get("port"))
        found = _named_port(pod, target, protocol) if isinstance(target, str) else target
        if found:
            name: Json = {"name": text(port, "name"), "port": found, "protocol": protocol}
            extra = {"appProtocol": port["appProtocol"]} if "appProtocol" in port else {}
            ports.append({**mapping(name), **extra})
    return ports


def _named_port(pod: Stored, name: str, protocol: str) -> int:
    sidecars = [
        one
        for one in mappings(pod.body, "spec", "initContainers")
        if one.get("restartPolicy") == "Always"
    ]
    for container in (*mappings(pod.body, "spec", "containers"), *sidecars):
        for port in mappings(container, "ports"):
            same = text(port, "protocol", default="TCP") == protocol
            if same and port.get("name") == name:
                return number(port, "containerPort")
    return 0


def _endpoint(service: Stored, pod: Stored) -> Body:
    serving = is_ready(pod)
    publishes = part(service.body, "spec", "publishNotReadyAddresses") is True
    endpoint: Body = {
        "addresses": _addresses(pod),
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
    if node := text(pod.body, "spec", "nodeName"):
        endpoint["nodeName"] = node
    hostname = text(pod.body, "spec", "hostname")
    if hostname and text(pod.body, "spec", "subdomain") == service.ref.name:
        endpoint["hostname"] = hostname
    return endpoint


def _write(service: Stored, wanted: dict[str, Body], there: dict[str, Stored]) -> Iterator[Write]:
    for name, body in wanted.items():
        own = there.get(name)
        labels = mapping(body, "labels")
        content = {key: value for key, value in body.items() if key != "labels"}
        if own is None:
            metadata: Body = {
                "name": name,
                "generateName": f"{service.ref.name}-",
                "namespace": service.ref.namespace,
                "labels": labels,
                "ownerReferences": [owner_reference(service)],
            }
            yield create(SLICE, service.ref.namespace, {"metadata": metadata, **content})
        elif own.labels != labels or any(own.body.get(key) != content[key] for key in content):
            gone = dict.fromkeys(sorted(own.labels.keys() - labels.keys()))
            change: Body = {"metadata": {"labels": {**labels, **gone}}, **content}
            yield patch(own, change)
    yield from (delete(own) for name, own in there.items() if name not in wanted)


def _face(pod: Stored | None) -> Json:
    """All that Services see of a pod."""
    if pod is None:
        return None
    return {
        "labels": pod.labels,
        "addresses": [*_addresses(pod)],
        "ready": is_ready(pod),
        "phase": phase_of(pod) in ("Succeeded", "Failed"),
        "deleting": pod.is_deleting,
    }


def _concerns(_view: Sight, event: Transition) -> Iterator[Ref]:
    ref = event.stored.ref
    is_service = ref.kind == SERVICE and event.change is not Change.DELETED
    if is_service or (ref.kind == POD and _is_seen(event)):
        yield Ref(NAMESPACE, "", ref.namespace)


def _is_seen(event: Transition) -> bool:
    if not _addresses(event.stored):
        return False
    return event.change is Change.DELETED or _face(event.stored) != _face(event.before)


ENDPOINTS = Controller("endpoints", keep_endpoints, _concerns, delay=Ms(100), kinds=(SERVICE, POD))

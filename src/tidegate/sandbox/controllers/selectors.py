"""Those who choose pods by their labels: Services, as EndpointSlices, and PodDisruptionBudgets.

A look is at all Services, or all budgets, of a namespace. Pods do not name their Services, so a
look at one Service would have to ask every pod; a look at all of them asks every pod once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from tidegate.model.labels import matches
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import mapping, mappings, number, part, text
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.conditions import conditions_of, share, steady
from tidegate.sandbox.controllers.pods import is_ready, phase_of
from tidegate.sandbox.controllers.reaction import Controller, Looking, Visible
from tidegate.sandbox.kinds import (
    DEPLOYMENT,
    NAMESPACE,
    POD,
    REPLICA_SET,
    SERVICE,
    SERVICE_NAME,
    SLICE,
)
from tidegate.sandbox.server.store import Body, Stored, Transition
from tidegate.world.calls import Write
from tidegate.world.facts import Change

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"
CONTROLLER = "endpointslice-controller.k8s.io"
LARGEST = 100
"""So many endpoints fit into a slice."""
LONGEST_PREFIX = 58
BUDGET = Kind("policy", "v1", "PodDisruptionBudget")


class Labelled:
    """What a selector asks for first is looked up; the rest is asked of what was found."""

    def __init__(self, objects: Iterable[Stored], selectors: Iterable[Json]) -> None:
        self._all = list(objects)
        self._by_label: dict[tuple[str, Json], list[Stored]] = defaultdict(list)
        asked = {first[0] for one in selectors if (first := _first(one)) is not None}
        for stored in self._all:
            for key, value in stored.labels.items():
                if key in asked:
                    self._by_label[key, value].append(stored)

    def matching(self, selector: Json) -> list[Stored]:
        """Those that a selector with `matchLabels` and `matchExpressions` takes."""
        first = _first(selector)
        found = self._all if first is None else self._by_label.get(first, [])
        return [stored for stored in found if matches(selector, stored.labels)]


def _first(selector: Json) -> tuple[str, Json] | None:
    return next(iter(mapping(selector, "matchLabels").items()), None)


def keep_endpoints(view: Visible, ref: Ref, _now: Ms) -> Looking:
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


def slices_of(view: Visible, service: Ref) -> list[Stored]:
    """The EndpointSlices of a Service, whoever wrote them."""
    return [
        one
        for one in view.all_of(SLICE, service.namespace)
        if one.labels.get(SERVICE_NAME) == service.name
    ]


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
            ending = writes.digest_of([service.uid, ports, start])[:5]
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
                "ownerReferences": [writes.owner_reference(service)],
            }
            yield writes.create(SLICE, service.ref.namespace, {"metadata": metadata, **content})
        elif own.labels != labels or any(own.body.get(key) != content[key] for key in content):
            gone = dict.fromkeys(sorted(own.labels.keys() - labels.keys()))
            change: Body = {"metadata": {"labels": {**labels, **gone}}, **content}
            yield writes.patch(own, change)
    yield from (writes.delete(own) for name, own in there.items() if name not in wanted)


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


def _concerns_services(_view: Visible, event: Transition) -> Iterator[Ref]:
    ref = event.stored.ref
    is_service = ref.kind == SERVICE and event.change is not Change.DELETED
    if is_service or (ref.kind == POD and _is_seen(event)):
        yield Ref(NAMESPACE, "", ref.namespace)


def _is_seen(event: Transition) -> bool:
    if not _addresses(event.stored):
        return False
    return event.change is Change.DELETED or _face(event.stored) != _face(event.before)


ENDPOINTS = Controller(
    "endpoints", keep_endpoints, _concerns_services, delay=Ms(100), kinds=(SERVICE, POD)
)


def keep_budgets(view: Visible, ref: Ref, now: Ms) -> Looking:
    """All budgets of a namespace: pods do not name theirs, and are asked once for all of them."""
    budgets = view.all_of(BUDGET, ref.name)
    if not budgets:
        return
    pods = Labelled(view.all_of(POD, ref.name), (_budget_selector(one) for one in budgets))
    for budget in budgets:
        selector = _budget_selector(budget)
        covered = pods.matching(selector) if isinstance(selector, dict) else []
        if not budget.is_deleting:
            yield from writes.say(budget, _budget_status(view, budget, covered, now))


def _budget_selector(budget: Stored) -> Json:
    return part(budget.body, "spec", "selector")


def _budget_status(view: Visible, budget: Stored, pods: list[Stored], now: Ms) -> Body:
    """The pods it speaks of, how many of them are well, and how many may go."""
    expected, desired = _numbers(view, budget, pods)
    healthy = sum(is_ready(pod) and not pod.is_deleting for pod in pods)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    words = ("SufficientPods", "") if allowed else ("InsufficientPods", "")
    condition = steady(
        conditions_of(budget), "DisruptionAllowed", "True" if allowed else "False", words, now=now
    )
    return {
        "observedGeneration": budget.generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": [{**condition, "observedGeneration": budget.generation}],
    }


def _numbers(view: Visible, budget: Stored, pods: list[Stored]) -> tuple[int, int]:
    """How many pods are expected, and how many of them have to be well."""
    spec = mapping(budget.body, "spec")
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if most is None and isinstance(least, int):
        return len(pods), least
    scale = _scale(view, pods)
    if most is not None:
        return scale, max(0, scale - share(most, of=scale, rounds_up=True))
    return scale, share(least, of=scale, rounds_up=True)


def _scale(view: Visible, pods: list[Stored]) -> int:
    """What the controllers of the pods are asked for, each once."""
    scales: dict[str, int] = {}
    for ref in dict.fromkeys(map(writes.controller_ref, pods)):
        owner = _controller(view, ref) if ref else None
        if owner is not None:
            scales[owner.uid] = number(owner.body, "spec", "replicas", default=1)
    return sum(scales.values())


def _controller(view: Visible, ref: Ref) -> Stored | None:
    """Who decides how many such pods there are: a ReplicaSet of a Deployment does not."""
    owner = view.get(ref)
    if owner is not None and ref.kind == REPLICA_SET:
        above = writes.controller_ref(owner)
        if above is not None and above.kind.name == DEPLOYMENT.name:
            return view.get(above)
    return owner


def _budget_face(pod: Stored | None) -> tuple[dict[str, Json], bool, bool, str] | None:
    """All that budgets see of a pod."""
    if pod is None:
        return None
    return pod.labels, is_ready(pod), pod.is_deleting, phase_of(pod)


def _concerns_budgets(_view: Visible, event: Transition) -> Iterator[Ref]:
    ref = event.stored.ref
    is_gone = event.change is Change.DELETED
    is_seen = is_gone or _budget_face(event.stored) != _budget_face(event.before)
    if (ref.kind == BUDGET and not is_gone) or (ref.kind == POD and is_seen):
        yield Ref(NAMESPACE, "", ref.namespace)


BUDGETS = Controller("budgets", keep_budgets, _concerns_budgets, delay=Ms(100), kinds=(BUDGET, POD))
SELECTING = (ENDPOINTS, BUDGETS)

"""Stamps: statuses that somebody outside the cluster's own workloads writes, after a while.

Services and Ingresses get an address. APIServices are available where they are local, or where
their Service has endpoints. HorizontalPodAutoscalers see their target, and metrics where an API
tells them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import listed, mapping, mappings, number, part, text
from tidegate.sandbox.controllers.conditions import conditions_of, find_condition, steady
from tidegate.sandbox.controllers.reaction import Concerns, Controller, Looking, Visible
from tidegate.sandbox.controllers.selectors import slices_of
from tidegate.sandbox.controllers.writes import patch, referred, say
from tidegate.sandbox.kinds import (
    DEPLOYMENT,
    REPLICA_SET,
    SERVICE,
    SERVICE_NAME,
    SLICE,
    STATEFUL_SET,
)
from tidegate.sandbox.server.store import Body, Stored, Transition
from tidegate.world.facts import Change

Status = Callable[[Visible, Stored, Ms], Body | None]
API_SERVICE = Kind("apiregistration.k8s.io", "v1", "APIService")
LOCAL = ("Local", "Local APIServices are always available")
PASSED = ("Passed", "all checks passed")
HTTPS = 443
AUTOSCALER = Kind("autoscaling", "v2", "HorizontalPodAutoscaler")
OLD_AUTOSCALER = Kind("autoscaling", "v1", "HorizontalPodAutoscaler")
OLD_CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
SCALED = (DEPLOYMENT, STATEFUL_SET, REPLICA_SET, Kind("", "v1", "ReplicationController"))
SCALED_NAMES = frozenset(kind.name for kind in SCALED)
SEEN = ("SucceededGetScale", "the HPA controller was able to get the target's current scale")
UNSEEN = "the HPA controller was unable to get the target's current scale"
FITS = ("ReadyForNewScale", "recommended size matches current size")
MEASURED = ("ValidMetricFound", "the HPA was able to successfully calculate a replica count")
WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
ASLEEP = ("ScalingDisabled", "scaling is disabled since the replica count of the target is zero")
METRICS = {"Pods": "custom", "Object": "custom", "External": "external"}
"""Which API would tell a metric; those that are not here are of resources."""


class Stamp(NamedTuple):
    """One row. `status` is None for an object that is not stamped, or not yet."""

    kind: Kind
    delay: Ms
    status: Status
    touches: Concerns = lambda _view, _event: ()
    """Which objects of the kind are to be looked at when something else changes."""
    touched_by: tuple[Kind, ...] = ()
    """What else that is."""


def stamping(stamp: Stamp) -> Controller:
    """The controller that puts a stamp on every object of its kind."""

    def put(view: Visible, ref: Ref, now: Ms) -> Looking:
        stored = view.get(ref)
        if stored is None or stored.is_deleting:
            return
        status = stamp.status(view, stored, now)
        if status is not None:
            yield from say(stored, status)

    def concerns(view: Visible, event: Transition) -> Iterator[Ref]:
        ref = event.stored.ref
        if (ref.kind.group, ref.kind.name) == (stamp.kind.group, stamp.kind.name):
            if event.change is not Change.DELETED:
                yield ref
        else:
            yield from stamp.touches(view, event)

    kinds = (stamp.kind, *stamp.touched_by)
    return Controller(f"stamp-{stamp.kind.name}", put, concerns, delay=stamp.delay, kinds=kinds)


def address_of(stored: Stored) -> str:
    """An address of the network that is set aside for tests of devices, by the object's life."""
    third, fourth = hashlib.blake2b(stored.uid.encode(), digest_size=2).digest()
    return f"198.18.{third}.{fourth}"


def balanced(_view: Visible, service: Stored, _now: Ms) -> Body | None:
    """A Service of type LoadBalancer gets an address."""
    if text(service.body, "spec", "type") != "LoadBalancer":
        return None
    status = mapping(service.body, "status")
    ingress: Json = [{"ip": address_of(service), "ipMode": "VIP"}]
    return {**status, "loadBalancer": {"ingress": ingress}}


def routed(_view: Visible, ingress: Stored, _now: Ms) -> Body | None:
    """Every Ingress gets an address: a controller for its class is taken to be there."""
    return {"loadBalancer": {"ingress": [{"ip": address_of(ingress)}]}}


def available(view: Visible, api_service: Stored, now: Ms) -> Body | None:
    """Whether requests would come through. What answers them is not asked."""
    status, words = _judge(view, mapping(api_service.body, "spec", "service"))
    condition = steady(conditions_of(api_service), "Available", status, words, now=now)
    return {"conditions": [condition]}


def _judge(view: Visible, service: Body) -> tuple[str, tuple[str, str]]:
    if not service:
        return "True", LOCAL
    name, namespace = text(service, "name"), text(service, "namespace")
    where = f'service/{name} in "{namespace}"'
    found = view.get(Ref(SERVICE, namespace, name))
    if found is None:
        return "False", ("ServiceNotFound", f"{where} is not present")
    wanted = number(service, "port", default=HTTPS)
    ports = [one for one in mappings(found.body, "spec", "ports") if one.get("port") == wanted]
    if not ports:
        return "False", ("ServicePortError", f"{where} is not listening on port {wanted}")
    slices = slices_of(view, found.ref)
    if not slices:
        return "False", ("EndpointsNotFound", f"cannot find endpointslices for {where}")
    if not any(_has_ready(one, text(ports[0], "name")) for one in slices):
        said = f'have no addresses with port name "{text(ports[0], "name")}"'
        return "False", ("MissingEndpoints", f"endpointslices for {where} {said}")
    return "True", PASSED


def _has_ready(slice_: Stored, port: str) -> bool:
    if not any(text(one, "name") == port for one in mappings(slice_.body, "ports")):
        return False
    return any(
        listed(endpoint, "addresses") and part(endpoint, "conditions", "ready") is not False
        for endpoint in mappings(slice_.body, "endpoints")
    )


def behind(view: Visible, event: Transition) -> Iterator[Ref]:
    """The APIServices whose Service, or whose endpoints, changed."""
    ref = event.stored.ref
    if ref.kind not in (SERVICE, SLICE):
        return
    name = ref.name if ref.kind == SERVICE else event.stored.labels.get(SERVICE_NAME)
    for one in view.all_of(API_SERVICE):
        service = mapping(one.body, "spec", "service")
        if (service.get("namespace"), service.get("name")) == (ref.namespace, name):
            yield one.ref


def scaled(view: Visible, autoscaler: Stored, now: Ms) -> Body | None:
    """What is said each time an autoscaler looks; without its API there is nothing to measure."""
    target = mapping(autoscaler.body, "spec", "scaleTargetRef")
    meant = referred(target, autoscaler.ref.namespace)
    found = view.get(meant)
    known = conditions_of(autoscaler)
    if found is None:
        plural = f"{meant.kind.name.lower()}s.{meant.kind.group}".rstrip(".")
        words = ("FailedGetScale", f'{UNSEEN}: {plural} "{meant.name}" not found')
        unable = steady(known, "AbleToScale", "False", words, now=now)
        return {"desiredReplicas": 0, "conditions": [unable]}
    replicas = number(found.body, "status", "replicas")
    asked = number(found.body, "spec", "replicas", default=1)
    if asked and _is_measured(view, autoscaler):
        return {
            **({"currentReplicas": replicas} if replicas else {}),
            "desiredReplicas": replicas,
            "conditions": [
                steady(known, "AbleToScale", "True", FITS, now=now),
                steady(known, "ScalingActive", "True", MEASURED, now=now),
                steady(known, "ScalingLimited", "False", WITHIN, now=now),
            ],
        }
    words = _words(autoscaler) if asked else ASLEEP
    return {
        **({"currentReplicas": replicas} if replicas else {}),
        "desiredReplicas": number(autoscaler.body, "status", "desiredReplicas"),
        "conditions": [
            steady(known, "AbleToScale", "True", SEEN, now=now),
            steady(known, "ScalingActive", "False", words, now=now),
        ],
    }


def scaled_now(view: Visible, autoscaler: Stored, now: Ms) -> Body | None:
    """The same for the version that has conditions in its status."""
    is_new = autoscaler.ref.kind.version == AUTOSCALER.version
    return scaled(view, autoscaler, now) if is_new else None


def metrics_api(autoscaler: Body) -> str:
    """The APIService that tells what an autoscaler measures, by the first of its metrics."""
    metrics = mappings(autoscaler, "spec", "metrics")
    sort = METRICS.get(text(metrics[0], "type"), "") if metrics else ""
    return f"v1beta1.{sort}.metrics.k8s.io" if sort else "v1beta1.metrics.k8s.io"


def _is_measured(view: Visible, autoscaler: Stored) -> bool:
    """Whether somebody serves what it asks for."""
    served = view.get(Ref(API_SERVICE, "", metrics_api(autoscaler.body)))
    available = find_condition(conditions_of(served), "Available") if served else None
    return part(available, "status") == "True"


def _put_old(view: Visible, ref: Ref, now: Ms) -> Looking:
    """Version 1 has no conditions in its status: they stand in an annotation, as JSON."""
    stored = view.get(ref)
    if stored is None or stored.is_deleting or ref.kind != OLD_AUTOSCALER:
        return
    status = scaled(view, stored, now) or {}
    conditions = mappings(status.pop("conditions", []))
    written = text(stored.metadata, "annotations", OLD_CONDITIONS, default="[]")
    if _told(mappings(msgspec.json.decode(written))) != _told(conditions):
        notes: Body = {OLD_CONDITIONS: msgspec.json.encode(conditions).decode()}
        yield patch(stored, {"metadata": {"annotations": notes}})
    yield from say(stored, status)


def _told(conditions: Iterable[Body]) -> list[tuple[Json, Json, Json]]:
    """What conditions say, whenever they came."""
    return [(one.get("type"), one.get("status"), one.get("reason")) for one in conditions]


def _old_concerns(view: Visible, event: Transition) -> Iterator[Ref]:
    if event.stored.ref.kind.name == OLD_AUTOSCALER.name:
        if event.change is not Change.DELETED:
            yield event.stored.ref
    else:
        yield from aiming_at(view, event)


def aiming_at(view: Visible, event: Transition) -> Iterator[Ref]:
    """The autoscalers of a workload that came, or that has another number of pods.

    All of them, where an API comes or goes that may tell what they measure.
    """
    stored, before = event.stored, event.before
    if stored.ref.kind == API_SERVICE and stored.ref.name.endswith("metrics.k8s.io"):
        yield from (one.ref for one in view.all_of(AUTOSCALER))
        return
    if stored.ref.kind.name not in SCALED_NAMES or _size(stored) == _size(before):
        return
    for autoscaler in view.all_of(AUTOSCALER, stored.ref.namespace):
        target = mapping(autoscaler.body, "spec", "scaleTargetRef")
        named = (target.get("kind"), target.get("name"))
        if named == (stored.ref.kind.name, stored.ref.name):
            yield autoscaler.ref


def _size(stored: Stored | None) -> tuple[Json, Json] | None:
    if stored is None:
        return None
    return part(stored.body, "spec", "replicas"), part(stored.body, "status", "replicas")


def _words(autoscaler: Stored) -> tuple[str, str]:
    metrics = mappings(autoscaler.body, "spec", "metrics")
    told = text(metrics[0], "type") if metrics else ""
    kind = told if told in (*METRICS, "ContainerResource") else "Resource"
    name = text(metrics[0], "resource", "name", default="cpu") if metrics else "cpu"
    api = f"{METRICS.get(kind, 'resource')} metrics API"
    resource = f"{METRICS.get(kind, 'pods')}.metrics.k8s.io"
    return f"FailedGet{kind}Metric", (
        f"the HPA was unable to compute the replica count: failed to get {name} utilization: "
        f"unable to get metrics for resource {name}: unable to fetch metrics from {api}: "
        f"the server could not find the requested resource (get {resource})"
    )


INGRESS = Kind("networking.k8s.io", "v1", "Ingress")

STAMPS = (
    Stamp(SERVICE, Ms(5 * SECOND), balanced),
    Stamp(INGRESS, Ms(5 * SECOND), routed),
    Stamp(API_SERVICE, Ms(SECOND), available, behind, touched_by=(SERVICE, SLICE)),
    Stamp(AUTOSCALER, Ms(15 * SECOND), scaled_now, aiming_at, touched_by=(*SCALED, API_SERVICE)),
)

OLD_AUTOSCALERS = Controller(
    "old-autoscalers",
    _put_old,
    _old_concerns,
    delay=Ms(15 * SECOND),
    kinds=(AUTOSCALER, *SCALED, API_SERVICE),
)
STAMPED = (*(stamping(stamp) for stamp in STAMPS), OLD_AUTOSCALERS)

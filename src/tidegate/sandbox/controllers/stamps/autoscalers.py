"""HorizontalPodAutoscalers in a cluster that has no metrics: they see their target, no more."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import mapping, mappings, number, part, text
from tidegate.sandbox.controllers.conditions import conditions_of, steady
from tidegate.sandbox.controllers.reaction import Sight
from tidegate.sandbox.server.store import Body, Stored, Transition

AUTOSCALER = Kind("autoscaling", "v2", "HorizontalPodAutoscaler")
SCALED = (
    Kind("apps", "v1", "Deployment"),
    Kind("apps", "v1", "StatefulSet"),
    Kind("apps", "v1", "ReplicaSet"),
    Kind("", "v1", "ReplicationController"),
)
SCALED_NAMES = frozenset(kind.name for kind in SCALED)
SEEN = ("SucceededGetScale", "the HPA controller was able to get the target's current scale")
UNSEEN = "the HPA controller was unable to get the target's current scale"
ASLEEP = ("ScalingDisabled", "scaling is disabled since the replica count of the target is zero")
NO_METRICS = {
    "Resource": ("FailedGetResourceMetric", "resource metrics API", "pods.metrics.k8s.io"),
    "ContainerResource": (
        "FailedGetContainerResourceMetric",
        "resource metrics API",
        "pods.metrics.k8s.io",
    ),
    "Pods": ("FailedGetPodsMetric", "custom metrics API", "custom.metrics.k8s.io"),
    "Object": ("FailedGetObjectMetric", "custom metrics API", "custom.metrics.k8s.io"),
    "External": ("FailedGetExternalMetric", "external metrics API", "external.metrics.k8s.io"),
}


def unmeasured(view: Sight, autoscaler: Stored, now: Ms) -> Body | None:
    """What is said each time an autoscaler looks and there is nothing to measure."""
    if autoscaler.ref.kind.version != AUTOSCALER.version:
        return None
    target = mapping(autoscaler.body, "spec", "scaleTargetRef")
    kind = Kind.of(text(target, "apiVersion"), text(target, "kind"))
    name = text(target, "name")
    found = view.get(Ref(kind, autoscaler.ref.namespace, name))
    known = conditions_of(autoscaler)
    if found is None:
        plural = f"{kind.name.lower()}s.{kind.group}".rstrip(".")
        words = ("FailedGetScale", f'{UNSEEN}: {plural} "{name}" not found')
        unable = steady(known, "AbleToScale", "False", words, now=now)
        return {"desiredReplicas": 0, "conditions": [unable]}
    replicas = number(found.body, "status", "replicas")
    asked = number(found.body, "spec", "replicas", default=1)
    words = _words(autoscaler) if asked else ASLEEP
    return {
        **({"currentReplicas": replicas} if replicas else {}),
        "desiredReplicas": number(autoscaler.body, "status", "desiredReplicas"),
        "conditions": [
            steady(known, "AbleToScale", "True", SEEN, now=now),
            steady(known, "ScalingActive", "False", words, now=now),
        ],
    }


def aiming_at(view: Sight, event: Transition) -> Iterator[Ref]:
    """The autoscalers of a workload that came, or that has another number of pods."""
    stored, before = event.stored, event.before
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
    kind = text(metrics[0], "type") if metrics else "Resource"
    reason, source, resource = NO_METRICS.get(kind, NO_METRICS["Resource"])
    name = text(metrics[0], "resource", "name", default="cpu") if metrics else "cpu"
    return reason, (
        f"the HPA was unable to compute the replica count: failed to get {name} utilization: "
        f"unable to get metrics for resource {name}: unable to fetch metrics from {source}: "
        f"the server could not find the requested resource (get {resource})"
    )

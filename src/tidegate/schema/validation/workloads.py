"""What a server asks of Pods and of what makes them, where several places must agree."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.labels import matches
from tidegate.model.objects import Json, Kind
from tidegate.schema.causes import duplicate, invalid, not_found, required, unsupported
from tidegate.schema.validation.places import at, each, is_empty
from tidegate.world.facts import Cause

Body = dict[str, Json]

TEMPLATES = {
    ("", "Pod"): "spec",
    ("apps", "DaemonSet"): "spec.template.spec",
    ("apps", "Deployment"): "spec.template.spec",
    ("apps", "ReplicaSet"): "spec.template.spec",
    ("apps", "StatefulSet"): "spec.template.spec",
    ("batch", "CronJob"): "spec.jobTemplate.spec.template.spec",
    ("batch", "Job"): "spec.template.spec",
}
"""Where a kind has the spec of its Pods."""

_UNSELECTED = {"DaemonSet": "daemonset", "StatefulSet": "statefulset"}
_CRON_FIELDS = 5


def workload_problems(kind: Kind, body: Body) -> Iterator[Cause]:
    """Whether a selector finds its template, and whether its Pods may end."""
    if kind.group == "apps":
        yield from _selector_problems(kind, body)
        policy = at(body, "spec.template.spec.restartPolicy")
        if policy in {"Never", "OnFailure"}:
            yield unsupported("spec.template.spec.restartPolicy", policy, ("Always",))
    elif kind.group == "batch":
        field = f"{TEMPLATES[kind.group, kind.name]}.restartPolicy"
        policy = at(body, field)
        if policy in {None, "", "Always"}:
            yield required(field, 'valid values: "OnFailure", "Never"')
        elif policy not in {"OnFailure", "Never"}:
            yield unsupported(field, policy, ("OnFailure", "Never"))
        schedule = at(body, "spec.schedule")
        if isinstance(schedule, str) and schedule:
            fields = schedule.split()
            if not schedule.startswith("@") and len(fields) != _CRON_FIELDS:
                detail = f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
                yield invalid("spec.schedule", schedule, detail)


def pods_of(kind: Kind, body: Body) -> Iterator[tuple[str, Body]]:
    """Where a kind has the spec of its Pods, and that spec.

    Like the server, it puts the volumes of a StatefulSet's claims before the others, and so counts
    the others from there.
    """
    for path, found in each(body, TEMPLATES[kind.group, kind.name]):
        pod = found if isinstance(found, dict) else {}
        named = each(body, "spec.volumeClaimTemplates[].metadata.name")
        claims = [*dict.fromkeys(str(name or "") for _, name in named)]
        own = [volume for _, volume in each(pod, "volumes[]") if at(volume, "name") not in claims]
        made: list[Json] = [
            {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims
        ]
        yield path, {**pod, "volumes": [*made, *own]} if made else pod


def pod_problems(pod: Body, path: str) -> Iterator[Cause]:
    """Names that stand twice, and mounts of volumes that are not there."""
    containers = [*each(pod, "containers[]"), *each(pod, "initContainers[]")]
    yield from _duplicates([(f"{path}.{place}.name", at(one, "name")) for place, one in containers])
    volumes = [*each(pod, "volumes[].name")]
    yield from _duplicates([(f"{path}.{place}", name) for place, name in volumes])
    known = [name for _, name in volumes]
    for place, container in containers:
        for mount, name in each(container, "volumeMounts[].name"):
            if name and name not in known:
                yield not_found(f"{path}.{place}.{mount}", name)


def _duplicates(named: list[tuple[str, Json]]) -> Iterator[Cause]:
    seen: list[Json] = []
    for field, name in named:
        if name and name in seen:
            yield duplicate(field, name)
        seen.append(name)


def _selector_problems(kind: Kind, body: Body) -> Iterator[Cause]:
    selector = at(body, "spec.selector")
    told = at(body, "spec.template.metadata.labels")
    # A null is read as an empty string.
    labels: Body = (
        {key: value or "" for key, value in told.items()} if isinstance(told, dict) else {}
    )
    if selector is None and kind.name != "DaemonSet":
        yield required("spec.selector")
    is_open = selector is not None and all(
        is_empty(at(selector, part)) for part in ("matchLabels", "matchExpressions")
    )
    if is_open:
        whom = _UNSELECTED.get(kind.name, "deployment")
        yield invalid("spec.selector", {}, f"empty selector is invalid for {whom}")
    elif selector is None or not matches(selector, labels):
        detail = "`selector` does not match template `labels`"
        shown = labels if isinstance(told, dict) else None
        yield invalid("spec.template.metadata.labels", shown, detail)

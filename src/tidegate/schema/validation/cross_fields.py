"""What a server asks where several places must agree: Pods, what makes them, Services, Ingresses.

Places in a body are told by path: `containers[].env[].name`, `volumes[].secret?.secretName`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tidegate.model.k8s.json_fields import get_mapping, get_value
from tidegate.model.k8s.labels import selector_matches
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.schema.causes import duplicate, invalid, not_found, required, unsupported
from tidegate.world.messages import Cause

POD_SPEC_PATHS = {
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
MAX_PORT = 65535


def list_fields(body: Json, path: str) -> Iterator[tuple[str, Json]]:
    """Every place that a path means, with what stands there; None where nothing does.

    `[]` means every item, and a `?` that what follows is not asked for where nothing stands.
    """
    return _each(body, _parts(path), "")


def get_field(body: Json, path: str) -> Json:
    """What stands at a path without `[]`; None where nothing does."""
    return get_value(body, *path.split("."))


def is_empty(value: Json) -> bool:
    """Whether a value is what Go has where nothing was said."""
    return value is None or value in ("", 0, [], {})


@cache
def _parts(path: str) -> tuple[tuple[str, str], ...]:
    """The names of a path, each with the mark behind it."""
    names = ((part, part.rstrip("[]?")) for part in path.split("."))
    return tuple((name, part.removeprefix(name)) for part, name in names)


def _each(body: Json, parts: tuple[tuple[str, str], ...], start: str) -> Iterator[tuple[str, Json]]:
    for place, (name, mark) in enumerate(parts, 1):
        body = body.get(name) if isinstance(body, dict) else None
        start = f"{start}.{name}" if start else name
        if mark == "[]":
            for number, item in enumerate(body if isinstance(body, list) else ()):
                yield from _each(item, parts[place:], f"{start}[{number}]")
            return
        if body is None and mark == "?":
            return
    yield start, body


def workload_problems(kind: Kind, body: JsonObject) -> Iterator[Cause]:
    """Whether a selector finds its template, and whether its Pods may end."""
    if kind.group == "apps":
        yield from _selector_problems(kind, body)
        policy = get_field(body, "spec.template.spec.restartPolicy")
        if policy in {"Never", "OnFailure"}:
            yield unsupported("spec.template.spec.restartPolicy", policy, ("Always",))
    elif kind.group == "batch":
        field = f"{POD_SPEC_PATHS[kind.group, kind.name]}.restartPolicy"
        policy = get_field(body, field)
        if policy in {None, "", "Always"}:
            yield required(field, 'valid values: "OnFailure", "Never"')
        elif policy not in {"OnFailure", "Never"}:
            yield unsupported(field, policy, ("OnFailure", "Never"))
        schedule = get_field(body, "spec.schedule")
        if isinstance(schedule, str) and schedule:
            fields = schedule.split()
            if not schedule.startswith("@") and len(fields) != _CRON_FIELDS:
                detail = f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
                yield invalid("spec.schedule", schedule, detail)


def list_pod_specs(kind: Kind, body: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Where a kind has the spec of its Pods, and that spec.

    Like the server, it puts the volumes of a StatefulSet's claims before the others, and so counts
    the others from there.
    """
    for path, found in list_fields(body, POD_SPEC_PATHS[kind.group, kind.name]):
        pod = found if isinstance(found, dict) else {}
        named = list_fields(body, "spec.volumeClaimTemplates[].metadata.name")
        claims = [*dict.fromkeys(str(name or "") for _, name in named)]
        own = [
            volume
            for _, volume in list_fields(pod, "volumes[]")
            if get_field(volume, "name") not in claims
        ]
        made: list[Json] = [
            {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims
        ]
        yield path, {**pod, "volumes": [*made, *own]} if made else pod


def pod_problems(pod: JsonObject, path: str) -> Iterator[Cause]:
    """Names that stand twice, and mounts of volumes that are not there."""
    containers = [*list_fields(pod, "containers[]"), *list_fields(pod, "initContainers[]")]
    yield from _duplicates(
        [(f"{path}.{place}.name", get_field(one, "name")) for place, one in containers]
    )
    volumes = [*list_fields(pod, "volumes[].name")]
    yield from _duplicates([(f"{path}.{place}", name) for place, name in volumes])
    known = [name for _, name in volumes]
    for place, container in containers:
        for mount, name in list_fields(container, "volumeMounts[].name"):
            if name and name not in known:
                yield not_found(f"{path}.{place}.{mount}", name)


def _duplicates(named: list[tuple[str, Json]]) -> Iterator[Cause]:
    seen: list[Json] = []
    for field, name in named:
        if name and name in seen:
            yield duplicate(field, name)
        seen.append(name)


def _selector_problems(kind: Kind, body: JsonObject) -> Iterator[Cause]:
    selector = get_field(body, "spec.selector")
    told = get_field(body, "spec.template.metadata.labels")
    # A null is read as an empty string.
    labels: JsonObject = {key: value or "" for key, value in get_mapping(told).items()}
    if selector is None and kind.name != "DaemonSet":
        yield required("spec.selector")
    is_open = selector is not None and all(
        is_empty(get_field(selector, part)) for part in ("matchLabels", "matchExpressions")
    )
    if is_open:
        whom = _UNSELECTED.get(kind.name, "deployment")
        yield invalid("spec.selector", {}, f"empty selector is invalid for {whom}")
    elif selector is None or not selector_matches(selector, labels):
        detail = "`selector` does not match template `labels`"
        shown = labels if isinstance(told, dict) else None
        yield invalid("spec.template.metadata.labels", shown, detail)


def service_problems(body: JsonObject) -> Iterator[Cause]:
    """Ports, or a name elsewhere."""
    if get_field(body, "spec.type") == "ExternalName":
        if is_empty(get_field(body, "spec.externalName")):
            yield required("spec.externalName")
        return
    ports = [
        port if isinstance(port, dict) else {} for _, port in list_fields(body, "spec.ports[]")
    ]
    if not ports and get_field(body, "spec.clusterIP") != "None":
        yield required("spec.ports")
    names = [port.get("name") for port in ports]
    for place, port in enumerate(ports):
        field, name = f"spec.ports[{place}]", names[place]
        yield from _number_problems(port, field)
        if not name and len(ports) > 1:
            yield required(f"{field}.name")
        elif name and name in names[:place]:
            yield duplicate(f"{field}.name", name)


def ingress_problems(body: JsonObject) -> Iterator[Cause]:
    """Somewhere to go, and a way there."""
    if is_empty(get_field(body, "spec.rules")) and is_empty(get_field(body, "spec.defaultBackend")):
        yield invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    for field, path in list_fields(body, "spec.rules[].http?.paths[]"):
        told, kind = get_field(path, "path") or "", get_field(path, "pathType")
        is_free = not told and kind in {None, "ImplementationSpecific"}
        if not str(told).startswith("/") and not is_free:
            yield invalid(f"{field}.path", told, "must be an absolute path")
        yield from _backend_problems(get_field(path, "backend"), f"{field}.backend")
    default = get_field(body, "spec.defaultBackend")
    if not is_empty(default):
        yield from _backend_problems(default, "spec.defaultBackend")


def _number_problems(port: JsonObject, field: str) -> Iterator[Cause]:
    """A port without a target is its own, and so wrong twice."""
    number = port.get("port") or 0
    if isinstance(number, int) and not 0 < number <= MAX_PORT:
        detail = f"must be between 1 and {MAX_PORT}, inclusive"
        yield invalid(f"{field}.port", number, detail)
        if not port.get("targetPort"):
            yield invalid(f"{field}.targetPort", number, detail)


def _backend_problems(backend: Json, field: str) -> Iterator[Cause]:
    service = get_field(backend, "service")
    if service is None:
        if get_field(backend, "resource") is None:
            yield invalid(field, "", "resource or service backend is required")
        return
    if is_empty(get_field(service, "name")):
        yield required(f"{field}.service.name")
    name, number = get_field(service, "port.name"), get_field(service, "port.number")
    if is_empty(name) and is_empty(number):
        yield required(field, "port name or number is required")
    elif not is_empty(name) and not is_empty(number):
        yield invalid(field, "", "cannot set both port name & port number")

"""Validation rules over several fields: Pods, workloads, Services, Ingresses.

Fields are given by path: `containers[].env[].name`, `volumes[].secret?.secretName`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tidegate.model.k8s.json_fields import get_mapping, get_value
from tidegate.model.k8s.labels import selector_matches
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.k8s.pods import POD_TEMPLATE_PATHS
from tidegate.schema.causes import duplicate, invalid, not_found, required, unsupported
from tidegate.world.messages import Cause

POD_SPEC_FIELDS = {kind: ".".join((*path, "spec")) for kind, path in POD_TEMPLATE_PATHS.items()}
"""The field of the pod spec by kind."""
_UNSELECTED = {"DaemonSet": "daemonset", "StatefulSet": "statefulset"}
_CRON_FIELDS = 5
MAX_PORT = 65535


def list_fields(body: Json, path: str) -> Iterator[tuple[str, Json]]:
    """Yield the fields that a path matches with their values, None for a missing field.

    `[]` matches every item. A missing field before `?` ends the path.
    """
    return _iterate_fields(body, _split_path(path), "")


def get_field(body: Json, path: str) -> Json:
    """Return the value at a path without `[]`, or None."""
    return get_value(body, *path.split("."))


def is_empty(value: Json) -> bool:
    """Return whether a value is the zero value of Go."""
    return value is None or value in ("", 0, [], {})


@cache
def _split_path(path: str) -> tuple[tuple[str, str], ...]:
    """Return the names of a path, each with its suffix."""
    names = ((part, part.rstrip("[]?")) for part in path.split("."))
    return tuple((name, part.removeprefix(name)) for part, name in names)


def _iterate_fields(
    body: Json, parts: tuple[tuple[str, str], ...], field: str
) -> Iterator[tuple[str, Json]]:
    for position, (name, suffix) in enumerate(parts, 1):
        body = body.get(name) if isinstance(body, dict) else None
        field = f"{field}.{name}" if field else name
        if suffix == "[]":
            for index, item in enumerate(body if isinstance(body, list) else ()):
                yield from _iterate_fields(item, parts[position:], f"{field}[{index}]")
            return
        if body is None and suffix == "?":
            return
    yield field, body


def workload_problems(kind: Kind, body: JsonObject) -> Iterator[Cause]:
    """Yield the errors of selectors, restart policies and schedules.

    Like `ValidateDeploymentSpec` and `ValidateStatefulSetSpec` in
    `pkg/apis/apps/validation/validation.go` and `ValidateCronJobCreate` in
    `pkg/apis/batch/validation/validation.go` of Kubernetes 1.36.4.
    """
    if kind.group == "apps":
        yield from _selector_problems(kind, body)
        policy = get_field(body, "spec.template.spec.restartPolicy")
        if policy in {"Never", "OnFailure"}:
            yield unsupported("spec.template.spec.restartPolicy", policy, ("Always",))
    elif kind.group == "batch":
        field = f"{POD_SPEC_FIELDS[kind.group, kind.name]}.restartPolicy"
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
    """Yield the path of the pod spec and the spec.

    Like the server, it puts the volumes of a StatefulSet's claims before the others, so the indexes
    of the others are shifted.

    Like `volumesToAddForTemplates` in `pkg/apis/apps/validation/validation.go` of Kubernetes
    1.36.4.
    """
    for path, spec in list_fields(body, POD_SPEC_FIELDS[kind.group, kind.name]):
        pod = spec if isinstance(spec, dict) else {}
        claim_names = list_fields(body, "spec.volumeClaimTemplates[].metadata.name")
        claims = [*dict.fromkeys(str(name or "") for _, name in claim_names)]
        other_volumes = [
            volume
            for _, volume in list_fields(pod, "volumes[]")
            if get_field(volume, "name") not in claims
        ]
        claim_volumes: list[Json] = [
            {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims
        ]
        yield path, {**pod, "volumes": [*claim_volumes, *other_volumes]} if claim_volumes else pod


def pod_problems(pod: JsonObject, path: str) -> Iterator[Cause]:
    """Yield the errors of duplicate names and of mounts of missing volumes.

    Like `ValidatePodSpec` and `ValidateVolumeMounts` in `pkg/apis/core/validation/validation.go` of
    Kubernetes 1.36.4.
    """
    containers = [*list_fields(pod, "containers[]"), *list_fields(pod, "initContainers[]")]
    yield from _duplicates(
        [(f"{path}.{field}.name", get_field(container, "name")) for field, container in containers]
    )
    volumes = [*list_fields(pod, "volumes[].name")]
    yield from _duplicates([(f"{path}.{field}", name) for field, name in volumes])
    volume_names = [name for _, name in volumes]
    for field, container in containers:
        for mount, name in list_fields(container, "volumeMounts[].name"):
            if name and name not in volume_names:
                yield not_found(f"{path}.{field}.{mount}", name)


def _duplicates(names: list[tuple[str, Json]]) -> Iterator[Cause]:
    seen: list[Json] = []
    for field, name in names:
        if name and name in seen:
            yield duplicate(field, name)
        seen.append(name)


def _selector_problems(kind: Kind, body: JsonObject) -> Iterator[Cause]:
    selector = get_field(body, "spec.selector")
    template_labels = get_field(body, "spec.template.metadata.labels")
    # A null is read as an empty string.
    labels: JsonObject = {key: value or "" for key, value in get_mapping(template_labels).items()}
    if selector is None and kind.name != "DaemonSet":
        yield required("spec.selector")
    is_empty_selector = selector is not None and all(
        is_empty(get_field(selector, part)) for part in ("matchLabels", "matchExpressions")
    )
    if is_empty_selector:
        noun = _UNSELECTED.get(kind.name, "deployment")
        yield invalid("spec.selector", {}, f"empty selector is invalid for {noun}")
    elif selector is None or not selector_matches(selector, labels):
        detail = "`selector` does not match template `labels`"
        shown = labels if isinstance(template_labels, dict) else None
        yield invalid("spec.template.metadata.labels", shown, detail)


def service_problems(body: JsonObject) -> Iterator[Cause]:
    """Yield the errors of ports and of the external name.

    Like `ValidateService` in `pkg/apis/core/validation/validation.go` of Kubernetes 1.36.4.
    """
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
    for index, port in enumerate(ports):
        field, name = f"spec.ports[{index}]", names[index]
        yield from _number_problems(port, field)
        if not name and len(ports) > 1:
            yield required(f"{field}.name")
        elif name and name in names[:index]:
            yield duplicate(f"{field}.name", name)


def ingress_problems(body: JsonObject) -> Iterator[Cause]:
    """Yield the errors of rules and backends.

    Like `ValidateIngressSpec` in `pkg/apis/networking/validation/validation.go` of Kubernetes
    1.36.4.
    """
    if is_empty(get_field(body, "spec.rules")) and is_empty(get_field(body, "spec.defaultBackend")):
        yield invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    for field, path in list_fields(body, "spec.rules[].http?.paths[]"):
        path_text, kind = get_field(path, "path") or "", get_field(path, "pathType")
        is_free = not path_text and kind in {None, "ImplementationSpecific"}
        if not str(path_text).startswith("/") and not is_free:
            yield invalid(f"{field}.path", path_text, "must be an absolute path")
        yield from _backend_problems(get_field(path, "backend"), f"{field}.backend")
    default = get_field(body, "spec.defaultBackend")
    if not is_empty(default):
        yield from _backend_problems(default, "spec.defaultBackend")


def _number_problems(port: JsonObject, field: str) -> Iterator[Cause]:
    """Yield the errors of a port number.

    A missing target port is the port, so it is wrong as well.
    """
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

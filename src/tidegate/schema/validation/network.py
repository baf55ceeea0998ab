"""What a server asks of Services and Ingresses, where several places must agree."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.objects import Json
from tidegate.schema.causes import duplicate, invalid, required
from tidegate.schema.validation.places import at, each, is_empty
from tidegate.world.facts import Cause

Body = dict[str, Json]

LAST_PORT = 65535


def service_problems(body: Body) -> Iterator[Cause]:
    """Ports, or a name elsewhere."""
    if at(body, "spec.type") == "ExternalName":
        if is_empty(at(body, "spec.externalName")):
            yield required("spec.externalName")
        return
    ports = [port if isinstance(port, dict) else {} for _, port in each(body, "spec.ports[]")]
    if not ports and at(body, "spec.clusterIP") != "None":
        yield required("spec.ports")
    names = [port.get("name") for port in ports]
    for place, port in enumerate(ports):
        field, name = f"spec.ports[{place}]", names[place]
        yield from _number_problems(port, field)
        if not name and len(ports) > 1:
            yield required(f"{field}.name")
        elif name and name in names[:place]:
            yield duplicate(f"{field}.name", name)


def ingress_problems(body: Body) -> Iterator[Cause]:
    """Somewhere to go, and a way there."""
    if is_empty(at(body, "spec.rules")) and is_empty(at(body, "spec.defaultBackend")):
        yield invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    for field, path in each(body, "spec.rules[].http?.paths[]"):
        told, kind = at(path, "path") or "", at(path, "pathType")
        is_free = not told and kind in {None, "ImplementationSpecific"}
        if not str(told).startswith("/") and not is_free:
            yield invalid(f"{field}.path", told, "must be an absolute path")
        yield from _backend_problems(at(path, "backend"), f"{field}.backend")
    default = at(body, "spec.defaultBackend")
    if not is_empty(default):
        yield from _backend_problems(default, "spec.defaultBackend")


def _number_problems(port: Body, field: str) -> Iterator[Cause]:
    """A port without a target is its own, and so wrong twice."""
    number = port.get("port") or 0
    if isinstance(number, int) and not 0 < number <= LAST_PORT:
        detail = f"must be between 1 and {LAST_PORT}, inclusive"
        yield invalid(f"{field}.port", number, detail)
        if not port.get("targetPort"):
            yield invalid(f"{field}.targetPort", number, detail)


def _backend_problems(backend: Json, field: str) -> Iterator[Cause]:
    service = at(backend, "service")
    if service is None:
        if at(backend, "resource") is None:
            yield invalid(field, "", "resource or service backend is required")
        return
    if is_empty(at(service, "name")):
        yield required(f"{field}.service.name")
    name, number = at(service, "port.name"), at(service, "port.number")
    if is_empty(name) and is_empty(number):
        yield required(field, "port name or number is required")
    elif not is_empty(name) and not is_empty(number):
        yield invalid(field, "", "cannot set both port name & port number")

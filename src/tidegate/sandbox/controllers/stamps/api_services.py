"""APIServices: available where they are local, or where their Service has endpoints."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.model.reading import listed, mapping, mappings, number, part, text
from tidegate.sandbox.controllers.conditions import conditions_of, steady
from tidegate.sandbox.controllers.reaction import Sight
from tidegate.sandbox.controllers.selectors.endpoints import SERVICE, SERVICE_NAME, SLICE
from tidegate.sandbox.server.store import Body, Stored, Transition

API_SERVICE = Kind("apiregistration.k8s.io", "v1", "APIService")
LOCAL = ("Local", "Local APIServices are always available")
PASSED = ("Passed", "all checks passed")
HTTPS = 443


def available(view: Sight, api_service: Stored, now: Ms) -> Body | None:
    """Whether requests would come through. What answers them is not asked."""
    status, words = _judge(view, mapping(api_service.body, "spec", "service"))
    condition = steady(conditions_of(api_service), "Available", status, words, now=now)
    return {"conditions": [condition]}


def _judge(view: Sight, service: Body) -> tuple[str, tuple[str, str]]:
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
    slices = [one for one in view.all_of(SLICE, namespace) if one.labels.get(SERVICE_NAME) == name]
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


def behind(view: Sight, event: Transition) -> Iterator[Ref]:
    """The APIServices whose Service, or whose endpoints, changed."""
    ref = event.stored.ref
    if ref.kind not in (SERVICE, SLICE):
        return
    name = ref.name if ref.kind == SERVICE else event.stored.labels.get(SERVICE_NAME)
    for one in view.all_of(API_SERVICE):
        service = mapping(one.body, "spec", "service")
        if (service.get("namespace"), service.get("name")) == (ref.namespace, name):
            yield one.ref

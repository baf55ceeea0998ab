"""Objects that several tests about gates roll out."""

from __future__ import annotations

from tests.support.builders import make_config_map, make_deployment, make_object
from tidegate.model.k8s.objects import Json, JsonObject

WEB = make_deployment()
FOLLOWING = make_config_map("later")
"""An object for the step after a gate."""


def an_ingress(service: str) -> JsonObject:
    backend: JsonObject = {"service": {"name": service, "port": {"number": 80}}}
    return make_object("networking.k8s.io/v1 Ingress", "web", spec={"defaultBackend": backend})


def a_gate(group: str, **spec: Json) -> JsonObject:
    """A custom resource; `a_definition` of the promises defines it."""
    return make_object(f"{group}/v1 Gate", "north", spec={"color": "red", **spec})

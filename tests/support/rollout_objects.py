"""Objects that several tests about gates roll out."""

from __future__ import annotations

from tests.support.builders import a_config_map, a_deployment, an_object
from tidegate.model.k8s.objects import Json, JsonObject

WEB = a_deployment()
BEHIND = a_config_map("behind")
"""For the step behind a gate."""


def an_ingress(service: str) -> JsonObject:
    backend: JsonObject = {"service": {"name": service, "port": {"number": 80}}}
    return an_object("networking.k8s.io/v1 Ingress", "web", spec={"defaultBackend": backend})


def a_gate(group: str, **spec: Json) -> JsonObject:
    """A custom resource; `a_definition` of the promises defines it."""
    return an_object(f"{group}/v1 Gate", "north", spec={"color": "red", **spec})

"""Addresses from outside: of Services and Ingresses."""

from __future__ import annotations

import hashlib

from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, text
from tidegate.sandbox.controllers.reaction import Sight
from tidegate.sandbox.server.store import Body, Stored


def address_of(stored: Stored) -> str:
    """An address of the network that is set aside for tests of devices, by the object's life."""
    third, fourth = hashlib.blake2b(stored.uid.encode(), digest_size=2).digest()
    return f"198.18.{third}.{fourth}"


def balanced(_view: Sight, service: Stored, _now: Ms) -> Body | None:
    """A Service of type LoadBalancer gets an address."""
    if text(service.body, "spec", "type") != "LoadBalancer":
        return None
    status = mapping(service.body, "status")
    ingress: Json = [{"ip": address_of(service), "ipMode": "VIP"}]
    return {**status, "loadBalancer": {"ingress": ingress}}


def routed(_view: Sight, ingress: Stored, _now: Ms) -> Body | None:
    """Every Ingress gets an address: a controller for its class is taken to be there."""
    return {"loadBalancer": {"ingress": [{"ip": address_of(ingress)}]}}

"""Namespaces: what they begin with, and how they are emptied when they go."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.sandbox.controllers.reaction import Controller, Looking, Sight
from tidegate.sandbox.controllers.writes import MANAGER, create, delete
from tidegate.sandbox.server.store import Body, Transition
from tidegate.world.calls import Verb, Write
from tidegate.world.facts import Change

NAMESPACE = Kind("", "v1", "Namespace")
ACCOUNT = Kind("", "v1", "ServiceAccount")
CONFIG_MAP = Kind("", "v1", "ConfigMap")
ROOT_CA = "kube-root-ca.crt"


def keep_namespace(view: Sight, ref: Ref, _now: Ms) -> Looking:
    """A namespace has its first objects, or is emptied and let go."""
    namespace = view.get(ref)
    if namespace is None:
        return
    if not namespace.is_deleting:
        yield from _furnish(view, ref.name)
        return
    content = view.inside(ref.name)
    for stored in content:
        if not stored.is_deleting:
            yield delete(stored)
    if not content:
        body = msgspec.json.encode({"spec": {"finalizers": None}})
        yield Write(verb=Verb.PATCH, ref=ref, body=body, subresource="finalize", manager=MANAGER)


def _furnish(view: Sight, name: str) -> Iterator[Write]:
    wanted: tuple[tuple[Kind, str, Body], ...] = (
        (ACCOUNT, "default", {}),
        (CONFIG_MAP, ROOT_CA, {"data": {"ca.crt": "simulated"}}),
    )
    for kind, own, content in wanted:
        if view.get(Ref(kind, name, own)) is None:
            yield create(kind, name, {"metadata": {"name": own, "namespace": name}, **content})


def _concerns(_view: Sight, event: Transition) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == NAMESPACE:
        yield ref
    elif event.change is Change.DELETED and ref.namespace:
        yield Ref(NAMESPACE, "", ref.namespace)


NAMESPACES = Controller("namespaces", keep_namespace, _concerns)

"""A built-in object as its server keeps it.

Servers read objects into Go's types and write them out again. On the way empty maps and lists and
nulls are left out, what is always there appears, and a few defaults are filled in: those that
merging needs, that owners come to name or that verdicts about rollouts read. All other defaults are
left out on purpose.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import lru_cache

from tidegate.model.objects import Json
from tidegate.model.reading import mapping
from tidegate.sandbox.ownership.compare import SCALARS
from tidegate.sandbox.ownership.layout import Layout, layout_of
from tidegate.sandbox.ownership.rules import blank_of
from tidegate.sandbox.server.register import KindEntry
from tidegate.sandbox.server.store import Body
from tidegate.schema.shape import Shape, Type

Part = dict[str, Json]


def keep(body: Body, entry: KindEntry) -> Body:
    """What is stored of a body."""
    if entry.is_custom:
        return {**body, "metadata": keep_part(body.get("metadata"), "metadata", entry)}
    kept = _kept(body, layout_of(entry.shape))
    if not isinstance(kept, dict):
        raise TypeError(kept)
    complete = DEFAULTS.get(entry.resource)
    return complete(kept) if complete else kept


def keep_part(value: Json, name: str, entry: KindEntry) -> Json:
    """What is stored of one part of a body."""
    return _kept(value, layout_of(entry.shape).children[name])


def _kept(value: Json, layout: Layout) -> Json:
    match value:
        case dict():
            return _kept_object(value, layout)
        case list():
            items = layout.items
            return _same_or(value, [_kept(item, items) for item in value])
        case _:
            return value


def _kept_object(value: Part, layout: Layout) -> Json:
    shape = layout.shape
    if shape.values is not None and shape.values().type is Type.STRING:
        if None not in value.values():
            return value
        return {name: "" if inner is None else inner for name, inner in value.items()}
    kept: Part = {}
    is_same = True
    for name, inner in value.items():
        if type(inner) in SCALARS:
            kept[name] = inner
            continue
        place = layout.children[name]
        told = _kept(inner, place)
        if _is_left_out(told, place.shape):
            is_same = False
        else:
            is_same = is_same and told is inner
            kept[name] = told
    for name, part in _always(shape).items():
        kept.setdefault(name, part)
    return value if is_same and len(kept) == len(value) else kept


@lru_cache(maxsize=2_048)
def _always(shape: Shape) -> Part:
    return blank_of(shape)


def _is_left_out(value: Json, shape: Shape) -> bool:
    """Maps and lists that hold nothing; a struct that holds nothing may mean something."""
    if value is None or value == []:
        return True
    return value == {} and shape.values is not None


def _same_or(value: list[Json], kept: list[Json]) -> list[Json]:
    return value if all(new is old for new, old in zip(kept, value, strict=True)) else kept


def _service(body: Body) -> Body:
    spec = mapping(body, "spec")
    ports = spec.get("ports")
    completed: Part = {"internalTrafficPolicy": "Cluster", **spec}
    if isinstance(ports, list):
        completed["ports"] = [
            {"protocol": "TCP", "targetPort": mapping(port).get("port"), **mapping(port)}
            for port in ports
        ]
    return {**body, "spec": completed}


def _deployment(body: Body) -> Body:
    spec = mapping(body, "spec")
    kept = {name: part for name, part in spec.items() if (name, part) != ("minReadySeconds", 0)}
    completed: Part = {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        **kept,
    }
    template = mapping(spec.get("template"))
    completed["template"] = {**template, "spec": _pod(mapping(template.get("spec")))}
    return {**body, "spec": completed}


def _stateful_set(body: Body) -> Body:
    """Without a strategy of its own it rolls, all of it: whoever judges a rollout reads that."""
    spec: Part = {"replicas": 1, **mapping(body, "spec")}
    strategy: Part = {"type": "RollingUpdate", **mapping(spec.get("updateStrategy"))}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"partition": 0, **mapping(strategy.get("rollingUpdate"))}
    return {**body, "spec": {**spec, "updateStrategy": strategy}}


def _pod(spec: Part) -> Part:
    containers = spec.get("containers")
    completed: Part = {"terminationGracePeriodSeconds": 30, **spec}
    if isinstance(containers, list):
        completed["containers"] = [_container(mapping(one)) for one in containers]
    return completed


def _container(container: Part) -> Part:
    completed: Part = {"imagePullPolicy": "IfNotPresent", **container}
    ports = container.get("ports")
    if isinstance(ports, list):
        completed["ports"] = [{"protocol": "TCP", **mapping(port)} for port in ports]
    return completed


def _secret(body: Body) -> Body:
    """What is written as text is kept encoded, beside what was encoded already."""
    texts = mapping(body, "stringData")
    kept = {name: part for name, part in body.items() if name != "stringData"}
    if texts:
        encoded: Part = {
            name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()
        }
        kept["data"] = {**mapping(body, "data"), **encoded}
    return {"type": "Opaque", **kept}


DEFAULTS: dict[tuple[str, str], Callable[[Body], Body]] = {
    ("", "secrets"): _secret,
    ("", "services"): _service,
    ("apps", "deployments"): _deployment,
    ("apps", "replicasets"): lambda body: {
        **body,
        "spec": {"replicas": 1, **mapping(body, "spec")},
    },
    ("apps", "statefulsets"): _stateful_set,
}

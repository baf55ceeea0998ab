"""What an object refers to: what one of a row needs and makes, which settings a pod's spec names.

Pure, told from the object alone: the graph can ask it of objects that are not applied yet, the
sandbox of those that are.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidegate.knowledge.templates import list_item_scopes, make_scope, render, render_text
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.operators.checks import all_checks_pass
from tidegate.model.operators.rows import KindRow, Need, Product, RequiredState, ServiceProduct

SECRET = Kind("", "v1", "Secret")
CRD_KIND_NAME = "CustomResourceDefinition"
CONFIG_MAP = Kind("", "v1", "ConfigMap")


def list_required_configs(spec: JsonObject, namespace: str) -> Iterator[Ref]:
    """All Secrets and ConfigMaps that pods of this spec cannot start without."""
    containers = (*get_mappings(spec, "initContainers"), *get_mappings(spec, "containers"))
    found = [pair for container in containers for pair in list_env_from_sources(container)]
    found += [
        (kind, reference)
        for container in containers
        for _, kind, reference in list_env_key_sources(container)
    ]
    found += [
        pair for volume in get_mappings(spec, "volumes") for pair in list_volume_sources(volume)
    ]
    for kind, reference in found:
        if not reference.get("optional"):
            yield Ref(kind, namespace, get_text(reference, "name"))


def list_env_from_sources(container: Json) -> Iterator[tuple[Kind, JsonObject]]:
    """What all keys become variables of."""
    for entry in get_mappings(container, "envFrom"):
        if reference := get_mapping(entry, "configMapRef"):
            yield CONFIG_MAP, reference
        if reference := get_mapping(entry, "secretRef"):
            yield SECRET, reference


def list_env_key_sources(container: Json) -> Iterator[tuple[str, Kind, JsonObject]]:
    """Each variable that is one key of something, with its name."""
    for variable in get_mappings(container, "env"):
        origin = get_mapping(variable, "valueFrom")
        if reference := get_mapping(origin, "configMapKeyRef"):
            yield get_text(variable, "name"), CONFIG_MAP, reference
        if reference := get_mapping(origin, "secretKeyRef"):
            yield get_text(variable, "name"), SECRET, reference


def list_volume_sources(volume: JsonObject) -> Iterator[tuple[Kind, JsonObject]]:
    """What is mounted."""
    if secret := get_mapping(volume, "secret"):
        yield SECRET, {**secret, "name": secret.get("secretName")}
    if settings := get_mapping(volume, "configMap"):
        yield CONFIG_MAP, settings
    for projected in get_mappings(volume, "projected", "sources"):
        if secret := get_mapping(projected, "secret"):
            yield SECRET, secret
        if settings := get_mapping(projected, "configMap"):
            yield CONFIG_MAP, settings


class NeededObject(NamedTuple):
    """One object that another needs."""

    need: Need
    group: str
    kind: str
    namespace: str
    name: str
    at: Json = None
    """The key of the item that says so, where the need is one for each."""

    def scope(self) -> JsonObject:
        return {
            "group": self.group,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
        }


class ProducedObject(NamedTuple):
    """One object that is produced, and whether it goes with its maker.

    A Service that `answers` does so by itself as soon as its maker is ready.
    """

    body: JsonObject
    is_owned: bool
    answers_when_ready: bool = False


def list_needs(row: KindRow, body: JsonObject, kind: Kind) -> Iterator[NeededObject]:
    """What an object needs; nothing where it names nothing."""
    whole = make_scope(body, kind)
    for need in row.needs:
        for scope in list_item_scopes(whole, need.each):
            if not all_checks_pass(need.when, scope):
                continue
            parts = (need.group, need.kind, need.namespace, need.name)
            needed = NeededObject(need, *(render_text(part, scope) for part in parts))
            needed = needed._replace(at=scope.get("key")) if need.each else needed
            # A host without a namespace means nothing to an object that is in none.
            is_nowhere = need.until is RequiredState.SERVING and not needed.namespace
            if needed.name and not is_nowhere:
                yield needed


def list_products(
    row: KindRow, scope: JsonObject, upto: int | None = None
) -> Iterator[ProducedObject]:
    """What an object has produced when it reaches a stage; all of it unless one is given."""
    for service in row.services:
        yield from _service(service, scope)
    for stage in row.stages if upto is None else row.stages[: upto + 1]:
        yield from render_products(stage.produces, scope)


def list_produced_crds(row: KindRow | None, body: JsonObject, kind: Kind) -> list[JsonObject]:
    """What is made of an object to define kinds, as Gatekeeper does with a template."""
    products = (one for stage in row.stages for one in stage.produces) if row else ()
    if not any(one.makes.get("kind") == CRD_KIND_NAME for one in products):
        return []
    made = list_products(row, make_scope(body, kind)) if row else ()
    return [one.body for one in made if one.body.get("kind") == CRD_KIND_NAME]


def render_products(products: Iterable[Product], whole: JsonObject) -> Iterator[ProducedObject]:
    """What these products come to for an object; nothing where they have no name."""
    for product in products:
        for scope in list_item_scopes(whole, product.each):
            if all_checks_pass(product.when, scope):
                made = _object(product, scope)
                if get_mapping(made, "metadata").get("name"):
                    yield ProducedObject(made, product.owned)


def _object(product: Product, scope: JsonObject) -> JsonObject:
    made = render(product.makes, scope)
    home: JsonObject = scope if product.namespaced else {}
    return _with_bytes(_at_home(made, home)) if isinstance(made, dict) else {}


def _at_home(made: JsonObject, scope: JsonObject) -> JsonObject:
    """In the namespace of its maker unless it names another."""
    metadata = get_mapping(made, "metadata")
    namespace = metadata.get("namespace") or scope.get("namespace")
    return {**made, "metadata": {**metadata, "namespace": namespace}} if namespace else made


def _with_bytes(made: JsonObject) -> JsonObject:
    """A Secret's texts as a server keeps them."""
    texts = made.get("stringData")
    if made.get("kind") != "Secret" or not isinstance(texts, dict):
        return made
    data = {**get_mapping(made, "data")}
    data |= {key: base64.b64encode(str(value).encode()).decode() for key, value in texts.items()}
    return {**{key: value for key, value in made.items() if key != "stringData"}, "data": data}


def _service(service: ServiceProduct, scope: JsonObject) -> Iterator[ProducedObject]:
    name = render_text(service.name, scope)
    if not name or not all_checks_pass(service.when, scope):
        return
    ports: list[Json] = [
        {"name": one.name, "port": one.port, "protocol": "TCP"} for one in service.ports
    ]
    spec: JsonObject = {"ports": ports}
    if selector := render(service.selector, scope):
        spec["selector"] = selector
    if service.headless:
        spec["clusterIP"] = "None"
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": spec,
    }
    yield ProducedObject(_at_home(body, scope), is_owned=True, answers_when_ready=True)

"""What an object needs and produces by the row of its kind, and the configuration that a pod needs.

Pure functions: the graph uses them for objects that are not applied yet, the simulator for those
that are.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidegate.knowledge.templates import list_item_scopes, make_scope, render, render_text
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.kinds import CONFIG_MAP, SECRET
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.operators.checks import all_checks_pass
from tidegate.model.operators.rows import KindRow, Need, Product, RequiredState, ServiceProduct

CRD_KIND_NAME = "CustomResourceDefinition"


def list_required_configs(spec: JsonObject, namespace: str) -> Iterator[Ref]:
    """Yield all Secrets and ConfigMaps without which pods of this spec cannot start."""
    containers = (*get_mappings(spec, "initContainers"), *get_mappings(spec, "containers"))
    sources = [source for container in containers for source in list_env_from_sources(container)]
    sources += [
        (kind, reference)
        for container in containers
        for _, kind, reference in list_env_key_sources(container)
    ]
    sources += [
        source for volume in get_mappings(spec, "volumes") for source in list_volume_sources(volume)
    ]
    for kind, reference in sources:
        if not reference.get("optional"):
            yield Ref(kind, namespace, get_text(reference, "name"))


def list_env_from_sources(container: Json) -> Iterator[tuple[Kind, JsonObject]]:
    """Yield the objects in `envFrom` of a container."""
    for entry in get_mappings(container, "envFrom"):
        if reference := get_mapping(entry, "configMapRef"):
            yield CONFIG_MAP, reference
        if reference := get_mapping(entry, "secretRef"):
            yield SECRET, reference


def list_env_key_sources(container: Json) -> Iterator[tuple[str, Kind, JsonObject]]:
    """Yield the variables of a container that are a key of an object, with the reference."""
    for variable in get_mappings(container, "env"):
        source = get_mapping(variable, "valueFrom")
        if reference := get_mapping(source, "configMapKeyRef"):
            yield get_text(variable, "name"), CONFIG_MAP, reference
        if reference := get_mapping(source, "secretKeyRef"):
            yield get_text(variable, "name"), SECRET, reference


def list_volume_sources(volume: JsonObject) -> Iterator[tuple[Kind, JsonObject]]:
    """Yield the Secrets and ConfigMaps that a volume mounts."""
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
    """An object that another object needs."""

    need: Need
    """The need of the row."""
    group: str
    """API group of the needed object."""
    kind: str
    """Kind of the needed object."""
    namespace: str
    """Namespace of the needed object; empty for none."""
    name: str
    """Name of the needed object."""
    at: Json = None
    """The key of the item that needs it, if the need has `each`."""

    def scope(self) -> JsonObject:
        """Return the fields as a scope for templates."""
        return {
            "group": self.group,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
        }


class ProducedObject(NamedTuple):
    """An object that an operator produces."""

    body: JsonObject
    """The produced object."""
    is_owned: bool
    """Whether the object is deleted with its owner."""
    answers_when_ready: bool = False
    """Whether it is a Service that answers as soon as its owner is ready."""


def list_needs(row: KindRow, body: JsonObject, kind: Kind) -> Iterator[NeededObject]:
    """Yield the objects that an object needs. A need without a name is skipped."""
    object_scope = make_scope(body, kind)
    for need in row.needs:
        for scope in list_item_scopes(object_scope, need.each):
            if not all_checks_pass(need.when, scope):
                continue
            parts = (need.group, need.kind, need.namespace, need.name)
            needed = NeededObject(need, *(render_text(part, scope) for part in parts))
            needed = needed._replace(at=scope.get("key")) if need.each else needed
            # A host without a namespace is meaningless for a cluster-scoped object.
            has_no_namespace = need.until is RequiredState.SERVING and not needed.namespace
            if needed.name and not has_no_namespace:
                yield needed


def list_products(
    row: KindRow, scope: JsonObject, last_stage: int | None = None
) -> Iterator[ProducedObject]:
    """Yield what an object has produced at a stage, or in all stages if `last_stage` is None."""
    for service in row.services:
        yield from _render_service(service, scope)
    for stage in row.stages if last_stage is None else row.stages[: last_stage + 1]:
        yield from render_products(stage.produces, scope)


def list_produced_crds(row: KindRow | None, body: JsonObject, kind: Kind) -> list[JsonObject]:
    """Return the CRDs that are produced from an object, as Gatekeeper does for a
    ConstraintTemplate.
    """
    products = (product for stage in row.stages for product in stage.produces) if row else ()
    if not any(product.makes.get("kind") == CRD_KIND_NAME for product in products):
        return []
    produced = list_products(row, make_scope(body, kind)) if row else ()
    return [product.body for product in produced if product.body.get("kind") == CRD_KIND_NAME]


def render_products(
    products: Iterable[Product], object_scope: JsonObject
) -> Iterator[ProducedObject]:
    """Yield the products of an object. A product without a name is skipped."""
    for product in products:
        for scope in list_item_scopes(object_scope, product.each):
            if all_checks_pass(product.when, scope):
                body = _render_object(product, scope)
                if get_mapping(body, "metadata").get("name"):
                    yield ProducedObject(body, product.owned)


def _render_object(product: Product, scope: JsonObject) -> JsonObject:
    body = render(product.makes, scope)
    namespace_scope: JsonObject = scope if product.namespaced else {}
    return (
        _with_encoded_data(_with_namespace(body, namespace_scope)) if isinstance(body, dict) else {}
    )


def _with_namespace(body: JsonObject, scope: JsonObject) -> JsonObject:
    """Return the object in the namespace of its owner unless it names another."""
    metadata = get_mapping(body, "metadata")
    namespace = metadata.get("namespace") or scope.get("namespace")
    return {**body, "metadata": {**metadata, "namespace": namespace}} if namespace else body


def _with_encoded_data(body: JsonObject) -> JsonObject:
    """Return a Secret with `stringData` moved to `data`, as the server stores it.

    Like `Convert_v1_Secret_To_core_Secret` in `pkg/apis/core/v1/conversion.go` of Kubernetes
    1.36.4.
    """
    texts = body.get("stringData")
    if body.get("kind") != "Secret" or not isinstance(texts, dict):
        return body
    data = {**get_mapping(body, "data")}
    data |= {key: base64.b64encode(str(value).encode()).decode() for key, value in texts.items()}
    return {**{key: value for key, value in body.items() if key != "stringData"}, "data": data}


def _render_service(service: ServiceProduct, scope: JsonObject) -> Iterator[ProducedObject]:
    name = render_text(service.name, scope)
    if not name or not all_checks_pass(service.when, scope):
        return
    ports: list[Json] = [
        {"name": port.name, "port": port.port, "protocol": "TCP"} for port in service.ports
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
    yield ProducedObject(_with_namespace(body, scope), is_owned=True, answers_when_ready=True)

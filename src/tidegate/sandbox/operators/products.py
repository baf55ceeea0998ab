"""Objects that an operator produces: created if absent, completed if fields are missing.

Existing fields are left alone: a Secret that is already filled keeps its values.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

import msgspec

from tidegate.knowledge.references import ProducedObject, list_products
from tidegate.knowledge.settings import OPEN_KEYS_ANNOTATION, SIMULATED_ANNOTATION
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.operators.rows import KindRow
from tidegate.sandbox.controllers.interface import ObjectReader, RequeueAt
from tidegate.sandbox.controllers.writes import owner_reference
from tidegate.sandbox.kinds import SERVICE_NAME_LABEL
from tidegate.sandbox.server.store import StoredObject, get_metadata, ref_from_body
from tidegate.world.messages import Outcome, is_error
from tidegate.world.requests import Verb, Write

ProductWrites = Generator[Write | RequeueAt, Outcome | None, bool]
"""Writes, and whether the server rejected one."""
NAMED_ANNOTATION = "sandbox.tidegate.dev/named"
"""Annotation of objects that are given by name only: their contents are unknown."""
OPERATOR_MANAGER = "simulated-operator"
PLACEHOLDER_ADDRESS = "192.0.2.1"
"""An address of the documentation network TEST-NET-1, which no host has."""


def simulated_products(
    row: KindRow, scope: JsonObject, upto: int | None = None, *, has_unknown_keys: bool = False
) -> Iterator[ProducedObject]:
    """Yield the products of an object at a stage, annotated as simulated.

    A ready object also yields the endpoints of its Services, whose pods are not simulated. With
    `has_unknown_keys`, the products are annotated as having keys that are not known.
    """
    is_ready = upto is None or upto == len(row.stages) - 1
    for product in list_products(row, scope, upto):
        yield product._replace(
            body=_annotate_simulated(product.body, OPEN_KEYS_ANNOTATION if has_unknown_keys else "")
        )
        if product.answers_when_ready and is_ready:
            yield ProducedObject(
                _annotate_simulated(endpoint_slice_for(product.body)), is_owned=True
            )


def _annotate_simulated(body: JsonObject, extra_annotation: str = "") -> JsonObject:
    metadata = get_metadata(body)
    annotations: JsonObject = {**get_mapping(metadata, "annotations"), SIMULATED_ANNOTATION: "true"}
    if extra_annotation:
        annotations[extra_annotation] = "true"
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def endpoint_slice_for(service: JsonObject) -> JsonObject:
    """Return an EndpointSlice for a Service whose pods are not simulated."""
    metadata = get_metadata(service)
    labels: JsonObject = {
        SERVICE_NAME_LABEL: metadata["name"],
        "endpointslice.kubernetes.io/managed-by": OPERATOR_MANAGER,
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "name": f"{metadata['name']}-simulated", "labels": labels},
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": [PLACEHOLDER_ADDRESS], "conditions": {"ready": True, "serving": True}}
        ],
        "ports": get_mapping(service, "spec")["ports"],
    }


def write_products(
    reader: ObjectReader, owner: StoredObject, products: Iterable[ProducedObject]
) -> ProductWrites:
    """Write these products; return whether the server rejected one.

    Of two products that are the same object the first is created; the second adds missing
    fields as soon as the object is visible.
    """
    was_rejected = False
    created: set[Ref] = set()
    for product in products:
        write = _product_write(reader, owner, product)
        if write is None or (write.verb is Verb.CREATE and write.ref in created):
            continue
        created.add(write.ref)
        outcome = yield write
        was_rejected = was_rejected or (outcome is not None and is_error(outcome))
    return was_rejected


def _product_write(
    reader: ObjectReader, owner: StoredObject, product: ProducedObject
) -> Write | None:
    ref = ref_from_body(product.body)
    live = reader.get(ref)
    if live is None:
        body = _with_owner(product.body, owner) if product.is_owned else product.body
        return Write(
            verb=Verb.CREATE, ref=ref, body=msgspec.json.encode(body), manager=OPERATOR_MANAGER
        )
    desired: JsonObject = {
        key: product.body[key] for key in ("data", "spec") if key in product.body
    }
    missing = _missing_fields(desired, _with_string_data(live.body))
    if not missing or live.is_deleting:
        return None
    patch = msgspec.json.encode(missing)
    return Write(verb=Verb.PATCH, ref=ref, body=patch, uid=live.uid, manager=OPERATOR_MANAGER)


def _with_owner(body: JsonObject, owner: StoredObject) -> JsonObject:
    """Return a body with an owner reference, unless the owner is in another namespace."""
    metadata = get_metadata(body)
    if owner.ref.namespace and metadata.get("namespace") != owner.ref.namespace:
        return body
    return {**body, "metadata": {**metadata, "ownerReferences": [owner_reference(owner)]}}


def _with_string_data(body: JsonObject) -> JsonObject:
    """Return a body with `stringData` merged into `data`, as a server stores it."""
    texts, data = body.get("stringData"), body.get("data")
    if not isinstance(texts, dict):
        return body
    return {**body, "data": {**(data if isinstance(data, dict) else {}), **texts}}


def _missing_fields(desired: JsonObject, actual: Json) -> JsonObject:
    """Return the fields that a mapping lacks, as a merge patch."""
    existing: JsonObject = actual if isinstance(actual, dict) else {}
    missing: JsonObject = {}
    for key, value in desired.items():
        if key not in existing:
            missing[key] = value
        elif isinstance(value, dict) and (inner := _missing_fields(value, existing[key])):
            missing[key] = inner
    return missing

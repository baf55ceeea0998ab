"""Preinstalled objects that are given by name only: they exist and are healthy from the start.

Their bodies are minimal for their kind. Custom resources have the status of the last stage of
their row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import cast

import msgspec

from tidegate.documents import read_documents
from tidegate.knowledge.catalog import KindCatalog
from tidegate.knowledge.settings import SIMULATED_ANNOTATION
from tidegate.knowledge.templates import make_scope
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.kinds import API_SERVICE, NAMESPACE, SERVICE
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.operators.rows import WILDCARD, KindRow, WorkloadSelector
from tidegate.model.simulation.preinstalled import GivenCluster, GivenKind, parse_kind_title
from tidegate.model.times import Ms
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.controllers.writes import set_status
from tidegate.sandbox.operators import availability
from tidegate.sandbox.operators.interpreter import fill_times, stage_status
from tidegate.sandbox.operators.products import (
    NAMED_ANNOTATION,
    OPERATOR_MANAGER,
    endpoint_slice_for,
)
from tidegate.schema.builtin import served_kinds
from tidegate.world.requests import Write

MINIMAL_BODIES = Path(__file__).parents[1] / "named.yaml"
UNKNOWN_VERSION = "v1"


def externally_served_rows(given: Iterable[GivenKind], catalog: KindCatalog) -> list[KindRow]:
    """Return the rows of the given kinds that an external operator serves.

    A kind without a row gets the generic one.
    """
    rows = []
    for given_kind in given:
        row = availability.row_for(catalog, given_kind.kind)
        if given_kind.served and row is not None:
            rows.append(
                _external_row(row, given_kind.kind, is_cluster_scoped=given_kind.cluster_wide)
            )
    return rows


def _external_row(row: KindRow, kind: Kind, *, is_cluster_scoped: bool) -> KindRow:
    is_generic = row.group == WILDCARD
    return msgspec.structs.replace(
        row,
        group=kind.group,
        kinds=(kind.name,),
        versions=(kind.version,) if is_generic else row.versions,
        cluster_wide=(kind.name,) if is_cluster_scoped or kind.name in row.cluster_wide else (),
        served_by=WorkloadSelector(outside=True),
    )


def named_refs(given: GivenCluster, catalog: KindCatalog) -> Iterator[Ref]:
    """Yield the objects that are given by name."""
    for title, names in given.names.items():
        kind = _resolve_kind(title, given, catalog)
        for qualified_name in names:
            namespace, _, name = qualified_name.rpartition("/")
            yield Ref(kind, namespace, name)


def _resolve_kind(title: str, given: GivenCluster, catalog: KindCatalog) -> Kind:
    """Return the kind of a title in its stored version, as far as that is known."""
    group, name = parse_kind_title(title)
    row = catalog.rows.get((group, name))
    given_versions = (
        given_kind.kind.version
        for given_kind in given.kinds
        if _has_group_kind(given_kind.kind, group, name)
    )
    builtin_versions = (
        served.kind.version
        for served in served_kinds()
        if _has_group_kind(served.kind, group, name)
    )
    versions = (
        *builtin_versions,
        *(row.versions[:1] if row else ()),
        *given_versions,
        UNKNOWN_VERSION,
    )
    return Kind(group, versions[0], name)


def _has_group_kind(kind: Kind, group: str, name: str) -> bool:
    return (kind.group, kind.name) == (group, name)


def named_bodies(given: GivenCluster, catalog: KindCatalog) -> Iterator[JsonObject]:
    """Yield the bodies of these objects, and their namespaces."""
    for ref in named_refs(given, catalog):
        if ref.namespace:
            yield namespace_body(ref.namespace)
        body = _body(ref)
        yield body
        if ref.kind == SERVICE:
            yield endpoint_slice_for(body)


def namespace_body(name: str) -> JsonObject:
    """Return a namespace with this name."""
    return _body(Ref(NAMESPACE, "", name))


def _body(ref: Ref) -> JsonObject:
    minimal = _minimal_bodies().get((ref.kind.group, ref.kind.name), {})
    annotations: JsonObject = {
        **get_mapping(minimal, "metadata", "annotations"),
        SIMULATED_ANNOTATION: "true",
        NAMED_ANNOTATION: "true",
    }
    metadata: JsonObject = {"name": ref.name, "annotations": annotations}
    if ref.namespace:
        metadata["namespace"] = ref.namespace
    type_meta: JsonObject = {"apiVersion": ref.kind.api_version, "kind": ref.kind.name}
    if ref.kind == API_SERVICE:
        version, _, group = ref.name.partition(".")
        minimal = {"spec": {**get_mapping(minimal, "spec"), "group": group, "version": version}}
    return {**type_meta, **minimal, "metadata": metadata}


@cache
def _minimal_bodies() -> dict[tuple[str, str], JsonObject]:
    (document,) = read_documents(MINIMAL_BODIES.read_bytes(), MINIMAL_BODIES.name)
    return {
        parse_kind_title(title): cast("JsonObject", body) for title, body in document.body.items()
    }


def status_writes(
    given: GivenCluster, catalog: KindCatalog, reader: ObjectReader, now: Ms
) -> Iterator[Write]:
    """Yield the statuses that the operators of these objects have written."""
    for ref in named_refs(given, catalog):
        stored = reader.get(ref)
        row = availability.row_for(catalog, ref.kind)
        if stored is None or row is None or not row.stages[-1].writes:
            continue
        desired: Json = stage_status(row.stages[-1].writes, make_scope(stored.body, ref.kind))
        status = fill_times(desired, None, now)
        subresource = "" if ref.kind.name in row.statusless else "status"
        yield set_status(stored, status, subresource=subresource, manager=OPERATOR_MANAGER)

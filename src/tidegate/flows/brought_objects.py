"""Objects that units provide, directly or through operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.dialect.units import is_dialect_kind
from tidegate.knowledge.catalogue import KnownRows
from tidegate.knowledge.references import definitions_of, products_of
from tidegate.knowledge.templates import scope_of
from tidegate.model.manifest import Manifest
from tidegate.model.objects import JsonObject, Kind, Ref, versionless_key
from tidegate.model.plan import ItemAction
from tidegate.model.reading import get_mappings, get_text

CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")
WORKLOADS = tuple(Kind("apps", "v1", name) for name in ("Deployment", "StatefulSet", "DaemonSet"))

GroupKind = tuple[str, str]


class ProvidedObjects(msgspec.Struct, frozen=True):
    """The objects that the units of one cluster provide."""

    objects: tuple[tuple[Ref, JsonObject], ...]
    identities: frozenset[tuple[str, str, str, str]]
    """Identities of these objects, and of what operators produce from them."""
    defined_kinds: frozenset[Kind]
    operator_defined: frozenset[Kind]
    """The defined kinds whose CRDs an operator creates when it sees these objects."""
    workloads: tuple[JsonObject, ...]
    namespaced_kinds: frozenset[GroupKind]
    """Kinds of which an object names a namespace itself."""

    @classmethod
    def from_manifests(
        cls, manifests: Iterable[Manifest], catalog: KnownRows, bodies: Iterable[JsonObject]
    ) -> ProvidedObjects:
        objects = tuple(
            (manifest.ref, msgspec.json.decode(manifest.body))
            for manifest in manifests
            if manifest.action is not ItemAction.DELETE and not is_dialect_kind(manifest.ref.kind)
        )
        identities = {versionless_key(ref) for ref, _ in objects}
        for ref, body in objects:
            identities |= {
                versionless_key(product) for product in operator_products(ref, body, catalog)
            }
        crds = [body for ref, body in objects if (ref.kind.group, ref.kind.name) == CRD]
        operator_defined = [
            kind
            for ref, body in objects
            for crd in definitions_of(catalog.row_of(ref.kind), body, ref.kind)
            for kind in _kinds_of_crd(crd)
        ]
        kinds = {*operator_defined, *(kind for body in crds for kind in _kinds_of_crd(body))}
        return cls(
            objects,
            frozenset(identities),
            frozenset(kinds),
            frozenset(operator_defined),
            tuple(body for ref, body in objects if ref.kind in WORKLOADS),
            frozenset(
                (kind.group, kind.name)
                for body in bodies
                if get_text(body, "metadata", "namespace")
                for kind in (Kind.of(get_text(body, "apiVersion"), get_text(body, "kind")),)
            ),
        )


def operator_products(ref: Ref, body: JsonObject, catalog: KnownRows) -> Iterator[Ref]:
    """Yield the objects that an operator produces from an object."""
    row = catalog.row_of(ref.kind)
    for product in products_of(row, scope_of(body, ref.kind)) if row else ():
        kind = Kind.of(get_text(product.body, "apiVersion"), get_text(product.body, "kind"))
        metadata = ("metadata", "namespace"), ("metadata", "name")
        yield Ref(kind, *(get_text(product.body, *path) for path in metadata))


def _kinds_of_crd(body: JsonObject) -> Iterator[Kind]:
    group, name = get_text(body, "spec", "group"), get_text(body, "spec", "names", "kind")
    for version in get_mappings(body, "spec", "versions"):
        yield Kind(group, get_text(version, "name"), name)

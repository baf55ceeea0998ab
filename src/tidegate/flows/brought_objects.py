"""What units bring to a cluster, and what operators make of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.dialect.units import is_own_kind
from tidegate.knowledge.catalogue import KnownRows
from tidegate.knowledge.references import definitions_of, products_of
from tidegate.knowledge.templates import scope_of
from tidegate.model.manifest import Manifest
from tidegate.model.objects import Json, Kind, Ref, identity
from tidegate.model.plan import Deed
from tidegate.model.reading import mappings, text

DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
WORKLOADS = tuple(Kind("apps", "v1", name) for name in ("Deployment", "StatefulSet", "DaemonSet"))

Body = dict[str, Json]
KindName = tuple[str, str]


class BroughtObjects(msgspec.Struct, frozen=True):
    """What the units of one cluster bring to it."""

    objects: tuple[tuple[Ref, Body], ...]
    made: frozenset[tuple[str, str, str, str]]
    """These objects, and what operators make of them, by their identities."""
    defined: frozenset[Kind]
    late: frozenset[Kind]
    """Those of the defined ones that an operator defines when it sees these objects."""
    workloads: tuple[Body, ...]
    homely: frozenset[KindName]
    """Kinds of which an object names a namespace by itself."""

    @classmethod
    def of(
        cls, manifests: Iterable[Manifest], known: KnownRows, texts: Iterable[Body]
    ) -> BroughtObjects:
        objects = tuple(
            (one.ref, msgspec.json.decode(one.body))
            for one in manifests
            if one.deed is not Deed.DELETE and not is_own_kind(one.ref.kind)
        )
        made = {identity(ref) for ref, _ in objects}
        for ref, body in objects:
            made |= {identity(one) for one in made_of(ref, body, known)}
        definitions = [
            body for ref, body in objects if (ref.kind.group, ref.kind.name) == DEFINITION
        ]
        late = [
            kind
            for ref, body in objects
            for one in definitions_of(known.row_of(ref.kind), body, ref.kind)
            for kind in _defined_by(one)
        ]
        kinds = {*late, *(kind for body in definitions for kind in _defined_by(body))}
        return cls(
            objects,
            frozenset(made),
            frozenset(kinds),
            frozenset(late),
            tuple(body for ref, body in objects if ref.kind in WORKLOADS),
            frozenset(
                (kind.group, kind.name)
                for body in texts
                if text(body, "metadata", "namespace")
                for kind in (Kind.of(text(body, "apiVersion"), text(body, "kind")),)
            ),
        )


def made_of(ref: Ref, body: Body, known: KnownRows) -> Iterator[Ref]:
    """What its operator makes of an object."""
    row = known.row_of(ref.kind)
    for one in products_of(row, scope_of(body, ref.kind)) if row else ():
        kind = Kind.of(text(one.body, "apiVersion"), text(one.body, "kind"))
        metadata = ("metadata", "namespace"), ("metadata", "name")
        yield Ref(kind, *(text(one.body, *path) for path in metadata))


def _defined_by(body: Body) -> Iterator[Kind]:
    group, name = text(body, "spec", "group"), text(body, "spec", "names", "kind")
    for version in mappings(body, "spec", "versions"):
        yield Kind(group, text(version, "name"), name)

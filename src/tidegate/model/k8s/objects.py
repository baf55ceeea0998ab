"""Kubernetes objects: kinds, references, and live objects.

A body stays bytes until its content is needed. `parse_live_object` decodes only the metadata, which
costs a fraction of parsing the whole body.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias

import msgspec

Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
JsonObject: TypeAlias = dict[str, Json]
"""An object as JSON: its body, or a mapping in it."""
FieldPath: TypeAlias = tuple[str | int, ...]
"""The path of a field in a body: `("spec", "ports", 0)`."""
MAX_CACHED_KINDS = 1024
"""How many kinds are kept; the objects of one command have few kinds."""


class Kind(msgspec.Struct, frozen=True, order=True, gc=False):
    """A kind with its API version: `apps/v1 Deployment`. The core group is empty."""

    group: str
    version: str
    name: str

    @staticmethod
    @lru_cache(maxsize=MAX_CACHED_KINDS)
    def of(api_version: str, name: str) -> Kind:
        group, _, version = api_version.rpartition("/")
        return Kind(group, version, name)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version} {self.name}"


class Ref(msgspec.Struct, frozen=True, order=True, gc=False):
    """A reference to an object: kind, namespace (empty for cluster-scoped kinds) and name."""

    kind: Kind
    namespace: str
    name: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which a user may select the object; the last has all parts."""
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return (
            self.name,
            name,
            f"{self.kind.name}/{self.name}",
            f"{self.kind.name}/{name}",
            str(self),
        )

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind.name} {name}"


class ClusterRef(msgspec.Struct, frozen=True, order=True, gc=False):
    """A reference to an object of one cluster."""

    cluster: str
    ref: Ref


def versionless_key(ref: Ref) -> tuple[str, str, str, str]:
    """Return the key of an object that is the same in all versions of its kind."""
    return (ref.kind.group, ref.kind.name, ref.namespace, ref.name)


def with_served_version(ref: Ref, served: Collection[Kind]) -> Ref:
    """Return the reference in a served version of its kind, or unchanged if there is none."""
    if ref.kind in served:
        return ref
    name = (ref.kind.group, ref.kind.name)
    kind = next(
        (candidate for candidate in served if (candidate.group, candidate.name) == name), ref.kind
    )
    return Ref(kind, ref.namespace, ref.name)


class LiveObject(msgspec.Struct, frozen=True, gc=False):
    """An object as a server returned it: metadata for fencing, and the body.

    Kinds without a generation (Service, Secret, ConfigMap) have 0.
    """

    ref: Ref
    uid: str
    generation: int
    resource_version: str
    body: bytes


def object_body(live: LiveObject) -> JsonObject:
    """Return the body of a live object, with `apiVersion` and `kind`, which list items lack."""
    body: JsonObject = msgspec.json.decode(live.body)
    if "kind" not in body:
        kind = live.ref.kind
        return {"apiVersion": kind.api_version, "kind": kind.name, **body}
    return body


class Propagation(StrEnum):
    """The propagation policy of a deletion.

    Foreground deletes dependents first and waits for them; background deletes them afterwards.
    """

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class ServedKind(msgspec.Struct, frozen=True, order=True, gc=False):
    """A kind that a cluster serves, with its API resource."""

    kind: Kind
    plural: str
    namespaced: bool
    verbs: tuple[str, ...]
    subresources: tuple[str, ...]


class _ObjectMeta(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""


class _ObjectHead(msgspec.Struct, rename="camel", gc=False):
    metadata: _ObjectMeta
    api_version: str = ""
    kind: str = ""


_decode_head = msgspec.json.Decoder(_ObjectHead).decode


def parse_live_object(body: bytes, kind: Kind | None = None) -> LiveObject:
    """Decode the metadata of an object. `kind` is required for list items, which have no kind."""
    head = _decode_head(body)
    meta = head.metadata
    object_kind = kind or Kind.of(head.api_version, head.kind)
    ref = Ref(object_kind, meta.namespace, meta.name)
    return LiveObject(ref, meta.uid, meta.generation, meta.resource_version, body)

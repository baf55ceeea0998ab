"""Kubernetes objects as nouns: their kind, their name, and the little that is read of a body.

A body stays bytes until someone needs what is inside. `read_live` decodes its head and nothing
else, which costs a fraction of parsing the whole.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import TypeAlias

import msgspec

Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
FieldPath: TypeAlias = tuple[str | int, ...]
"""Where something stands inside a body: `("spec", "ports", 0)`."""


class Kind(msgspec.Struct, frozen=True, order=True, gc=False):
    """What an object is: `apps/v1 Deployment`. The core group is empty."""

    group: str
    version: str
    name: str

    @classmethod
    def of(cls, api_version: str, name: str) -> Kind:
        group, _, version = api_version.rpartition("/")
        return cls(group, version, name)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version} {self.name}"


class Ref(msgspec.Struct, frozen=True, order=True, gc=False):
    """Which object: its kind, its namespace (empty for cluster-wide kinds) and its name."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        spot = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind.name} {spot}"


class Spot(msgspec.Struct, frozen=True, order=True, gc=False):
    """An object of one of the clusters."""

    cluster: str
    ref: Ref


def identity(ref: Ref) -> tuple[str, str, str, str]:
    """An object is the same in all versions of its kind."""
    return (ref.kind.group, ref.kind.name, ref.namespace, ref.name)


def as_served(ref: Ref, served: Collection[Kind]) -> Ref:
    """The same object in a version of its kind that is served, where there is one."""
    if ref.kind in served:
        return ref
    name = (ref.kind.group, ref.kind.name)
    kind = next((one for one in served if (one.group, one.name) == name), ref.kind)
    return Ref(kind, ref.namespace, ref.name)


class Live(msgspec.Struct, frozen=True, gc=False):
    """One object as a server told it: what a fence asks for, and its bytes.

    Kinds that have no generation (Service, Secret, ConfigMap) say 0.
    """

    ref: Ref
    uid: str
    generation: int
    version: str
    body: bytes


class Propagation(StrEnum):
    """What a deletion does to the objects that the deleted one owns.

    In the foreground they go first, and it waits for them; in the background they follow it.
    """

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class Served(msgspec.Struct, frozen=True, order=True, gc=False):
    """A kind that a cluster serves, and how it is spoken of in URLs."""

    kind: Kind
    plural: str
    namespaced: bool
    verbs: tuple[str, ...]
    subresources: tuple[str, ...]


class _Meta(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""


class _Head(msgspec.Struct, rename="camel", gc=False):
    metadata: _Meta
    api_version: str = ""
    kind: str = ""


_decode_head = msgspec.json.Decoder(_Head).decode


def read_live(body: bytes, kind: Kind | None = None) -> Live:
    """Read an object's head. Items of a list do not name their kind, so a caller may give it."""
    head = _decode_head(body)
    meta = head.metadata
    known = kind or Kind.of(head.api_version, head.kind)
    ref = Ref(known, meta.namespace, meta.name)
    return Live(ref, meta.uid, meta.generation, meta.resource_version, body)

"""All that rules look at: objects with their units, their order, what they refer to, and files."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import msgspec

from tidegate.documents import Document
from tidegate.errors import Place
from tidegate.knowledge.catalogue import KnownRows
from tidegate.lint.order import StepOrder
from tidegate.model.bands import Bands
from tidegate.model.config import Switch
from tidegate.model.graph import Graph, MissingThing
from tidegate.model.manifest import Manifest
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Ref, Spot, identity
from tidegate.model.plan import Step
from tidegate.model.unit import Unit, UnitId

Body = dict[str, Json]
HasCheck = Callable[[Unit, Body], bool]
"""Whether the rules of a unit judge an object, or pass it at once."""
Identity = tuple[str, str, str, str, str]
"""A cluster, and what is the same in all versions of an object's kind."""


class WantWay(NamedTuple):
    """Why something that is wanted never comes: the edge it begins with, and what is between."""

    edge: int
    between: tuple[str, ...]
    length: int


class Coming(Protocol):
    """What comes about in a graph, whatever time it is given, and what never does."""

    def starts(self, step: int) -> bool: ...
    def meets(self, want: int) -> bool: ...
    def way(self, want: int, step: int) -> WantWay | None: ...


class Smooth:
    """Everything comes about."""

    def starts(self, step: int) -> bool:  # noqa: ARG002 - every one does
        return True

    def meets(self, want: int) -> bool:  # noqa: ARG002
        return True

    def way(self, want: int, step: int) -> WantWay | None:  # noqa: ARG002
        return None


class Actor(msgspec.Struct, frozen=True, eq=False):
    """An object of a unit, where in the unit's order it stands, and its text in a file.

    A namespace that a unit makes by itself has no file.
    """

    unit: Unit
    manifest: Manifest
    document: Document

    @property
    def ref(self) -> Ref:
        return self.manifest.ref

    @property
    def body(self) -> Body:
        return self.document.body

    @property
    def spot(self) -> Spot:
        return Spot(self.unit.destination.cluster, self.manifest.ref)

    @property
    def identity(self) -> Identity:
        return (self.unit.destination.cluster, *identity(self.manifest.ref))

    def is_a(self, group: str, *kinds: str) -> bool:
        kind = self.manifest.ref.kind
        return kind.group == group and kind.name in kinds


class SceneFile(msgspec.Struct, frozen=True):
    """A file that is no manifest, as a document: an overlay, rules for SOPS, values."""

    name: str
    documents: tuple[Document, ...]


class Octal(msgspec.Struct, frozen=True):
    """A number that begins with a zero, as the text of a file has it."""

    key: str
    text: str
    where: Place


@dataclass(frozen=True, kw_only=True, eq=False)
class LintScene:
    """What is known of a repository.

    `order`: nothing where the units cannot be put in order. `unit_objects`: the own objects of
    units, by their places. `documents`: by unit, all that it renders. `overlays`, `sealings`,
    `values`: files of kustomize, rules of SOPS, values of charts; `sealed`: encrypted files.
    `hidden`: objects that stand encrypted in Git. `files`: the names of all files. `whole`: the
    units all of whose objects are known. `greenfield`: nothing is there when it begins.
    """

    actors: tuple[Actor, ...] = ()
    units: Mapping[UnitId, Unit] = field(default_factory=dict)
    order: StepOrder = field(default_factory=StepOrder)
    known: KnownRows = field(default_factory=lambda: KnownRows({}, {}))
    has_check: HasCheck = lambda _unit, _body: True
    settings: Mapping[str, Switch] = field(default_factory=dict)
    unit_objects: Mapping[UnitId, Document] = field(default_factory=dict)
    overlays: tuple[SceneFile, ...] = ()
    sealings: tuple[SceneFile, ...] = ()
    sealed: tuple[SceneFile, ...] = ()
    values: tuple[SceneFile, ...] = ()
    octals: tuple[Octal, ...] = ()
    documents: Mapping[UnitId, tuple[Document, ...]] = field(default_factory=dict)
    hidden: frozenset[Identity] = frozenset()
    graph: Graph = field(default_factory=Graph)
    course: Coming = field(default_factory=Smooth)
    luckless: Coming | None = None
    """What comes about where every object is looked at in time, if that makes a difference."""
    greenfield: bool = False
    spans: Mapping[UnitId, Ms] = field(default_factory=dict)
    """How long units take by themselves, where some have windows."""
    files: frozenset[str] = frozenset()
    unshared: frozenset[str] = frozenset()
    """What overlays name and lies here, though Git ignores it."""
    whole: frozenset[UnitId] = frozenset()
    missing: tuple[MissingThing, ...] = ()
    """What nobody brings."""
    made: frozenset[Identity] = frozenset()
    """All that units bring, and what operators make of it."""
    bands: Bands = field(default_factory=Bands)

    @cached_property
    def folders(self) -> frozenset[str]:
        """The directories of all files."""
        found: set[str] = set()
        for name in self.files:
            while (name := posixpath.dirname(name)) and name not in found:
                found.add(name)
        return frozenset(found)

    @cached_property
    def by_identity(self) -> dict[Identity, list[Actor]]:
        found: dict[Identity, list[Actor]] = {}
        for one in self.actors:
            found.setdefault(one.identity, []).append(one)
        return found

    @cached_property
    def by_kind(self) -> dict[tuple[str, str], list[Actor]]:
        """The objects by group and kind."""
        found: dict[tuple[str, str], list[Actor]] = {}
        for one in self.actors:
            kind = one.manifest.ref.kind
            found.setdefault((kind.group, kind.name), []).append(one)
        return found

    @cached_property
    def by_unit(self) -> dict[UnitId, list[Actor]]:
        found: dict[UnitId, list[Actor]] = {}
        for one in self.actors:
            found.setdefault(one.unit.id, []).append(one)
        return found

    def of_kind(self, group: str, *kinds: str) -> Iterable[Actor]:
        for kind in kinds:
            yield from self.by_kind.get((group, kind), ())

    def step_of(self, actor: Actor) -> Step | None:
        return self.order.step_of(actor.unit.id, actor.manifest)

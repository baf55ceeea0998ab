"""Context of the lint rules: objects with their units, their order, their references, and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import msgspec

from tidegate.documents import Document
from tidegate.errors import Location
from tidegate.knowledge.catalog import KindCatalog
from tidegate.lint.order import StepOrder
from tidegate.model.config import ControllerSetting
from tidegate.model.k8s.objects import ClusterRef, FieldPath, JsonObject, Kind, Ref, versionless_key
from tidegate.model.plans.graph import Graph, UnmetDependency
from tidegate.model.plans.manifest import Manifest
from tidegate.model.plans.plan import Step
from tidegate.model.times import Ms
from tidegate.model.units.bands import Bands
from tidegate.model.units.unit import Unit, UnitId

HasCheck = Callable[[Unit, JsonObject], bool]
"""Returns whether the health rules of a unit judge an object, or accept it at once."""
Identity = tuple[str, str, str, str, str]
"""A cluster, and the identity of an object without the version of its kind."""


class WaitChain(NamedTuple):
    """The reason why a requirement is never met."""

    edge: int
    """Number of the edge that the chain starts with."""
    links: tuple[str, ...]
    """The links of the chain as sentences; the last one leads back to the waiting step."""
    length: int


class Reachability(Protocol):
    """The steps and requirements that a rollout reaches, given unlimited time."""

    def step_starts(self, step: int) -> bool: ...
    def is_met(self, requirement: int) -> bool: ...
    def wait_chain(self, requirement: int, step: int) -> WaitChain | None: ...
    def with_met(self, requirements: Iterable[int]) -> Reachability:
        """Return the reachability if these requirements are met as well."""
        ...


class AllReachable:
    """Reachability without blocked steps."""

    def step_starts(self, step: int) -> bool:  # noqa: ARG002 - every step starts
        return True

    def is_met(self, requirement: int) -> bool:  # noqa: ARG002
        return True

    def wait_chain(self, requirement: int, step: int) -> WaitChain | None:  # noqa: ARG002
        return None

    def with_met(self, requirements: Iterable[int]) -> Reachability:  # noqa: ARG002
        return self


class LintObject(msgspec.Struct, frozen=True, eq=False):
    """An object of a unit, with its manifest and its document in a file.

    A namespace that a unit creates by itself has no file.
    """

    unit: Unit
    manifest: Manifest
    document: Document

    @property
    def ref(self) -> Ref:
        return self.manifest.ref

    @property
    def body(self) -> JsonObject:
        return self.document.body

    @property
    def cluster_ref(self) -> ClusterRef:
        return ClusterRef(self.unit.destination.cluster, self.manifest.ref)

    @property
    def identity(self) -> Identity:
        return (self.unit.destination.cluster, *versionless_key(self.manifest.ref))

    def is_kind(self, group: str, *kinds: str) -> bool:
        kind = self.manifest.ref.kind
        return kind.group == group and kind.name in kinds


class OtherTrees(msgspec.Struct, frozen=True):
    """The trees of units that are alternatives to the linted ones.

    They are probably deployed to other clusters, but may be deployed to the same one.
    """

    objects: frozenset[tuple[str, str, str, str]] = frozenset()
    """Their objects: group, kind, namespace and name."""
    incomplete_units: tuple[Unit, ...] = ()
    """Their units whose objects are not all known."""


class LintFile(msgspec.Struct, frozen=True):
    """A file that is not a manifest, as documents: an overlay, a SOPS configuration, values."""

    name: str
    documents: tuple[Document, ...]


class OverlayEntry(msgspec.Struct, frozen=True):
    """A local path in a kustomization file."""

    overlay: str
    """The kustomization file."""
    document: Document
    field: FieldPath
    text: str
    """The entry as it is written."""
    target: str
    """The path from the root of the repository on."""


class OctalNumber(msgspec.Struct, frozen=True):
    """A number with a leading zero, as written in a file."""

    key: str
    text: str
    location: Location


@dataclass(frozen=True, kw_only=True, eq=False)
class LintContext:
    """All inputs of the lint rules."""

    objects: tuple[LintObject, ...] = ()
    units: Mapping[UnitId, Unit] = field(default_factory=dict)
    order: StepOrder = field(default_factory=StepOrder)
    """The order of the steps; empty if the units cannot be ordered."""
    catalog: KindCatalog = field(default_factory=lambda: KindCatalog({}, {}))
    has_check: HasCheck = lambda _unit, _body: True
    settings: Mapping[str, ControllerSetting] = field(default_factory=dict)
    unit_resources: Mapping[UnitId, Document] = field(default_factory=dict)
    """The unit resources, with their locations."""
    overlay_targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By directory of a kustomization, the local paths that it names."""
    missing_entries: tuple[OverlayEntry, ...] = ()
    """Local paths in kustomizations that are not in the repository."""
    sops_configs: tuple[LintFile, ...] = ()
    """`.sops.yaml` files."""
    encrypted_files: tuple[LintFile, ...] = ()
    """Files encrypted with SOPS."""
    value_files: tuple[LintFile, ...] = ()
    """Value files of charts."""
    octals: tuple[OctalNumber, ...] = ()
    documents: Mapping[UnitId, tuple[Document, ...]] = field(default_factory=dict)
    """All rendered documents by unit."""
    encrypted_objects: frozenset[Identity] = frozenset()
    """Objects that are encrypted in Git."""
    graph: Graph = field(default_factory=Graph)
    reachability: Reachability = field(default_factory=AllReachable)
    strict_reachability: Reachability | None = None
    """Reachability if every object is observed in time, where that makes a difference."""
    empty_cluster: bool = False
    """Whether the cluster is empty at the start."""
    durations: Mapping[UnitId, Ms] = field(default_factory=dict)
    """How long units take, where some have sync windows."""
    files: frozenset[str] = frozenset()
    """Names of all files."""
    helmfile_charts: frozenset[str] = frozenset()
    """Names of the releases and charts that helmfile installs, before Argo CD or Flux runs."""
    applying_scripts: Mapping[str, str] = field(default_factory=dict)
    """By the name of a manifest file, the script or the page that applies it with kubectl."""
    git_ignored_files: frozenset[str] = frozenset()
    """Files that overlays name and that exist, but that Git ignores."""
    complete_units: frozenset[UnitId] = frozenset()
    """Units whose objects are all known by name."""
    unknown_sources: Mapping[UnitId, frozenset[str]] = field(default_factory=dict)
    """Names of the charts and repositories whose objects are unknown, by unit."""
    missing: tuple[UnmetDependency, ...] = ()
    """Dependencies that no unit provides."""
    has_unread_units: bool = False
    """Whether files are templates of units, or the Applications of ApplicationSets are unknown."""
    partial_reason: str = ""
    """Why not all units of the repository are known; empty if they are."""
    find_creating_file: Callable[[Ref], str] = lambda _ref: ""
    """Returns the file that creates a missing object, although no unit deploys the file."""
    other_trees: OtherTrees = field(default_factory=OtherTrees)
    provided: frozenset[Identity] = frozenset()
    """All objects of the units, and what operators create from them."""
    bands: Bands = field(default_factory=Bands)

    @cached_property
    def by_identity(self) -> dict[Identity, list[LintObject]]:
        result: dict[Identity, list[LintObject]] = {}
        for lint_object in self.objects:
            result.setdefault(lint_object.identity, []).append(lint_object)
        return result

    @cached_property
    def by_kind(self) -> dict[tuple[str, str], list[LintObject]]:
        """The objects by group and kind."""
        result: dict[tuple[str, str], list[LintObject]] = {}
        for lint_object in self.objects:
            kind = lint_object.manifest.ref.kind
            result.setdefault((kind.group, kind.name), []).append(lint_object)
        return result

    @cached_property
    def by_unit(self) -> dict[UnitId, list[LintObject]]:
        result: dict[UnitId, list[LintObject]] = {}
        for lint_object in self.objects:
            result.setdefault(lint_object.unit.id, []).append(lint_object)
        return result

    def is_in_helmfile(self, kind: Kind) -> bool:
        """Return whether a helmfile of the repository installs the CRD of a kind."""
        return any(self.catalog.is_operator_chart(chart, kind) for chart in self.helmfile_charts)

    def objects_of_kind(self, group: str, *kinds: str) -> Iterable[LintObject]:
        for kind in kinds:
            yield from self.by_kind.get((group, kind), ())

    def step_for(self, obj: LintObject) -> Step | None:
        return self.order.step_for(obj.unit.id, obj.manifest)

"""Units: sets of objects that are deployed from sources, before they are rendered."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePath

import msgspec

from tidegate.errors import Location, redact_urls
from tidegate.model.k8s.objects import Ref
from tidegate.model.units.chart_request import ChartRequest
from tidegate.model.units.depends_on import AwaitedState
from tidegate.model.units.policy import Policy
from tidegate.model.units.project import ProjectRequest
from tidegate.model.units.rendering import (
    ArgoDetails,
    ArgoPlugin,
    FluxDetails,
    RenderRequest,
    ToolDetection,
)
from tidegate.model.units.source import (
    BucketSource,
    ChartSource,
    GitSource,
    LocalSource,
    OciSource,
    SourceObject,
    SourceRef,
)


class UnitId(msgspec.Struct, frozen=True, order=True, gc=False, cache_hash=True):
    """The identity of a unit: kind, cluster, namespace and name of its unit resource.

    A plain directory has no unit resource, and so no kind. The identity is written into clusters
    and never changes with a revision.
    """

    kind: str
    cluster: str
    namespace: str
    name: str

    @classmethod
    def plain(cls, namespace: str, name: str) -> UnitId:
        return cls("", "", namespace, name)

    @property
    def tracking_id(self) -> str:
        """The identity on objects and records: `default/web`, `Kustomization/flux-system/apps`.

        The cluster of a plain unit is left out, because it is only a local name of the user.
        """
        return (
            f"{self.cluster}:{self.qualified_name}"
            if self.cluster and self.kind
            else self.qualified_name
        )

    @property
    def qualified_name(self) -> str:
        """Kind, namespace and name, without the cluster."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which a user may select the unit; the last is unique."""
        return (self.name, f"{self.namespace}/{self.name}", self.tracking_id, str(self))

    def __str__(self) -> str:
        """Format the identity for people, with its cluster if that has a name."""
        return (
            f"{self.cluster}:{self.tracking_id}"
            if self.cluster and not self.kind
            else self.tracking_id
        )


class Strength(StrEnum):
    """The strength of a dependency."""

    HARD = "hard"
    """The dependency is declared."""
    SOFT = "soft"
    """The dependency is inferred."""


class Dependency(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A dependency of a unit on another unit, or on an object that it does not create itself."""

    unit: UnitId | None = None
    ref: Ref | None = None
    strength: Strength = Strength.HARD
    location: Location | None = None
    ready_when: str = ""
    """The CEL expression that must hold. If empty, the dependency must be healthy."""
    is_tidegate_annotation: bool = False
    """Whether Tidegate's annotation declares it, which other controllers ignore."""
    state: AwaitedState = AwaitedState.READY
    """The required state of an object."""


class UnitSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source of a unit, and how it is rendered.

    Without a `request`, other sources use its files.
    """

    source: SourceRef | SourceObject
    request: RenderRequest | ToolDetection | ArgoPlugin | None
    details: ArgoDetails | FluxDetails | None = None
    """Settings of the dialect that are resolved when the tree is fetched."""

    @property
    def path(self) -> str:
        """The path in the tree."""
        match self.request:
            case None:
                return ""
            case ChartRequest(chart=chart):
                return chart
            case request:
                return request.path

    @property
    def canonical_location(self) -> str:
        """A location that is the same on every machine and for every revision.

        A local directory is identified by its path in the repository, or at the root by its name.
        """
        path = self.path
        match self.source:
            case LocalSource(root):
                return path if path not in {"", "."} else PurePath(root).name
            case GitSource(url):
                return f"{redact_urls(url)}//{path}"
            case ChartSource(repository, chart):
                return f"{redact_urls(repository)}//{chart}"
            case OciSource(url):
                return redact_urls(url)
            case BucketSource() as bucket:
                return f"{bucket}//{path}"
            case SourceObject() as source_object:
                return f"{source_object}//{source_object.chart or path}"


class Destination(msgspec.Struct, frozen=True, omit_defaults=True):
    """The destination of objects: a cluster name, and the namespace of objects that set none."""

    cluster: str = ""
    namespace: str = ""


class RollingSyncStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The position of a unit in the RollingSync steps of its ApplicationSet."""

    number: int
    """The step, counted from 1; 0 if it is in none."""
    limit: int | None = None
    """The number of units of the step that may run at once.

    With 0, each unit needs an approval.
    """
    is_enforced: bool = True
    """Whether the controller of the ApplicationSet applies the steps."""
    label_value: str = ""
    """The value of the label that selects the unit."""
    reverse_deletion: bool = False
    """Whether the units are deleted one by one, from the last step to the first, with the set."""


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit: identity, sources, destination, policy, dependencies and parent."""

    id: UnitId
    sources: tuple[UnitSource, ...] = ()
    destination: Destination = Destination()
    policy: Policy = Policy()
    dependencies: tuple[Dependency, ...] = ()
    parent: UnitId | None = None
    location: Location | None = None
    is_suspended: bool = False
    """Whether reconciliation is suspended."""
    concurrency_group: str = ""
    """The group whose concurrency limit it counts against."""
    generated_by: str = ""
    """The ApplicationSet that generates it."""
    rolling_sync_step: RollingSyncStep | None = None
    """Its step in the RollingSync strategy of the ApplicationSet."""
    project_request: ProjectRequest | None = None
    """The request to its project."""
    project_error: str = ""
    """Why its project forbids all syncs of it."""
    labels: tuple[tuple[str, str], ...] = ()
    """The labels of the unit resource."""
    is_implicit: bool = False
    """Whether no file defines it: it is assumed, as the parent of units that no unit deploys."""

    @property
    def is_path(self) -> bool:
        """Whether it is the PATH of the user, which no repository defines as a unit."""
        return not self.id.kind and not self.is_implicit

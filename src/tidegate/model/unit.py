"""A unit: what deploys one set of objects from its sources. It is there before rendering."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePath

import msgspec

from tidegate.errors import Place, without_user
from tidegate.model.depends_on import AwaitedState
from tidegate.model.objects import Ref
from tidegate.model.policy import Policy
from tidegate.model.project import ProjectClaim
from tidegate.model.release import Release
from tidegate.model.rendering import ArgoDetails, ArgoPlugin, Detected, FluxDetails, Request
from tidegate.model.source import (
    BucketSource,
    ChartSource,
    GitSource,
    LocalSource,
    OciSource,
    SourceObject,
    SourceRef,
)


class UnitId(msgspec.Struct, frozen=True, order=True, gc=False, cache_hash=True):
    """Which unit: the kind of its own object, the cluster that has it, its namespace and name.

    A plain directory has no object of its own, and no kind. The identity is written into clusters:
    it never changes with a revision.
    """

    kind: str
    cluster: str
    namespace: str
    name: str

    @classmethod
    def plain(cls, namespace: str, name: str) -> UnitId:
        return cls("", "", namespace, name)

    @property
    def mark(self) -> str:
        """As objects and records carry it: `default/web`, `Kustomization/flux-system/apps`.

        What somebody calls a cluster is not written into it: a plain unit's own it is not.
        """
        return f"{self.cluster}:{self.called}" if self.cluster and self.kind else self.called

    @property
    def called(self) -> str:
        """Its kind, namespace and name, whatever its cluster is."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)

    def __str__(self) -> str:
        """For people: with its cluster, where that has a name."""
        return f"{self.cluster}:{self.mark}" if self.cluster and not self.kind else self.mark


class Strength(StrEnum):
    HARD = "hard"
    """Somebody declared it."""
    SOFT = "soft"
    """It was inferred."""


class Dependency(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A unit waits for a unit, or for an object of a cluster that it does not bring itself.

    `ready_when`: the expression that must hold of what it waits for; empty asks for health. `ours`:
    it is said in our own words, which other controllers do not know. `state`: what is asked of an
    object.
    """

    unit: UnitId | None = None
    ref: Ref | None = None
    strength: Strength = Strength.HARD
    where: Place | None = None
    ready_when: str = ""
    ours: bool = False
    state: AwaitedState = AwaitedState.READY


class UnitSource(msgspec.Struct, frozen=True, kw_only=True):
    """A tree, and how objects are made of it; with no `request` none are, and others use its files.

    `details`: what the dialect says of it and is settled when the tree is there.
    """

    source: SourceRef | SourceObject
    request: Request | Detected | ArgoPlugin | None
    details: ArgoDetails | FluxDetails | None = None

    @property
    def path(self) -> str:
        """Where in its tree it lies."""
        match self.request:
            case None:
                return ""
            case Release(chart=chart):
                return chart
            case request:
                return request.path

    @property
    def place(self) -> str:
        """Where it lies, the same on every machine and for every revision.

        A directory is known by its path in its repository; without one, by its name.
        """
        path = self.path
        match self.source:
            case LocalSource(root):
                return path if path not in {"", "."} else PurePath(root).name
            case GitSource(url):
                return f"{without_user(url)}//{path}"
            case ChartSource(repository, chart):
                return f"{without_user(repository)}//{chart}"
            case OciSource(url):
                return without_user(url)
            case BucketSource() as bucket:
                return f"{bucket}//{path}"
            case SourceObject() as named:
                return f"{named}//{named.chart or path}"


class Destination(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where objects go: a cluster by its name, and a namespace for those that name none."""

    cluster: str = ""
    namespace: str = ""


class RolloutStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where among the steps of its set a unit comes, counted from 1; 0 is in none of them.

    `limit`: so many units of the step may be under way; with 0 each waits for approval. Where it is
    not `in_force`, the set's own controller ignores it. `phase`: the value of the label by which
    the step takes it. `turned`: when the set is deleted, its units go one by one, from the last
    step to the first.
    """

    number: int
    limit: int | None = None
    in_force: bool = True
    phase: str = ""
    turned: bool = False


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """Identity, place in Git, sources, destination, policy; what it waits for, and who brings it.

    `suspended`: somebody wants nothing done to it. `group`: its slots are shared with the others of
    the group. `made_by`: the set that generates it, and `rollout` its step there. `labels`: those
    of its own object. `claim`: what it asks of its project. `refused`: why its project keeps
    anything from being done to it.
    """

    id: UnitId
    sources: tuple[UnitSource, ...] = ()
    destination: Destination = Destination()
    policy: Policy = Policy()
    dependencies: tuple[Dependency, ...] = ()
    parent: UnitId | None = None
    where: Place | None = None
    suspended: bool = False
    group: str = ""
    made_by: str = ""
    rollout: RolloutStep | None = None
    claim: ProjectClaim | None = None
    refused: str = ""
    labels: tuple[tuple[str, str], ...] = ()

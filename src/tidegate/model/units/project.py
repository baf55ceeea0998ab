"""Argo CD projects: permitted sources, destinations and kinds, and sync windows.

Each rule has its location.
"""

from __future__ import annotations

import msgspec

from tidegate.model.units.sync_window import SyncWindow


class ProjectRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The request of an Application to its project, as written."""

    project: str = "default"
    repositories: tuple[str, ...] = ()
    server: str = ""
    cluster: str = ""
    namespace: str = ""


class NameRule(msgspec.Struct, frozen=True, gc=False):
    """A pattern for URLs or names; a leading `!` denies."""

    pattern: str
    location: str


class DestinationRule(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Patterns for a cluster, by server or name, and for a namespace."""

    server: str
    name: str
    namespace: str
    location: str


class KindRule(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Patterns for a group, a kind, and for the name of a cluster-scoped object."""

    group: str
    kind: str
    name: str
    location: str


class ServiceAccountRule(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The service account that syncs impersonate for a destination."""

    server: str
    namespace: str
    account: str
    location: str


class WindowRule(msgspec.Struct, frozen=True, kw_only=True):
    """A sync window, and patterns for the Applications that it applies to."""

    window: SyncWindow
    applications: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    all_of_them: bool = False


class OrphanRules(msgspec.Struct, frozen=True, kw_only=True):
    """The monitoring of orphaned resources in the namespaces of a project."""

    warns: bool
    ignored: tuple[KindRule, ...] = ()


class Project(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The rules of one project."""

    name: str
    namespace: str = ""
    """The namespace of the project, which is that of Argo CD."""
    location: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    repositories: tuple[NameRule, ...] = ()
    namespaces: tuple[NameRule, ...] = ()
    destinations: tuple[DestinationRule, ...] = ()
    cluster_kinds: tuple[KindRule, ...] = ()
    denied_cluster_kinds: tuple[KindRule, ...] = ()
    kinds: tuple[KindRule, ...] | None = None
    """The allowed namespaced kinds. None allows all."""
    denied_kinds: tuple[KindRule, ...] = ()
    accounts: tuple[ServiceAccountRule, ...] = ()
    may_inherit: bool = False
    """Whether global projects that are not known may extend it."""
    windows: tuple[WindowRule, ...] = ()
    orphans: OrphanRules | None = None
    only_scoped: bool = False
    """Whether it permits only clusters that are registered for it."""
    lists: tuple[tuple[str, str], ...] = ()
    """Locations of lists, by field."""

    def location_of_list(self, field: str) -> str:
        """Return the location of a list.

        Returns the location of the project if the list is absent.
        """
        return dict(self.lists).get(field, self.location)


class ProjectViolation(msgspec.Struct, frozen=True):
    """A violation of a project, and the rule that denies it."""

    message: str
    rule: str
    location: str


class ProjectScope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A project resolved for one unit, with its cluster as far as it is known."""

    project: Project
    server: str = ""
    cluster: str = ""

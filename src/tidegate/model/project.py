"""A project of Argo CD's: what its Applications may take, where they may go, and when.

Each rule has the place that says so.
"""

from __future__ import annotations

import msgspec

from tidegate.model.sync_window import SyncWindow


class ProjectClaim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an Application asks of its project, as it is written there."""

    project: str = "default"
    repositories: tuple[str, ...] = ()
    server: str = ""
    cluster: str = ""
    namespace: str = ""


class NameRule(msgspec.Struct, frozen=True, gc=False):
    """A pattern for addresses or names; `!` before it denies."""

    pattern: str
    where: str


class DestinationRule(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Patterns for a cluster, by its server or its name, and for a namespace."""

    server: str
    name: str
    namespace: str
    where: str


class KindRule(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Patterns for a group, a kind, and for what is in no namespace its name."""

    group: str
    kind: str
    name: str
    where: str


class AccountRule(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The account that syncs use for a destination."""

    server: str
    namespace: str
    account: str
    where: str


class WindowRule(msgspec.Struct, frozen=True, kw_only=True):
    """A sync window, and patterns for the Applications that it is for."""

    window: SyncWindow
    applications: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    all_of_them: bool = False


class OrphanRules(msgspec.Struct, frozen=True, kw_only=True):
    """What lives in the namespaces of a project and belongs to nobody."""

    warns: bool
    ignored: tuple[KindRule, ...] = ()


class Project(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The rules of one project. `kinds` is None where every kind in a namespace is allowed.

    `home`: its own namespace, which is that of Argo CD. `lists`: by field, where a list stands.
    `only_scoped`: it allows only clusters that are registered for it.
    """

    name: str
    home: str = ""
    where: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    repositories: tuple[NameRule, ...] = ()
    namespaces: tuple[NameRule, ...] = ()
    destinations: tuple[DestinationRule, ...] = ()
    cluster_kinds: tuple[KindRule, ...] = ()
    denied_cluster_kinds: tuple[KindRule, ...] = ()
    kinds: tuple[KindRule, ...] | None = None
    denied_kinds: tuple[KindRule, ...] = ()
    accounts: tuple[AccountRule, ...] = ()
    windows: tuple[WindowRule, ...] = ()
    orphans: OrphanRules | None = None
    only_scoped: bool = False
    lists: tuple[tuple[str, str], ...] = ()

    def place_of(self, field: str) -> str:
        """Where a list stands; where there is none, the project does."""
        return dict(self.lists).get(field, self.where)


class Refusal(msgspec.Struct, frozen=True):
    """What a project does not allow, and the rule that says so."""

    sentence: str
    rule: str
    where: str


class Reach(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A project as it counts for one unit: with its cluster, as far as that is known."""

    project: Project
    server: str = ""
    cluster: str = ""

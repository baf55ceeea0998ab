"""A ledger: what a unit's own tool keeps of its rollouts in the cluster, numbered one by one.

Helm's releases have one. The engine reads it before a rollout, enters what begins and how it ended,
and knows nothing of what stands in it.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Ref


class LedgerPlace(msgspec.Struct, frozen=True, gc=False):
    """Where the entries of a unit lie: objects of a kind, in a namespace, with these labels."""

    kind: Kind
    namespace: str
    labels: str


class Action(StrEnum):
    """What a rollout is to a unit with a ledger; hooks differ with it."""

    INSTALL = "install"
    UPGRADE = "upgrade"
    KEEP = "keep"
    """The last entry says what Git says: nothing is entered, and no hook is run."""
    UNINSTALL = "uninstall"


class Entering(msgspec.Struct, frozen=True):
    """What is about to be entered, by what stands in the ledger.

    `goes_on`: the entry is there, and whoever made it did not come to its end. `brought`: the
    objects of the last entry; they are the unit's, whatever its journal says. `problem`: why
    nothing can be entered.
    """

    action: Action
    number: int = 0
    goes_on: bool = False
    brought: tuple[Ref, ...] = ()
    problem: str = ""

    @property
    def is_due(self) -> bool:
        return self.action is not Action.KEEP


class HookRun(msgspec.Struct, frozen=True, gc=False):
    """How a hook ended; `passed` is None while it runs."""

    ref: Ref
    began: Ms
    ended: Ms
    passed: bool | None = None


class EntryEnd(msgspec.Struct, frozen=True):
    """How what was entered came out, and why where it did not."""

    passed: bool
    sentence: str = ""
    hooks: tuple[HookRun, ...] = ()


class SheetHook(msgspec.Struct, frozen=True, gc=False):
    """A hook as a release keeps it; `path` is that of its template."""

    name: str
    kind: str
    path: str
    manifest: str
    events: tuple[str, ...]
    weight: int = 0
    policies: tuple[str, ...] = ()


class ReleaseSheet(msgspec.Struct, frozen=True, kw_only=True):
    """What a Helm release is to be: all that its record keeps but how it went.

    `chart` is the chart itself as Helm keeps it, `config` are the values of the user.
    """

    chart: dict[str, Json]
    config: dict[str, Json] = {}
    manifest: str = ""
    hooks: tuple[SheetHook, ...] = ()
    notes: str = ""

    def __repr__(self) -> str:
        # Values may be secret, and what is printed ends in logs.
        return "ReleaseSheet()"


class ReleaseTerms(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Which release a unit is, and how it is kept.

    `storage`: the namespace of its records. `most`: how many of them are kept; 0 keeps all.
    `keeps_history`: they stay when the release is uninstalled.
    """

    name: str
    namespace: str
    storage: str
    most: int = 5
    keeps_history: bool = False

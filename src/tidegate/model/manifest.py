"""A rendered object, where in its unit's order it stands, and how it wants to be treated."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.objects import Ref
from tidegate.model.plan import Deed, Handling, HookPolicy, PlannedUnit


class Phase(StrEnum):
    """When in a sync an object has its turn, in this order; the last only when something failed."""

    PRE_SYNC = "presync"
    SYNC = "sync"
    POST_SYNC = "postsync"
    SYNC_FAIL = "syncfail"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One object as Git wants it. The phase and the wave are those its dialect gives it.

    `hook`: it is run, not kept; when it is deleted. `defines`: the group and kind that a definition
    brings; empty for everything else. `deed`: what is done to it.
    """

    ref: Ref
    body: bytes
    origin: str = ""
    phase: Phase = Phase.SYNC
    wave: int = 0
    hook: tuple[HookPolicy, ...] | None = None
    handling: Handling = Handling()
    defines: tuple[str, str] = ("", "")
    deed: Deed = Deed.APPLY


class WantedUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit with everything it deploys.

    `namespace`: where objects go that name none; those without namespaces count as in it, too.
    `staged`: its objects come in stages by kind, not in waves. `after`: the units it depends on.
    `before_deletion` and `after_deletion` are hooks of its end.
    """

    unit: PlannedUnit
    namespace: str = ""
    manifests: tuple[Manifest, ...] = ()
    staged: bool = False
    after: tuple[str, ...] = ()
    before_deletion: tuple[Manifest, ...] = ()
    after_deletion: tuple[Manifest, ...] = ()

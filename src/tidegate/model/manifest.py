"""A rendered object, where in its unit's order it stands, and how it wants to be treated."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.objects import FieldPath, Ref
from tidegate.model.plan import TESTING, Deed, HookPolicy
from tidegate.model.policy import Handling
from tidegate.model.unit import Unit, UnitId


class Phase(StrEnum):
    """When in a sync an object has its turn, in this order; the last only when something failed."""

    PRE_SYNC = "presync"
    SYNC = "sync"
    POST_SYNC = "postsync"
    TEST = TESTING
    """When what was brought is tried out: Helm's tests of a release."""
    SYNC_FAIL = "syncfail"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One object as Git wants it. The phase and the wave are those its dialect gives it.

    `hook`: it is run, not kept; when it is deleted. `defines`: the group and kind that a definition
    brings; empty for everything else. `deed`: what is done to it. `brings`: the unit that it is the
    own object of. `gates`: it is waited for. `awaited`: what it brings is, by any rules. `ground`:
    the rest of its unit stands on it. `hidden`: fields that stood encrypted or came out of a
    Secret.
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
    brings: tuple[UnitId, ...] = ()
    gates: bool = True
    awaited: bool = False
    ground: bool = False
    hidden: tuple[FieldPath, ...] = ()


class Manifests(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a unit deploys; `before_deletion` and `after_deletion` are hooks of its end.

    One of which that is not known is still waited for.
    """

    unit: Unit
    manifests: tuple[Manifest, ...] = ()
    before_deletion: tuple[Manifest, ...] = ()
    after_deletion: tuple[Manifest, ...] = ()
    is_known: bool = True

"""What became of a unit so far: what the status of its own object is made from."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.drift import ObjectDrift
from tidegate.model.ledger import ReleaseTerms
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Ref
from tidegate.model.source import Revision
from tidegate.model.unit import UnitId
from tidegate.model.verdict import Health


class Going(StrEnum):
    """Where a unit is on its way."""

    WAITS = "waits"
    """Others come before it."""
    RUNS = "runs"
    ENDED = "ended"


class Became(StrEnum):
    """What was done to an object."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    PRUNED = "pruned"
    KEPT = "kept"
    """It was to be pruned, and is left alone."""
    FAILED = "failed"
    NOTHING = "nothing"


class ObjectAccount(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One object of a unit: what was done to it, and how it is.

    `is_wanted`: Git has it. `is_synced`: it is as Git has it. `health` is None where no rule knows
    its kind. `waits`: a gate waits for it. `body`: as it lives, else as it is wanted. `drift`: what
    others had changed of it.
    """

    ref: Ref
    phase: str = "sync"
    wave: int = 0
    is_hook: bool = False
    is_wanted: bool = True
    is_synced: bool = False
    asks: bool = False
    lives: bool = False
    waits: bool = False
    became: Became = Became.NOTHING
    health: Health | None = None
    sentence: str = ""
    body: bytes = b""
    drift: ObjectDrift | None = None


class UnitAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A unit on its way, or at its end.

    `begun`: when what is done now began. `digest`: of what Git says. `operated`: something was done
    to it, not only looked at. `result` says how it ended. `waits_for`: the units that come before
    it. `reason` and `sentence` tell the first trouble; `by_gate`: it is that a gate did not open,
    and `by_test` that a test failed.
    `is_known`: it could be begun; else the `code` of what was found in it, and the `field` of its
    own object. `retries`: how often it was tried again. `release`: the Helm release that it is, and
    `entries` the records of that; one that `is_kept` is no other revision. `remedied`: whether what
    is done about its failure went well; None where nothing was.
    """

    unit: UnitId
    going: Going
    now: Ms
    begun: Ms
    digest: str = ""
    operated: bool = False
    result: str = ""
    reason: str = ""
    sentence: str = ""
    by_gate: bool = False
    by_test: bool = False
    is_known: bool = True
    code: str = ""
    field: str = ""
    retries: int = 0
    waits_for: tuple[UnitId, ...] = ()
    objects: tuple[ObjectAccount, ...] = ()
    release: ReleaseTerms | None = None
    entries: tuple[bytes, ...] = ()
    is_kept: bool = False
    remedied: bool | None = None


class Provenance(msgspec.Struct, frozen=True):
    """What a source of a unit was when it was rendered: its revision, and the tool that did it."""

    revision: Revision
    tool: str = ""


class OwnStatus(msgspec.Struct, frozen=True):
    """What an own object is to say, and what is told beside it.

    `notes` are the words of Kubernetes Events: type, reason, message.
    """

    status: dict[str, Json]
    notes: tuple[tuple[str, str, str], ...] = ()

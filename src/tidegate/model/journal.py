"""What a rollout must remember across a kill: which objects are its unit's, and which gates opened.

It holds names and digests. No value of any object is in it.
"""

from __future__ import annotations

import msgspec

from tidegate.model.ledger import ReleaseTerms
from tidegate.model.moment import Ms
from tidegate.model.objects import Propagation, Ref
from tidegate.model.policy import Policy
from tidegate.model.unit import UnitId

VERSION = 2


class Kin(msgspec.Struct, frozen=True, gc=False):
    """Which unit it is, and who brings it. `cascades`: what it has brought goes with it.

    `above`: who brings the parent, of which nothing may be remembered where it writes nothing
    itself; `falls`: the unit goes when its parent does. `farewell`: what becomes then of what its
    objects own; None: the same as when they are pruned. `release`: which one it is, and how that
    ends.
    """

    unit: UnitId
    parent: UnitId
    cascades: bool = False
    above: UnitId | None = None
    falls: bool = False
    farewell: Propagation | None = None
    release: ReleaseTerms | None = None

    @classmethod
    def of(
        cls,
        unit: UnitId,
        parent: UnitId,
        policy: Policy,
        *,
        above: UnitId | None = None,
        falls: bool = False,
    ) -> Kin:
        """What is remembered of a unit that is run by this policy."""
        terms, farewell = policy.release, policy.farewell
        release = msgspec.structs.replace(terms, ignores=()) if terms is not None else None
        return cls(unit, parent, policy.cascades, above, falls, farewell, release)


class Entry(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One object of a unit.

    `digest` is of the text that was written, `seal` of what that left. `opened` is the
    digest for which its gate opened, while its uid was `uid`. A hook is remembered only for as
    long as its rollout lasts; `ran` are the digests with which it passed, one for each phase.
    """

    digest: str = ""
    seal: str = ""
    uid: str = ""
    opened: str = ""
    hook: bool = False
    ran: tuple[str, ...] = ()


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """All that is remembered of one unit; `plan` is the digest of the plan that ran last.

    `text` is the digest of what that rollout was to bring, `begun` when it began; `done` is the
    digest of the last text that was brought.
    """

    plan: str = ""
    text: str = ""
    begun: Ms = Ms(0)
    done: str = ""
    entries: dict[Ref, Entry] = {}


EMPTY = Journal()

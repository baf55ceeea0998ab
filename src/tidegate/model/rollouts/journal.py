"""State of a unit that survives the end of a process: its objects and its opened gates.

The journal contains names and digests, never values of objects.
"""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.objects import Propagation, Ref
from tidegate.model.times import Ms
from tidegate.model.units.policy import Policy
from tidegate.model.units.release_history import ReleaseSpec
from tidegate.model.units.unit import UnitId

JOURNAL_VERSION = 2


class UnitOrigin(msgspec.Struct, frozen=True, gc=False):
    """A unit, and the unit that created it."""

    unit: UnitId
    parent: UnitId
    cascades: bool = False
    """Whether the objects of the unit are deleted with it."""
    grandparent: UnitId | None = None
    """The parent of the parent. A parent that writes no objects itself has no record."""
    is_deleted_with_parent: bool = False
    """Whether the unit is deleted with its parent."""
    deletion_propagation: Propagation | None = None
    """Deletion propagation for its objects. None if it is the same as for pruning."""
    release: ReleaseSpec | None = None
    """The Helm release of the unit, and how to uninstall it."""

    @classmethod
    def from_policy(
        cls,
        unit: UnitId,
        parent: UnitId,
        policy: Policy,
        *,
        grandparent: UnitId | None = None,
        deleted_with_parent: bool = False,
    ) -> UnitOrigin:
        """Return the origin to store for a unit with this policy."""
        spec, propagation = policy.release, policy.deletion_propagation
        release = msgspec.structs.replace(spec, ignores=()) if spec is not None else None
        return cls(
            unit, parent, policy.cascades, grandparent, deleted_with_parent, propagation, release
        )


class JournalEntry(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One object of a unit.

    A hook is stored only until its rollout ends.
    """

    digest: str = ""
    """Digest of the manifest that was written."""
    fields_digest: str = ""
    """Digest of the fields that the write resulted in."""
    uid: str = ""
    gate_digest: str = ""
    """Digest for which the gate opened, while the object had `uid`."""
    hook: bool = False
    ran: tuple[str, ...] = ()
    """Digests with which the hook passed, one per phase."""


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """The stored state of one unit."""

    plan_digest: str = ""
    """Digest of the plan of the last rollout."""
    desired_digest: str = ""
    """Digest of the desired state that the last rollout was to apply."""
    started_at: Ms = Ms(0)
    """Start time of the last rollout."""
    completed_digest: str = ""
    """Digest of the last desired state that was rolled out completely."""
    entries: dict[Ref, JournalEntry] = {}

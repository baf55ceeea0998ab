"""Differences between the deployment orders of two revisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from tidegate.errors import Location
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.graph import EdgeKind
from tidegate.model.times import Ms
from tidegate.model.units.unit import Strength, UnitId
from tidegate.model.views.lint import LintReport

SHORT_HASH = 8
"""Characters of a commit that are displayed."""


class Change(StrEnum):
    """Whether something is only in the head, or only in the base."""

    ADDED = "added"
    REMOVED = "removed"


class GateType(StrEnum):
    """What a gate consists of."""

    WAIT = "wait"
    """The unit waits for all its objects."""
    HEALTH_CHECK = "health check"
    """The unit waits for one object that it lists."""
    EXPRESSION = "health expression"
    """A health expression of the unit for a kind."""
    HEALTH_RULE = "health rule"
    """The rules of the unit know when objects of a kind are ready."""
    HOOK = "hook"
    """A hook must finish before the unit goes on."""
    PROBE = "probe"
    """A probe of a container says when an object is ready."""
    DEPENDS_ON = "dependsOn"
    """The unit starts after another unit or object."""
    CHILDREN = "child units"
    """The unit waits for the units that it creates."""
    BARRIER = "barrier"
    """The objects of one wave start after those of an earlier wave."""
    RECONCILIATION = "reconciliation"
    """The unit is reconciled; if it is suspended, it never becomes ready."""


class GateChange(msgspec.Struct, frozen=True, kw_only=True):
    """A gate that was lost or gained."""

    change: Change
    type: GateType
    unit: UnitId
    subject: str = ""
    """The object, kind, unit or waves that it is about; empty if it is about the unit."""
    waiting_units: tuple[UnitId, ...] = ()
    """The units that wait for the gate where it exists."""
    location: Location | None = None
    """The location in the head; for what was removed, that of its closest parent."""
    base_location: Location | None = None
    """The location in the base; None for what was added."""


class MoveType(StrEnum):
    """What was moved."""

    OBJECT = "object"
    UNIT = "unit"
    """The unit resource in its parent, or the unit in the steps of its ApplicationSet."""


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """An object or a unit that starts before or after others that it did not before."""

    type: MoveType
    unit: UnitId
    """The unit that contains the object; a moved unit itself."""
    name: str
    before: str
    """The name of its step in the base: `wave 1`."""
    after: str
    """The name of its step in the head."""
    location: Location | None = None
    base_location: Location | None = None
    ref: Ref | None = None


class LevelChange(msgspec.Struct, frozen=True, kw_only=True):
    """The level of a unit in the order of dependencies; 0 if it has none."""

    unit: UnitId
    before: int
    after: int


class Renumbering(msgspec.Struct, frozen=True, kw_only=True):
    """Waves of a unit with other numbers and the same order."""

    unit: UnitId
    steps: tuple[tuple[str, str], ...]
    """The names of steps in the base and in the head."""


class DependencyChange(msgspec.Struct, frozen=True, kw_only=True):
    """A dependency that was added or removed; with several equal reasons, the first of them."""

    change: Change
    dependent: str
    """The object or unit that needs the other."""
    dependent_unit: UnitId | None
    provider: str
    provider_unit: UnitId | None
    kind: EdgeKind
    strength: Strength
    is_external: bool = False
    """Whether no unit of the repository provides it."""
    required_object: str = ""
    """The required object, if the provider only creates it."""
    field: str = ""
    """The field that declares it."""
    location: Location | None = None
    more: int = 0
    """The number of further dependencies between the same units of the same kind."""


class UnitChangeType(StrEnum):
    """What happened to a unit."""

    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"


class StillNeeded(msgspec.Struct, frozen=True, kw_only=True):
    """A deleted object that others still need, or that holds data."""

    ref: Ref
    needed_by: tuple[str, ...]
    """Objects that need it; empty if it is listed because it holds data."""


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """What a rollout does to the objects of a removed unit."""

    is_deleted: bool
    """Whether its objects are deleted."""
    kept_reason: str = ""
    """Why its objects are kept."""
    steps: tuple[tuple[Ref, ...], ...] = ()
    """The deleted objects in the order of their deletion."""
    still_needed: tuple[StillNeeded, ...] = ()


class UnitChange(msgspec.Struct, frozen=True, kw_only=True):
    """A unit that was added, removed or renamed."""

    type: UnitChangeType
    unit: UnitId
    """The unit; a renamed one by its new name."""
    old_unit: UnitId | None = None
    """The former name of a renamed unit."""
    object_count: int = 0
    location: Location | None = None
    """The location in the head; of a removed unit, in the base."""
    removal: Removal | None = None
    """What happens to the objects of a removed unit, or of a renamed one under its old name."""


class CriticalPathEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The length of the critical path, and its steps."""

    duration: Ms
    steps: tuple[str, ...]


class CriticalPathChange(msgspec.Struct, frozen=True, kw_only=True):
    """The critical path before and after. Its durations are assumed."""

    before: CriticalPathEnd
    after: CriticalPathEnd


class AffectedUnits(msgspec.Struct, frozen=True, kw_only=True):
    """The units of one cluster that come after what was changed, directly or not."""

    cluster: str
    units: tuple[UnitId, ...]


class OrderDiff(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between two orders of units that are deployed together."""

    root: str = ""
    """The root of the units, if roots are alternatives."""
    gates: tuple[GateChange, ...] = ()
    moves: tuple[Move, ...] = ()
    levels: tuple[LevelChange, ...] = ()
    renumbered: tuple[Renumbering, ...] = ()
    dependencies: tuple[DependencyChange, ...] = ()
    units: tuple[UnitChange, ...] = ()
    critical_path: CriticalPathChange | None = None
    """None if its length is the same."""
    changed_units: tuple[UnitId, ...] = ()
    """The units whose objects, policy or position differ."""
    affected_units: tuple[AffectedUnits, ...] = ()
    not_compared: tuple[UnitId, ...] = ()
    """Units whose objects are not all known in the base or in the head."""
    unit_count: int = 0

    @property
    def is_same_order(self) -> bool:
        return not (self.gates or self.moves or self.dependencies or self.units)


class RevisionName(msgspec.Struct, frozen=True, kw_only=True):
    """One of the compared revisions."""

    name: str
    """What the user calls it; empty for the working tree."""
    commit: str = ""
    """Its commit; empty for the working tree."""

    def __str__(self) -> str:
        return f"{self.name} ({self.commit[:SHORT_HASH]})" if self.commit else "the working tree"


class DiffReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a change does to the order."""

    base: RevisionName
    head: RevisionName
    new: LintReport
    """The findings that the base does not have."""
    fixed: tuple[Finding, ...] = ()
    """The findings that the head does not have any more."""
    orders: tuple[OrderDiff, ...] = ()
    """The differences, by root if roots are alternatives."""
    not_read: tuple[Finding, ...] = ()
    """Warnings about submodules and files of Git LFS, whose content was not read."""

    @property
    def new_errors(self) -> tuple[Finding, ...]:
        return tuple(_errors(self.new.sorted_findings))

    @property
    def fixed_errors(self) -> tuple[Finding, ...]:
        return tuple(_errors(self.fixed))

    @property
    def is_same_order(self) -> bool:
        return all(order.is_same_order for order in self.orders)


def _errors(findings: Iterable[Finding]) -> Iterator[Finding]:
    return (finding for finding in findings if finding.severity is Severity.ERROR)

"""Rendered objects with their position in the order of their unit, and their sync options."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.k8s.objects import FieldPath, Ref
from tidegate.model.plans.plan import TEST_PHASE, HookPolicy, ItemAction
from tidegate.model.units.policy import ObjectOptions
from tidegate.model.units.unit import Unit, UnitId


class Phase(StrEnum):
    """The phase of a sync, in this order. The last one runs only after a failure."""

    PRE_SYNC = "presync"
    SYNC = "sync"
    POST_SYNC = "postsync"
    TEST = TEST_PHASE
    """Helm tests of a release, after its objects are deployed."""
    SYNC_FAIL = "syncfail"


PHASE_INDEXES: dict[str, int] = {phase: index for index, phase in enumerate(Phase)}
"""The positions of the phases in their order."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One desired object, with the phase and wave that its dialect assigns."""

    ref: Ref
    body: bytes
    origin: str = ""
    phase: Phase = Phase.SYNC
    wave: int = 0
    hook_policies: tuple[HookPolicy, ...] | None = None
    """When the hook is deleted. None if the object is not a hook."""
    options: ObjectOptions = ObjectOptions()
    defined_kind: tuple[str, str] = ("", "")
    """The group and kind that a CRD defines. Empty for all other objects."""
    action: ItemAction = ItemAction.APPLY
    """The action of a step on it."""
    child_units: tuple[UnitId, ...] = ()
    """The units that this object defines."""
    is_gating: bool = True
    """Whether later steps wait for it."""
    is_awaited: bool = False
    """Whether the units that it defines are awaited under any semantics."""
    is_prerequisite: bool = False
    """Whether the other objects of its unit depend on it."""
    hidden_fields: tuple[FieldPath, ...] = ()
    """Fields that were encrypted or come from a Secret."""


class Manifests(msgspec.Struct, frozen=True, kw_only=True):
    """All objects that a unit deploys."""

    unit: Unit
    manifests: tuple[Manifest, ...] = ()
    before_deletion: tuple[Manifest, ...] = ()
    """Hooks that run before the unit is deleted."""
    after_deletion: tuple[Manifest, ...] = ()
    """Hooks that run after the unit is deleted."""
    has_known_objects: bool = True
    """Whether the objects are known. A unit with unknown objects is still awaited."""

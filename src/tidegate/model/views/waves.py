"""Deployment order: phases, waves, levels and objects."""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.objects import Ref
from tidegate.model.units.unit import UnitId


class PhaseRow(msgspec.Struct, frozen=True, kw_only=True):
    """A RollingSync step of an ApplicationSet with its label and its units."""

    appset: str
    step: int
    phase: str
    max_update: int | None
    """`maxUpdate` of the step; None if unlimited."""
    units: tuple[UnitId, ...]


class WaveRow(msgspec.Struct, frozen=True, kw_only=True):
    """Units that one parent unit creates in one wave."""

    parent: UnitId | None
    wave: int
    units: tuple[UnitId, ...]


class LevelRow(msgspec.Struct, frozen=True, kw_only=True):
    """Units that depend only on units of earlier levels."""

    level: int
    units: tuple[UnitId, ...]


class WaveObject(msgspec.Struct, frozen=True):
    """An object with its location."""

    ref: Ref
    location: str
    has_wave: bool
    """Whether the object sets its wave itself."""
    is_generated: bool = False
    """Whether the object is in no file, such as a namespace created for its unit."""


class ObjectWave(msgspec.Struct, frozen=True, kw_only=True):
    """Objects of one unit in one phase and wave."""

    phase: str
    wave: int
    objects: tuple[WaveObject, ...]


class UnitWaves(msgspec.Struct, frozen=True, kw_only=True):
    """A unit, how it is ordered, and its waves."""

    unit: UnitId
    source: str
    location: str
    order: str
    waves: tuple[ObjectWave, ...]
    is_complete: bool = True
    """Whether all objects of the unit are known."""

    @property
    def declared_objects(self) -> list[WaveObject]:
        """Objects that are in files."""
        return [item for wave in self.waves for item in wave.objects if not item.is_generated]

    @property
    def with_wave_count(self) -> int:
        """Number of objects that set their wave."""
        return sum(item.has_wave for item in self.declared_objects)


class WaveInventory(msgspec.Struct, frozen=True, kw_only=True):
    """Deployment order of a tree of units."""

    phases: tuple[PhaseRow, ...] = ()
    waves: tuple[WaveRow, ...] = ()
    levels: tuple[LevelRow, ...] = ()
    units: tuple[UnitWaves, ...] = ()

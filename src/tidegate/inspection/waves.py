"""Inventory of phases, waves and levels: which units and objects are in which."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tidegate.clusters.session import Session
from tidegate.dialect.argo.waves import WAVE, WEIGHT
from tidegate.graph.levels import unit_levels
from tidegate.graph.positions import parse_origin
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.plans.manifest import PHASE_INDEXES, Manifest, Phase
from tidegate.model.plans.plan import ItemAction
from tidegate.model.units.unit import Unit, UnitId
from tidegate.model.views.waves import (
    LevelRow,
    ObjectWave,
    PhaseRow,
    UnitWaves,
    WaveInventory,
    WaveObject,
    WaveRow,
)
from tidegate.planning.graph import plan_unit_trees
from tidegate.planning.manifests import UnitManifests
from tidegate.planning.plan import PlanResult
from tidegate.workspace.selection import unit_rows
from tidegate.workspace.workspace import Workspace


async def read_wave_inventories(
    session: Session, workspace: Workspace
) -> tuple[Workspace, list[tuple[PlanResult, WaveInventory]]]:
    """Return the inventory of each alternative, with its plan."""
    inventories = []
    for alternative in workspace.split_alternatives():
        plan_result, _ = await plan_unit_trees(alternative.unit_trees, session, None)
        inventories.append((plan_result, _build_inventory(alternative, plan_result)))
    return workspace, inventories


def _build_inventory(workspace: Workspace, plan_result: PlanResult) -> WaveInventory:
    units = [member.unit for member in workspace.members]
    rows = unit_rows(workspace.unit_trees)
    waves: dict[tuple[UnitId, int], list[UnitId]] = {}
    for row in rows:
        if (
            row.wave is not None
            and row.unit.parent is not None
            and row.unit.rolling_sync_step is None
        ):
            waves.setdefault((row.unit.parent, row.wave), []).append(row.unit.id)
    return WaveInventory(
        phases=tuple(_phase_rows(units)),
        waves=tuple(
            WaveRow(parent=parent, wave=wave, units=tuple(names))
            for (parent, wave), names in waves.items()
        ),
        levels=tuple(_level_rows(units)),
        units=tuple(map(_unit_waves, plan_result.unit_manifests)),
    )


def _phase_rows(units: Iterable[Unit]) -> Iterator[PhaseRow]:
    """Yield each RollingSync step of each ApplicationSet; units in no step come last."""
    steps: dict[tuple[str, float, str], list[Unit]] = {}
    for unit in units:
        if unit.rolling_sync_step is not None:
            number = unit.rolling_sync_step.number or math.inf
            steps.setdefault(
                (unit.generated_by, number, unit.rolling_sync_step.label_value), []
            ).append(unit)
    for (made_by, number, phase), members in sorted(steps.items()):
        limits = [
            member.rolling_sync_step.limit
            for member in members
            if member.rolling_sync_step is not None
        ]
        yield PhaseRow(
            appset=made_by,
            step=0 if math.isinf(number) else int(number),
            phase=phase,
            max_update=limits[0],
            units=tuple(sorted(member.id for member in members)),
        )


def _level_rows(units: Sequence[Unit]) -> Iterator[LevelRow]:
    levels = unit_levels(units)
    for level in sorted(set(levels.values())):
        names = tuple(name for name, unit_level in levels.items() if unit_level == level)
        yield LevelRow(level=level, units=names)


def _unit_waves(unit_manifests: UnitManifests) -> UnitWaves:
    unit = unit_manifests.manifests.unit
    waves: dict[tuple[int, int], list[Manifest]] = {}
    for manifest in unit_manifests.manifests.manifests:
        waves.setdefault((PHASE_INDEXES[manifest.phase], manifest.wave), []).append(manifest)
    phases = list(Phase)
    return UnitWaves(
        unit=unit.id,
        source=", ".join(source.canonical_location for source in unit.sources),
        location=str(unit.location or ""),
        order=unit.policy.order.value,
        waves=tuple(
            ObjectWave(
                phase=phases[phase].value,
                wave=wave,
                objects=tuple(_placed_object(manifest) for manifest in members),
            )
            for (phase, wave), members in sorted(waves.items())
        ),
        is_complete=unit_manifests.is_complete,
    )


def _placed_object(manifest: Manifest) -> WaveObject:
    object_annotations = get_mapping(msgspec.json.decode(manifest.body), "metadata", "annotations")
    location, has_wave_annotation = (
        str(parse_origin(manifest.origin) or ""),
        WAVE in object_annotations or WEIGHT in object_annotations,
    )
    return WaveObject(
        manifest.ref, location, has_wave_annotation, manifest.action is ItemAction.CREATE
    )

"""Whether the steps of ApplicationSets are in force, by a setting of the controller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from tidegate.flows.discover.families import UnitTree
from tidegate.flows.discover.sets import PROGRESSIVE_SYNCS_SETTING
from tidegate.model.config import ControllerSetting
from tidegate.model.finding import Finding, Severity
from tidegate.model.semantics import ARGOCD
from tidegate.model.unit import Unit


def is_rolling_sync_off(settings: Mapping[str, ControllerSetting]) -> bool:
    """Whether progressive syncs are off.

    Without the setting they are assumed to be on: steps are written to be used.
    """
    setting = settings.get(PROGRESSIVE_SYNCS_SETTING)
    return setting is not None and str(setting.value).lower() != "true"


def with_rolling_sync(unit_tree: UnitTree, settings: Mapping[str, ControllerSetting]) -> UnitTree:
    """Return the tree with the steps that are in force under Argo CD semantics."""
    if not is_rolling_sync_off(settings):
        return unit_tree
    members = tuple(
        replace(member, unit=_with_ignored_step(member.unit)) for member in unit_tree.members
    )
    return replace(unit_tree, members=members)


def _with_ignored_step(unit: Unit) -> Unit:
    step = unit.rolling_sync_step and msgspec.structs.replace(
        unit.rolling_sync_step, is_enforced=False
    )
    return msgspec.structs.replace(unit, rolling_sync_step=step)


def rolling_sync_findings(
    unit_trees: Iterable[UnitTree], settings: Mapping[str, ControllerSetting]
) -> Iterator[Finding]:
    """Yield a finding for each ApplicationSet with steps that are assumed or not in force."""
    units = [
        member.unit
        for unit_tree in unit_trees
        for member in unit_tree.members
        if member.unit.rolling_sync_step
    ]
    if not units or (PROGRESSIVE_SYNCS_SETTING in settings and not is_rolling_sync_off(settings)):
        return
    is_disabled = is_rolling_sync_off(settings)
    reason = (
        "progressive syncs are off"
        if is_disabled
        else "nobody says whether progressive syncs are on"
    )
    for unit in {stepped_unit.generated_by: stepped_unit for stepped_unit in units}.values():
        yield Finding(
            code="argo.set-progressive",
            severity=Severity.WARNING if is_disabled else Severity.NOTE,
            message=f"Argo CD ignores the steps of `{unit.generated_by}`"
            if is_disabled
            else f"the steps of `{unit.generated_by}` are taken to be in force",
            location=unit.location and unit.location.with_field("spec.strategy"),
            reason=reason,
            fix=f"set `{PROGRESSIVE_SYNCS_SETTING}: true` for the controller, or in tidegate.yaml",
            semantics=(ARGOCD.name,),
        )

"""Whether the steps of ApplicationSets are in force: a switch of the controller's decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from tidegate.flows.discover.families import Family
from tidegate.flows.discover.sets import PROGRESSIVE
from tidegate.model.config import Switch
from tidegate.model.finding import Finding, Severity
from tidegate.model.semantics import ARGOCD
from tidegate.model.unit import Unit


def is_off(settings: Mapping[str, Switch]) -> bool:
    """Where nobody says, they are taken to be on: whoever writes steps means them."""
    said = settings.get(PROGRESSIVE)
    return said is not None and str(said.value).lower() != "true"


def told_rolling(family: Family, settings: Mapping[str, Switch]) -> Family:
    """The units with the steps that are in force under Argo CD's own rules."""
    if not is_off(settings):
        return family
    members = tuple(replace(one, unit=_without_force(one.unit)) for one in family.members)
    return replace(family, members=members)


def _without_force(unit: Unit) -> Unit:
    step = unit.rollout and msgspec.structs.replace(unit.rollout, in_force=False)
    return msgspec.structs.replace(unit, rollout=step)


def tell_rolling(families: Iterable[Family], settings: Mapping[str, Switch]) -> Iterator[Finding]:
    """Once for each set with steps: that they are taken to be in force, or are not."""
    units = [one.unit for family in families for one in family.members if one.unit.rollout]
    if not units or (PROGRESSIVE in settings and not is_off(settings)):
        return
    off = is_off(settings)
    why = "progressive syncs are off" if off else "nobody says whether progressive syncs are on"
    for unit in {one.made_by: one for one in units}.values():
        yield Finding(
            code="argo.set-progressive",
            severity=Severity.WARNING if off else Severity.NOTE,
            sentence=f"Argo CD ignores the steps of `{unit.made_by}`"
            if off
            else f"the steps of `{unit.made_by}` are taken to be in force",
            where=unit.where and unit.where.at("spec.strategy"),
            why=why,
            fix=f"set `{PROGRESSIVE}: true` for the controller, or in tidegate.yaml",
            semantics=(ARGOCD.name,),
        )

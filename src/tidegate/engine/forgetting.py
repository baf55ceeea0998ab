"""What a journal need not know any more.

Objects are forgotten when they are gone. That a hook ran counts for as long as its rollout lasts,
though the hook is gone; where the rollout failed, its hooks begin anew with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.engine.site import Site
from tidegate.engine.turns.rollout import UnitRun
from tidegate.model.event import StepState
from tidegate.model.objects import Ref, Spot
from tidegate.model.plan import Deed, Step, items_of
from tidegate.model.unit import UnitId

FAILED = StepState.FAILED


def forget_gone(site: Site, stale: dict[UnitId, list[Spot]]) -> list[UnitId]:
    """Remember nothing of what is neither wanted nor there; the units whose journals did."""
    forgetful: dict[UnitId, None] = {}
    for unit, spots in stale.items():
        unseen = site.outlook.hidden(spots)
        for spot in spots:
            is_gone = spot not in site.outlook.lives and spot not in unseen
            if is_gone and spot.ref in site.holds[unit].record.entries:
                site.holds[unit].record.forget(spot.ref)
                forgetful[unit] = None
    return list(forgetful)


def forget_deleted(site: Site, step: Step) -> None:
    """Remember nothing of what a step was to delete and is gone, whoever deleted it."""
    for item in items_of(step):
        if item.deed is Deed.DELETE and Spot(step.cluster, item.ref) not in site.outlook.lives:
            forget_object(site, step, item.ref)


def forget_object(site: Site, step: Step, ref: Ref) -> None:
    record = site.holds[step.unit].record
    known = record.entries.get(ref)
    if known is not None and not known.hook:
        record.forget(ref)


def forget_hooks(site: Site, steps: Iterable[Step]) -> None:
    """Let the hooks of these run again."""
    for step in steps:
        for item in items_of(step):
            if item.hook is not None:
                site.holds[step.unit].record.forget(item.ref)


def forget_failed(site: Site, unit: UnitRun) -> None:
    """What failed begins anew the next time, and its hooks with it."""
    whole = unit.rules.retry.whole
    anew = (one for one in unit.steps if whole or one.state is FAILED or one.step.rescues)
    forget_hooks(site, (one.step for one in anew))

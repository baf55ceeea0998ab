"""Whose the objects of a plan are before a rollout takes them."""

from __future__ import annotations

from tidegate.dialect.argo.options import REFUSES_SHARED, Body
from tidegate.dialect.helm.marks import unfit_marks
from tidegate.dialect.living import shared
from tidegate.errors import Place, PlanError, foreign
from tidegate.flows.looking import body_of, look_at
from tidegate.flows.session import Session
from tidegate.model.plan import Item, Plan, PlannedUnit, items_of
from tidegate.world.exchange import Exchange

HINT = f"remove it from one of the two units; without `{REFUSES_SHARED}` this one takes it over"

RELEASE_HINT = "remove one of the two; without `disableTakeOwnership` the release takes it over"


async def refuse_shared(plan: Plan, session: Session) -> None:
    """Raise a PlanError, or a group of them, for what lives and says that another unit has it.

    Units that have not asked for it take such objects over.
    """
    strict = [unit for unit in plan.units if unit.policy.refuses_shared]
    errors = [error for unit in strict for error in await _shared(unit, plan, session.world)]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("several objects belong to other units", errors)


async def _shared(unit: PlannedUnit, plan: Plan, world: Exchange) -> list[PlanError]:
    steps = (step for step in plan.steps if step.unit == unit.id)
    items: dict[tuple[str, ...], Item] = {
        (item.ref.kind.name, item.ref.kind.group, item.ref.namespace, item.ref.name): item
        for step in steps
        for item in items_of(step)
        if item.hook is None
    }
    errors = []
    for live in await look_at(world, (one.ref for one in items.values()), cluster=unit.cluster):
        ref = live.ref
        told = _told(body_of(live), unit)
        if told is not None:
            item = items[ref.kind.name, ref.kind.group, ref.namespace, ref.name]
            where = Place(item.origin or str(ref))
            problem, hint = told
            errors.append(PlanError("plan.shared", f"{ref} {problem}", where=where, hint=hint))
    return errors


def _told(body: Body, unit: PlannedUnit) -> tuple[str, str] | None:
    """Why an object is not the unit's to take, and what to do; of a release, in Helm's words."""
    other, terms = shared(body, unit), unit.policy.release
    if other is not None:
        return f"belongs to the unit `{foreign(other)}`", RELEASE_HINT if terms else HINT
    unfit = [] if terms is None else unfit_marks(body, terms)
    if not unfit:
        return None
    return f"is there and not of the release: {foreign('; '.join(unfit))}", RELEASE_HINT

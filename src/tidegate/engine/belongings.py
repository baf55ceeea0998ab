"""Whose the objects of a rollout are: what another unit has, what two write, what goes along."""

from __future__ import annotations

from tidegate.engine.reach.checking import Examined
from tidegate.engine.reach.contents import find_losses, told_loss
from tidegate.engine.reach.errands import Errand
from tidegate.engine.reach.preflight import Fault
from tidegate.engine.reach.surroundings import DEFINITION, NAMESPACE
from tidegate.engine.reach.writing import read_body
from tidegate.engine.site import Site
from tidegate.engine.vocabulary import Trouble
from tidegate.errors import Place, PlanError, foreign
from tidegate.model.objects import identity
from tidegate.model.plan import Deed, Plan

CONTAINERS = frozenset({NAMESPACE, DEFINITION})


def refuse_names(site: Site, plan: Plan) -> None:
    """Raise a PlanError for a unit whose name another source has: it would prune the other's.

    A unit with an object of its own is that object's, wherever its text lies by now.
    """
    for unit in plan.units:
        known = site.holds[unit.id].record.source
        may_move = unit.id.kind or unit.policy.adopts_name
        if known in {"", unit.source} or not unit.source or may_move:
            continue
        problem = f"`{unit.id}` was rolled out from `{foreign(known)}`, and this is `{unit.source}`"
        hint = "give it another name with `--name`; if it has moved, say so with `--adopt-name`"
        raise PlanError("plan.name", problem, where=Place(unit.source), hint=hint)


def taken_over(site: Site, examined: list[Examined]) -> list[Fault]:
    """What would be written and says that it is another unit's."""
    found: list[Fault] = []
    for step, item, standing in filter(site.is_written, examined):
        live = site.outlook.lives.get(standing.spot)
        owner = "" if live is None else site.means.owner(read_body(live))
        if owner not in {"", step.unit.mark}:
            sentence = f"it belongs to the unit `{foreign(owner)}`, which loses it"
            found.append((step, item.ref, Trouble("Taken", sentence)))
    return found


def written_twice(site: Site, examined: list[Examined]) -> list[Fault]:
    """What two units of the rollout would write. Definitions they may share."""
    return [
        (step, item.ref, Trouble("Shared", f"the unit `{other}` writes it, too", final=True))
        for step, item, standing in examined
        if item.deed is Deed.APPLY and item.ref.kind != DEFINITION
        for other in sorted(site.writers[standing.spot] - {step.unit})
    ]


def losses(site: Site, examined: list[Examined]) -> Errand[list[Fault]]:
    """What would take objects of others along, and nobody has agreed to that."""
    found: list[Fault] = []
    leaving = [one for one in examined if one[1].deed is Deed.DELETE and site.is_written(one)]
    going = {(step.cluster, *identity(item.ref)) for step, item, _ in leaving}
    for step, item, standing in leaving:
        live = site.outlook.lives.get(standing.spot)
        agreed = site.examiner.units[step.unit].policy.deletes_contents
        if live is None or agreed or item.ref.kind not in CONTAINERS:
            continue
        served = site.outlook.served.get(step.cluster, {}).values()
        owner, mark = site.means.owner, step.unit.mark
        along = yield from find_losses(standing.spot, live, served, owner, mark)
        along = [ref for ref in along if (step.cluster, *identity(ref)) not in going]
        if along:
            found.append((step, item.ref, Trouble("Contents", told_loss(along), final=True)))
    return found

"""Whose the objects of a rollout are: what another unit has, what two write, what goes along."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.engine.means import Body
from tidegate.engine.reach.checking import Examined
from tidegate.engine.reach.contents import find_losses, told_loss
from tidegate.engine.reach.errands import Errand
from tidegate.engine.reach.preflight import Fault
from tidegate.engine.reach.surroundings import DEFINITION, NAMESPACE
from tidegate.engine.reach.writing import read_body
from tidegate.engine.site import Site
from tidegate.engine.vocabulary import Trouble
from tidegate.errors import foreign
from tidegate.model.plan import Deed
from tidegate.model.unit import UnitId

CONTAINERS = frozenset({NAMESPACE, DEFINITION})


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
    for one in examined:
        step, item, standing = one
        live = site.outlook.lives.get(standing.spot)
        goes = item.deed is Deed.DELETE and site.is_written(one)
        agreed = site.examiner.units[step.unit].policy.deletes_contents
        if live is None or not goes or agreed or item.ref.kind not in CONTAINERS:
            continue
        served = site.outlook.served.get(step.cluster, {}).values()
        along = yield from find_losses(standing.spot, live, served, _is_of(site, step.unit))
        if along:
            found.append((step, item.ref, Trouble("Contents", told_loss(along), final=True)))
    return found


def _is_of(site: Site, unit: UnitId) -> Callable[[Body], bool]:
    return lambda body: site.means.owner(body) == unit.mark

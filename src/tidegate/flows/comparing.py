"""What is to be written of an object, and why: by its options, what lives, and its unit's options.

Whether it is replaced or forced is said by the wanted object or by the one that lives.
"""

from __future__ import annotations

from functools import cache

import msgspec

from tidegate.dialect.argo.options import FORCES, REPLACES, says
from tidegate.dialect.flux import notes
from tidegate.engine.means import Body, Draft
from tidegate.errors import foreign
from tidegate.flows.jq import Jq
from tidegate.model.change import Difference, Fate
from tidegate.model.drift import ObjectDrift
from tidegate.model.ignoring import Ignored
from tidegate.model.plan import AWAITED, Deed, Item, PlannedUnit
from tidegate.model.policy import Order
from tidegate.model.reading import mappings, text
from tidegate.plan.diff.adoption import ADOPTED, adopted_managers, adoption_patch
from tidegate.plan.diff.compare import compare
from tidegate.plan.diff.ignoring import keep_living, set_aside
from tidegate.plan.diff.replacing import compare_replaced, seal_replaced
from tidegate.plan.diff.seal import seal as seal_of

KEPT = Difference(deed=Fate.KEEP)
MOST_NAMED = 3


def find_difference(
    unit: PlannedUnit, item: Item, live: Body | None, jq: Jq, seal: str = ""
) -> Difference:
    """What becomes of an object; `seal` is of the write that brought this very text."""
    if item.deed in AWAITED | {Deed.LEAVE} or (live is not None and wants_peace(unit, live)):
        return KEPT
    if live is None:
        return Difference(deed=Fate.CREATE)
    if item.deed is Deed.CREATE:
        return KEPT
    replaces, manager, adopted = (
        is_replaced(item, live),
        unit.policy.manager,
        _adopted(unit, item),
    )
    sealed = not replaces and seal and seal == seal_of(live, manager)
    if sealed and not adopted_managers(live, manager, adopted):
        return KEPT
    wanted, there = _compared(unit, item, live, jq)
    if not replaces:
        return compare(wanted, there, manager=manager, adopted=adopted)
    found = compare_replaced(wanted, there, manager=manager, seal=seal)
    if found.deed is Fate.REPLACE and is_forced(unit, item, live):
        return msgspec.structs.replace(found, deed=Fate.RECREATE)
    return found


def who_changed(unit: PlannedUnit, item: Item, live: Body, jq: Jq, seal: str) -> str:
    """Who has changed which fields of what the unit wrote; empty where nobody has."""
    difference = find_difference(unit, item, live, jq, seal)
    if difference.deed is Fate.KEEP:
        return ""
    paths = [field.path for field in difference.fields] or ["fields of it"]
    named = ", ".join(f"`{path}`" for path in paths[:MOST_NAMED])
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return f"was changed by {foreign(_last_writer(live, unit.policy.manager))}: {named}{more}"


def find_drift(unit: PlannedUnit, item: Item, live: Body | None, jq: Jq) -> ObjectDrift | None:
    """What others have changed of an object of a unit; None where no field differs."""
    if live is None:
        return ObjectDrift("was deleted", is_gone=True)
    fields = find_difference(unit, item, live, jq).fields
    if not fields:
        return None
    added = sum(not one.before for one in fields)
    removed = sum(not one.after for one in fields)
    changed = len(fields) - added - removed
    sentence = who_changed(unit, item, live, jq, "")
    return ObjectDrift(sentence, added=added, changed=changed, removed=removed)


def _last_writer(live: Body, manager: str) -> str:
    """Who wrote last besides us, by the server's record; a status says nothing of a text."""
    others = [
        (text(entry, "time"), text(entry, "manager", default="somebody"))
        for entry in mappings(live, "metadata", "managedFields")
        if text(entry, "subresource") != "status" and text(entry, "manager") != manager
    ]
    return max(others, default=("", "somebody"))[1]


def is_replaced(item: Item, live: Body | None) -> bool:
    """Whether an object is put in the place of what is there."""
    return item.handling.replaces or (live is not None and says(live, REPLACES))


def is_forced(unit: PlannedUnit, item: Item, live: Body) -> bool:
    """Whether it asks to be deleted and made again where that helps."""
    said = notes.is_forced(live) if _hears_notes(unit) else says(live, FORCES)
    return item.handling.forces or said


def wants_peace(unit: PlannedUnit, live: Body) -> bool:
    """Whether what lives asks for being left alone, in words that its unit hears."""
    return _hears_notes(unit) and notes.is_left_alone(live)


def _hears_notes(unit: PlannedUnit) -> bool:
    return unit.policy.order is Order.STAGES


def draft_of(unit: PlannedUnit, item: Item, live: Body | None, jq: Jq) -> Draft:
    body, replaces = item.body, is_replaced(item, live)
    rules = _rules(unit, item) if unit.policy.keeps_ignored else ()
    if live is not None and rules:
        wanted: Body = msgspec.json.decode(body)
        body = msgspec.json.encode(keep_living(wanted, live, rules, jq.paths_for(item)))
    return Draft(body, replaces)


def seal_written(unit: PlannedUnit, item: Item, live: Body, jq: Jq) -> str:
    """Told of an object that was just written; while it holds, the object is as wanted."""
    if is_replaced(item, live):
        return seal_replaced(*_compared(unit, item, live, jq))
    return seal_of(live, unit.policy.manager)


def patch_to_adopt(unit: PlannedUnit, item: Item, live: Body) -> bytes | None:
    return adoption_patch(live, unit.policy.manager, _adopted(unit, item))


def _compared(unit: PlannedUnit, item: Item, live: Body, jq: Jq) -> tuple[Body, Body]:
    """The wanted object and the live one, with what counts of them."""
    wanted: Body = msgspec.json.decode(item.body)
    rules = _rules(unit, item)
    return set_aside(wanted, live, rules, jq.paths_for(item)) if rules else (wanted, live)


def _rules(unit: PlannedUnit, item: Item) -> tuple[Ignored, ...]:
    return tuple(rule for rule in unit.policy.ignores if rule.fits(item.ref))


def _adopted(unit: PlannedUnit, item: Item) -> frozenset[str]:
    leaves = unit.policy.leaves_others or item.handling.merges
    return _adopted_by(unit.policy.manager, leaves_others=leaves)


@cache
def _adopted_by(manager: str, *, leaves_others: bool) -> frozenset[str]:
    """Whose fields become the manager's: its own, too, where it has replaced an object."""
    return frozenset({manager}) if leaves_others else ADOPTED | {manager}

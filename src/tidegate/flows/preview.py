"""What a rollout would do, step by step, against what lives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tidegate.engine.means import Body
from tidegate.engine.reach.writing import read_body
from tidegate.errors import Place, TidegateError
from tidegate.flows.comparing import KEPT, find_difference, is_replaced
from tidegate.flows.discover import Family
from tidegate.flows.entering import Found
from tidegate.flows.former_releases import with_ends
from tidegate.flows.journal import read_journal
from tidegate.flows.jq import Jq
from tidegate.flows.keeping import minding_drift
from tidegate.flows.leaving import find_contents, with_prunes
from tidegate.flows.planning import make_plan
from tidegate.flows.refusals import find_refusals
from tidegate.flows.session import Session
from tidegate.flows.suspended import with_suspended
from tidegate.model.change import Difference, Fate, mask_fields
from tidegate.model.finding import Finding
from tidegate.model.ledger import DriftMode
from tidegate.model.objects import Kind, Live, Ref, Spot
from tidegate.model.plan import Deed, Fragment, Item, Plan, PlannedUnit, own_items_of
from tidegate.model.reading import text
from tidegate.model.semantics import TIDEGATE
from tidegate.model.unit import UnitId
from tidegate.world.ask import ask
from tidegate.world.calls import List, Selection
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Forbidden, Listed, NotServed, Outcome, is_refusal
from tidegate.world.refusals import refusal_error

NOTHING = Plan.of(Fragment())


class Preview(msgspec.Struct, frozen=True):
    """A plan, what it would change of what lives, and what is not certain about it."""

    plan: Plan
    differences: dict[Spot, Difference]
    notes: tuple[TidegateError, ...] = ()
    findings: tuple[Finding, ...] = ()
    asked: Plan = NOTHING
    """What Git says, whatever lives."""
    refused: int = 0
    """How many objects the cluster would not take."""
    unknown: tuple[UnitId, ...] = ()
    """Units of which nothing can be said: they could not be read."""
    contents: tuple[TidegateError, ...] = ()
    """Of the notes, those about what goes along and is others'."""

    @property
    def has_changes(self) -> bool:
        return any(one.deed is not Fate.KEEP for one in self.differences.values())


class LivePreview(NamedTuple):
    """A preview, and the objects that live."""

    preview: Preview
    lives: dict[Spot, bytes]


async def preview_found(
    session: Session, found: Found, resources: tuple[str, ...] = ()
) -> tuple[Found, list[Preview]]:
    """Each alternative by itself, and beside them what was found."""
    previews = [await preview(one.families, session, resources) for one in found.apart()]
    return found, previews


async def preview(
    families: Sequence[Family],
    session: Session,
    resources: tuple[str, ...] = (),
) -> Preview:
    """Plan what the user points at, compare it with what is there, and ask what is refused."""
    return (await preview_whole(families, session, resources)).preview


async def preview_whole(
    families: Sequence[Family],
    session: Session,
    resources: tuple[str, ...] = (),
) -> LivePreview:
    """The same, with the objects that live."""
    families, unseen = await with_suspended(families, session)
    found, lives = await preview_with_lives(families, session, resources)
    refusals = await find_refusals(found.asked, session)
    findings = (*found.findings, *unseen, *refusals.findings)
    return LivePreview(replace(found, findings=findings, refused=refusals.objects), lives)


async def preview_with_lives(
    families: Sequence[Family], session: Session, resources: tuple[str, ...] = ()
) -> LivePreview:
    """A plan beside what lives; nobody is asked whether it would be taken."""
    families, world = minding_drift(families), session.world
    planned = await make_plan(families, session, resources, TIDEGATE)
    planned = planned if resources else await with_ends(planned, session)
    plan = await with_prunes(planned.plan, world)
    by_id = {unit.id: unit for unit in plan.units}
    owners = {
        Spot(step.cluster, item.ref): (item, by_id[step.unit])
        for step in plan.steps
        for item in own_items_of(step)
    }
    lives = await _lives(world, owners)
    bodies = {spot: _decode(lives[spot]) for spot in owners if spot in lives}
    replaced = {spot for spot, (item, _) in owners.items() if is_replaced(item, bodies.get(spot))}
    seals = await _seals({one: owners[one] for one in replaced & bodies.keys()}, bodies, world)
    jq = session.craft.jq
    found = {
        spot: _fate_of_leaving(item, unit)
        if item.deed is Deed.DELETE
        else _fate(unit, item, bodies.get(spot), jq, seals.get(spot, ""))
        for spot, (item, unit) in owners.items()
    }
    for spot, (item, _) in owners.items():
        if item.hidden:
            found[spot] = mask_fields(found[spot], item.hidden)
    contents = await find_contents(plan, session)
    notes = (*planned.notes, *contents)
    told = Preview(plan, found, notes, planned.findings, planned.plan, contents=contents)
    return LivePreview(replace(told, unknown=planned.unread), lives)


def _fate(unit: PlannedUnit, item: Item, live: Body | None, jq: Jq, seal: str) -> Difference:
    """What becomes of an object; what others have changed may be theirs."""
    if item.hook is None and unit.policy.drift in {DriftMode.WARN, DriftMode.DISABLED}:
        return KEPT
    return find_difference(unit, item, live, jq, seal)


def _fate_of_leaving(item: Item, unit: PlannedUnit) -> Difference:
    stays = item.asks and not unit.policy.consents
    return Difference(deed=Fate.KEEP if stays else Fate.PRUNE)


def _decode(live: bytes) -> Body:
    body: Body = msgspec.json.decode(live)
    return body


async def _seals(
    replaced: dict[Spot, tuple[Item, PlannedUnit]], bodies: dict[Spot, Body], world: Exchange
) -> dict[Spot, str]:
    """What was recorded when these very texts were put there; of others nothing is needed."""
    units = {unit.id: unit for _, unit in replaced.values()}
    journals = {
        name: (await read_journal(unit, world)).journal.entries for name, unit in units.items()
    }
    seals: dict[Spot, str] = {}
    for spot, (item, unit) in replaced.items():
        known, uid = journals[unit.id].get(item.ref), text(bodies[spot], "metadata", "uid")
        if known is not None and (known.digest, known.uid) == (item.digest, uid):
            seals[spot] = known.seal
    return seals


async def _lives(world: Exchange, spots: Collection[Spot]) -> dict[Spot, bytes]:
    """Those of these objects that live."""
    found: dict[Spot, bytes] = {}
    for cluster in dict.fromkeys(spot.cluster for spot in spots):
        refs = {spot.ref for spot in spots if spot.cluster == cluster}
        lives = await _lives_in(world, cluster, refs)
        found |= {Spot(cluster, ref): body for ref, body in lives.items()}
    return found


async def _lives_in(world: Exchange, cluster: str, refs: Collection[Ref]) -> dict[Ref, bytes]:
    """The same in one cluster; of a kind that is not served, none does.

    Whoever may not see the whole cluster is content with the namespaces of these.
    """
    homes = dict[Kind, dict[str, None]]()
    for ref in sorted(refs):
        homes.setdefault(ref.kind, {})[ref.namespace] = None
    whole = [Selection(kind) for kind in homes]
    answers = await ask(world, *map(List, whole), cluster=cluster)
    pages = list(zip(whole, answers, strict=True))
    closed = [part.kind for part, page in pages if isinstance(page, Forbidden)]
    parts = [Selection(kind, home) for kind in closed for home in homes[kind]]
    pages = [one for one in pages if one[0].kind not in closed]
    pages += zip(parts, await ask(world, *map(List, parts), cluster=cluster), strict=True)
    found = (live for part, page in pages for live in _items(page, part.kind))
    return {live.ref: msgspec.json.encode(read_body(live)) for live in found if live.ref in refs}


def _items(page: Outcome, kind: Kind) -> tuple[Live, ...]:
    """Raises what keeps us from looking: what is not seen is not missing."""
    if is_refusal(page) and not isinstance(page, NotServed):
        raise refusal_error(page, "looking at what lives", where=Place(str(kind)))
    return page.items if isinstance(page, Listed) else ()

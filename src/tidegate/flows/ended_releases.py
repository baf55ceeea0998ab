"""Releases that end while others are rolled out: their units have left Git, or are others by now.

What is remembered of such a release is its record. It says which objects go, and which hooks run
before and behind that, as `helm uninstall` reads it.
"""

from __future__ import annotations

import msgspec

from tidegate.dialect.helm.acting import act
from tidegate.dialect.helm.belonging import newest, objects_of
from tidegate.dialect.helm.record import (
    SECRET,
    ReleaseRecord,
    ReleaseStatus,
    read_record,
    selector_of,
)
from tidegate.dialect.semantics import KSTATUS
from tidegate.errors import Place
from tidegate.flows.bringing import KnownKinds
from tidegate.flows.looking import body_of, look_at
from tidegate.flows.means import stale_of
from tidegate.flows.remedies import read_release_text, record_text
from tidegate.flows.session import Session
from tidegate.health.budget import budget
from tidegate.model.ledger import Action, ReleaseTerms
from tidegate.model.manifest import Manifests
from tidegate.model.objects import Propagation, Ref
from tidegate.model.plan import Fragment, Plan
from tidegate.model.policy import Handling, Order, Policy, Tracking
from tidegate.model.unit import Unit, UnitId
from tidegate.plan.build import plan_unit
from tidegate.plan.deletion import build_deletion
from tidegate.plan.joints import end_of
from tidegate.world.ask import ask
from tidegate.world.calls import List, Selection
from tidegate.world.facts import Listed, is_refusal
from tidegate.world.refusals import refusal_error

ENDING = Policy(
    rules=KSTATUS,
    order=Order.HELM,
    tracking=Tracking.FLUX,
    manager="helm-controller",
    handling=Handling(propagation=Propagation.BACKGROUND),
)


def ending_policy(terms: ReleaseTerms) -> Policy:
    """How a release is run that ends."""
    return act(ENDING, msgspec.structs.replace(terms, action=Action.UNINSTALL))


async def read_end(
    unit: Unit, session: Session, marked: UnitId | None = None
) -> tuple[Manifests, tuple[Ref, ...]]:
    """The hooks of a release's end, and the objects that go with it.

    `marked`: whose the hooks say they are, where that is another unit.
    """
    terms, nothing = unit.policy.release, Manifests(unit=unit)
    if terms is None:
        return nothing, ()
    place, where = unit.destination.cluster, f"unit {unit.id}"
    last = newest(await read_records(terms, place, session, where=where))
    if last is None:
        return nothing, ()
    known = session.craft.rules.known
    kinds = KnownKinds.of(await session.kinds(unit.destination.cluster), (), known)
    text = record_text(last)
    own = msgspec.structs.replace(plan_unit(unit), id=marked or unit.id)
    read = read_release_text(own, terms, text, kinds.is_namespaced) or nothing
    return msgspec.structs.replace(read, unit=unit), tuple(objects_of(last, terms.namespace))


async def plan_end(unit: Unit, marked: UnitId, session: Session) -> Plan:
    """The plan that uninstalls a release; it has a step though nothing is left of that."""
    wanted, refs = await read_end(unit, session, marked)
    planned = plan_unit(unit)
    lives = await look_at(session.world, refs, cluster=planned.cluster)
    stale = (stale_of(body_of(live), planned) for live in lives)
    return with_end(
        build_deletion(wanted, [one for one in stale if one is not None], budget=budget)
    )


def with_end(plan: Plan) -> Plan:
    """The plan of an end; with a step though nothing is left to delete."""
    if plan.steps:
        return plan
    return Plan.of(Fragment(units=plan.units, steps=(end_of(plan.units[0]),)))


async def is_recorded(unit: Unit, session: Session) -> bool:
    """Whether a unit is a release that Helm takes for one that stands, or is on its way out."""
    terms = unit.policy.release
    if terms is None:
        return False
    place, where = unit.destination.cluster, f"unit {unit.id}"
    last = newest(await read_records(terms, place, session, where=where))
    return last is not None and last.status is not ReleaseStatus.UNINSTALLED


async def read_records(
    terms: ReleaseTerms, cluster: str, session: Session, *, where: str
) -> list[ReleaseRecord]:
    """All records of a release; none where there is not even their namespace."""
    selection = Selection(SECRET, terms.storage, labels=selector_of(terms.name))
    (page,) = await ask(session.world, List(selection), cluster=cluster)
    if is_refusal(page):
        raise refusal_error(page, "reading the records of the release", where=Place(where))
    return [read_record(body_of(one)) for one in page.items] if isinstance(page, Listed) else []

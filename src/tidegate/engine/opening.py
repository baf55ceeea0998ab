"""Before the first write: look at what lives, add it to the plan, check everything.

A plan with a fault in it writes nothing. Units with something to do are held afterwards, each by
itself. Where somebody else was at work in one until then, it alone is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from tidegate.engine.belongings import losses, refuse_names, taken_over, written_twice
from tidegate.engine.forgetting import forget_gone, forget_hooks
from tidegate.engine.heartbeat import ASKS_AGAIN
from tidegate.engine.means import FoundUnit
from tidegate.engine.reach.checking import Examined
from tidegate.engine.reach.errands import Errand, Pause
from tidegate.engine.reach.needs import unmet_needs
from tidegate.engine.reach.preflight import Fault
from tidegate.engine.reach.rights import ask_leave
from tidegate.engine.reach.writing import read_body
from tidegate.engine.site import Site, refuse
from tidegate.engine.vocabulary import Stand, Trouble
from tidegate.errors import ClusterError
from tidegate.model.ledger import Action
from tidegate.model.moment import Ms
from tidegate.model.objects import Spot
from tidegate.model.plan import Edge, Plan, Step, items_of
from tidegate.model.unit import UnitId
from tidegate.world.facts import is_refusal
from tidegate.world.refusals import refusal_error

PASSING = frozenset(
    f"cluster.{word}"
    for word in ("disconnected", "failed", "proxy", "throttled", "timeout", "unreachable")
)
"""What may be well again in a moment."""


class Opening(msgspec.Struct, frozen=True):
    """The plan that was asked for, what it comes to in this cluster, and what is wrong with it."""

    asked: Plan
    plan: Plan
    faults: list[Fault]
    taken: list[Fault] = []
    """Objects that belong to other units until now."""
    due: tuple[UnitId, ...] = ()
    """The units with something to do, but for those at fault."""
    under_way: tuple[UnitId, ...] = ()
    """Those that have their slots, or of which something waits for its gate."""


def open_rollout(site: Site, asked: Plan) -> Errand[Opening]:
    """Look, complete and check: a plan, or a part of one that comes later."""
    clusters = (unit.cluster for unit in asked.units)
    refuse((yield from site.outlook.catalogue(clusters)), site)
    unread = yield from site.load(unit.id for unit in asked.units)
    if unread is not None and is_refusal(unread):
        raise refusal_error(unread, "reading the journal", where=site.place)
    site.parts |= _parts(asked)
    before = [site.holds[unit.id].looked for unit in asked.units]
    opening = yield from _open(site, asked)
    if site.settings.only_looks:
        return opening
    yield from site.holds.be_alive(opening.due)
    if before != [site.holds[unit.id].looked for unit in asked.units]:
        # A unit for which an earlier plan had waited was taken meanwhile.
        return (yield from open_rollout(site, asked))
    return opening


def _open(site: Site, asked: Plan) -> Errand[Opening]:
    refuse_names(site, asked)
    refuse((yield from site.ledgers.read(asked.units)), site)
    spots = [Spot(step.cluster, item.ref) for step in asked.steps for item in items_of(step)]
    stale = site.stale(asked)
    leaving = [spot for gone in stale.values() for spot in gone]
    site.outlook.want(leaving)
    refuse((yield from site.outlook.view([*spots, *leaving])), site)
    forgetful = forget_gone(site, stale)
    plan, examined = complete(site, asked, stale)
    faults = yield from unmet_needs(site.may_bring(), examined, site.outlook)
    leave = yield from ask_leave(examined, site.outlook, site.examiner.units)
    faults += leave.faults
    faults += yield from site.inspector.faults(leave.allowed, late=False)
    faults += written_twice(site, examined)
    faults += yield from losses(site, examined)
    faults += _unenterable(site, plan)
    wrong = {step.unit for step, *_ in faults}
    due = dict.fromkeys((*_due(site, examined), *_entering(site, plan), *forgetful))
    if faults and not site.settings.keeps_going:
        due = {}
    taken = [] if faults else taken_over(site, examined)
    able = tuple(name for name in due if name not in wrong)
    awaited = {one[0].unit for one in examined if _is_awaited(site, one)}
    begun = tuple(name for name in able if name in awaited or _has_entered(site, name))
    return Opening(asked, plan, faults, taken, able, begun)


def _has_entered(site: Site, unit: UnitId) -> bool:
    return site.holds[unit].record.has_entered(site.examiner.units[unit].digest)


def _is_awaited(site: Site, examined: Examined) -> bool:
    """Whether an object is there as it is wanted, and nobody has seen it ready."""
    is_there = examined[2].stand is Stand.SAME
    return is_there and site.is_due(examined) and not site.is_written(examined)


def reopen_rollout(site: Site, asked: Plan) -> Errand[Opening]:
    """The same while another plan is under way: troubles of the cluster are waited out."""
    return (yield from _patient(site, partial(open_rollout, site, asked)))


def reopen_unit(site: Site, unit: UnitId) -> Errand[Opening]:
    """What a unit of ours comes to after somebody else was at work in it."""
    while True:
        asked = site.parts[unit]
        opening = yield from _patient(site, partial(_open, site, asked))
        if site.parts[unit] is asked:
            break
    record = site.holds[unit].record
    if opening.due and record.is_done(asked.units[0].digest):
        forget_hooks(site, opening.plan.steps)  # they ran for another rollout, which has ended
    return opening


def _patient(site: Site, errand: Callable[[], Errand[Opening]]) -> Errand[Opening]:
    while True:
        try:
            return (yield from errand())
        except ClusterError as error:
            if error.code not in PASSING:
                raise
        yield Pause(Ms(site.world.now() + ASKS_AGAIN))


def _parts(plan: Plan) -> dict[UnitId, Plan]:
    """Each unit of a plan by itself, with the edges between its own steps."""
    steps: dict[UnitId, list[Step]] = {unit.id: [] for unit in plan.units}
    edges: dict[UnitId, list[Edge]] = {unit.id: [] for unit in plan.units}
    units = {step.id: step.unit for step in plan.steps}
    for step in plan.steps:
        steps[step.unit].append(step)
    for edge in plan.edges:
        if edge.after in units and units.get(edge.before) == units[edge.after]:
            edges[units[edge.after]].append(edge)
    return {
        unit.id: Plan(
            digest=plan.digest,
            units=(unit,),
            steps=tuple(steps[unit.id]),
            edges=tuple(edges[unit.id]),
        )
        for unit in plan.units
    }


def complete(
    site: Site, asked: Plan, stale: dict[UnitId, list[Spot]]
) -> tuple[Plan, list[Examined]]:
    """The plan with what lives added to it, and how its objects stand."""
    now, lives = site.world.now(), site.outlook.lives
    found = {
        unit.id: FoundUnit(
            site.holds[unit.id].begin(now),
            tuple(read_body(lives[spot]) for spot in stale.get(unit.id, ()) if spot in lives),
        )
        for unit in asked.units
    }
    plan = site.means.complete(asked, found)
    _begin_anew(site, plan)
    examined = _examined(site, plan)
    due = [*_due(site, examined), *_entering(site, plan)]
    kept = {unit.id for unit in plan.units if _is_entering(site, unit.id, Action.KEEP)}
    idle = {unit.id for unit in plan.units if unit.id not in due} | kept
    plan = site.means.without_hooks(plan, idle) if idle else plan
    tested = {unit.id for unit in plan.units if _is_entering(site, unit.id, Action.TEST)}
    plan = site.means.without_hooks(plan, tested, but_tests=True) if tested else plan
    settled = {(one[0].unit, one[1].ref) for one in examined if not site.is_due(one)}
    plan = site.means.without_settled(plan, settled)
    plan = _with_remedies(site, plan)
    if plan is not asked:
        site.enlist(plan.units, plan.steps, digest=plan.digest)
    return plan, _examined(site, plan)


def _with_remedies(site: Site, plan: Plan) -> Plan:
    """The plan with what is done about failures of units that keep a ledger.

    A unit may be run otherwise for that.
    """
    steps: dict[UnitId, list[Step]] = {}
    for step in plan.steps:
        steps.setdefault(step.unit, []).append(step)
    found = [site.remedy(unit, steps.get(unit.id, ())) for unit in plan.units]
    made = [one for one in found if one is not None]
    if not made:
        return plan
    others = {unit.id: unit for one in made for unit in one.units}
    return msgspec.structs.replace(
        plan,
        units=tuple(others.get(unit.id, unit) for unit in plan.units),
        steps=(*plan.steps, *(step for one in made for step in one.steps)),
        edges=(*plan.edges, *(edge for one in made for edge in one.edges)),
    )


def _is_entering(site: Site, unit: UnitId, action: Action) -> bool:
    """Whether this is what is entered of a unit.

    Where it is nothing, what is put back of it is no rollout that has hooks; where it is how its
    tests went, it has no others.
    """
    entering = site.ledgers.entering(unit)
    return entering is not None and entering.action is action


def _entering(site: Site, plan: Plan) -> list[UnitId]:
    """The units with something to enter into their ledgers, though nothing may be to be written."""
    found = ((unit.id, site.ledgers.entering(unit.id)) for unit in plan.units)
    return [name for name, entering in found if entering is not None and entering.is_due]


def _begin_anew(site: Site, plan: Plan) -> None:
    """What is entered anew is a rollout of its own, though the text may be the last one's."""
    for unit in plan.units:
        entering, record = site.ledgers.entering(unit.id), site.holds[unit.id].record
        if entering is None or not entering.is_due or entering.goes_on:
            continue
        if record.is_done(unit.digest):
            forget_hooks(site, (step for step in plan.steps if step.unit == unit.id))
            record.reopen()


def _unenterable(site: Site, plan: Plan) -> list[Fault]:
    """Units whose ledgers cannot take what is to be entered."""
    first: dict[UnitId, Step] = {}
    for step in plan.steps:
        first.setdefault(step.unit, step)
    return [
        (step, item.ref, Trouble("Ledger", entering.problem, final=True))
        for name, step in first.items()
        if (entering := site.ledgers.entering(name)) is not None and entering.problem
        for item in items_of(step)[:1]
    ]


def _examined(site: Site, plan: Plan) -> list[Examined]:
    """How the objects stand. What is done about a failure is looked at when it is due."""
    steps = (step for step in plan.steps if not site.is_remedy(step))
    return [one for step in steps for one in site.examined(step)]


def _due(site: Site, examined: list[Examined]) -> list[UnitId]:
    """The units with something to do."""
    return list(dict.fromkeys(one[0].unit for one in examined if site.is_due(one)))

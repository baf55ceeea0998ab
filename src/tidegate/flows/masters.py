"""Two masters: the controllers of Argo CD and Flux may be at work on the very units we roll out.

    refuse        one of them is alive, and its units are not held
    take over     each unit is held first, and stays so
    hand back     behind a rollout that has passed, each unit that we hold is let go

Who deletes is refused, or takes over, by the same rule: a controller would bring back what is gone.

All that is remembered of it stands on the units' own objects, so that whoever was killed on the way
goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from tidegate.dialect.masters import (
    MASTERS,
    Master,
    hold,
    holding,
    is_alive,
    is_busy,
    is_held,
    releasing,
)
from tidegate.errors import ClusterError, Place, foreign
from tidegate.flows.looking import body_of
from tidegate.flows.own_objects import OwnObject, find_own
from tidegate.flows.planning import Planned
from tidegate.flows.session import Session
from tidegate.model.objects import Json, Kind, Live, Spot
from tidegate.model.plan import Fragment, Item, Plan, Step, digest_step
from tidegate.model.unit import UnitId
from tidegate.plan.items import digest_text
from tidegate.world.ask import ask
from tidegate.world.calls import Get, List, PatchForm, Request, Selection, Verb, Write
from tidegate.world.facts import Conflict, Done, Forbidden, Listed, Missing, NotServed, is_refusal
from tidegate.world.refusals import refusal_error

Body = dict[str, Json]
POD = Kind("", "v1", "Pod")
MANAGER = "tidegate"
ENOUGH = 10
"""So many pods of a controller tell enough of it."""
TRIES = 3
MOST_NAMED = 3
TAKES = "`--take-over` holds it there first"
NOBODY = "`--take-over`: no controller of these units is alive, and nobody is held"


class Met(msgspec.Struct, frozen=True):
    """What became of the other masters before a rollout.

    `planned`: what is rolled out now; own objects that come to be are held from the beginning.
    `held`: units whose controllers are held. `notes`: what is to be said.
    """

    planned: Planned
    own: Mapping[UnitId, OwnObject] = msgspec.field(default_factory=dict)
    held: tuple[UnitId, ...] = ()
    notes: tuple[str, ...] = ()

    def hold_also(self, planned: Planned) -> Planned:
        """A newer plan, in which the same own objects are held from the beginning."""
        return _held_from_the_beginning(planned, self.held, self.own)

    @property
    def told_held(self) -> str:
        names = [*self.held]
        return f"{_titles(names)} stays held for {len(names)} unit{'s' if len(names) != 1 else ''}"


async def meet_masters(
    planned: Planned, session: Session, *, takes_over: bool = False, hands_back: bool = False
) -> Met:
    """Make sure that nobody else is at work on these units. Raises where somebody is.

    With `takes_over` whoever is there is held. What is held already stays so.
    """
    own, alive, notes = await _masters_of(planned, session)
    watched = {name: one for name, one in own.items() if (name.cluster, name.kind) in alive}
    if not watched and not hands_back:
        return Met(planned, own, notes=(*notes, NOBODY) if takes_over else notes)
    concerned = own if hands_back else watched
    lives = await _look(concerned, session)
    held = [name for name, live in lives.items() if is_held(body_of(live))]
    free = [name for name in watched if name in lives and name not in held]
    if (free or not held) and watched and not takes_over and not (hands_back and held):
        raise _two_masters(
            free or [*watched], alive, f"{TAKES}, and `--hand-back` lets it go again"
        )
    notes += await _hold({name: (concerned[name], lives[name]) for name in free}, session)
    names = tuple(name for name in concerned if name in watched or name in held)
    return Met(_held_from_the_beginning(planned, names, own), own, names, notes)


async def meet_masters_at_end(planned: Planned, session: Session, *, takes_over: bool) -> Met:
    """The same before units are deleted: nobody brings what has no own object any more."""
    own, alive, notes = await _masters_of(planned, session)
    watched = {name: one for name, one in own.items() if (name.cluster, name.kind) in alive}
    lives = await _look(watched, session)
    free = [name for name, live in lives.items() if not is_held(body_of(live))]
    if free and not takes_over:
        raise _two_masters(free, alive, TAKES)
    if takes_over and not lives:
        notes = (*notes, NOBODY)
    notes += await _hold({name: (watched[name], lives[name]) for name in free}, session)
    return Met(planned, own, tuple(lives), notes)


async def still_held(met: Met, session: Session) -> tuple[str, ...]:
    """What is to be said behind a deletion of units whose own objects are still there, and held."""
    lives = await _look({name: met.own[name] for name in met.held}, session)
    held = tuple(name for name, live in lives.items() if is_held(body_of(live)))
    return (replace(met, held=held).told_held,) if held else ()


async def _masters_of(
    planned: Planned, session: Session
) -> tuple[dict[UnitId, OwnObject], frozenset[tuple[str, str]], tuple[str, ...]]:
    """The own objects of units, whose controllers are alive, and what cannot be known of them."""
    groups = {name: one.group for name, one in MASTERS.items()}
    own = await find_own(planned, session, groups)
    return own, *await find_alive(((one.cluster, one.kind) for one in own), session)


async def _hold(free: dict[UnitId, tuple[OwnObject, Live]], session: Session) -> tuple[str, ...]:
    """Hold the controllers of these units; what is to be said of it."""
    _refuse_busy([name for name, (_, live) in free.items() if is_busy(body_of(live))])
    for own, live in free.values():
        await _change(own, live, session, holds=True)
    names = [*free]
    told = f"{_count(names)} held: {_titles(names)} leaves them alone for now"
    return (told,) if names else ()


async def hand_back(met: Met, session: Session) -> tuple[str, ...]:
    """Let go of all that we hold, what was brought last first; what is to be said of it."""
    wanted = {name: met.own[name] for name in met.held}
    lives = await _look(wanted, session)
    held = [name for name in reversed(wanted) if name in lives and is_held(body_of(lives[name]))]
    for name in held:
        await _change(wanted[name], lives[name], session, holds=False)
    if not held:
        return ("`--hand-back`: none of these units is held",)
    return (f"{_count(held)} handed back to {_titles(held)}",)


async def find_alive(
    places: Iterable[tuple[str, str]], session: Session
) -> tuple[frozenset[tuple[str, str]], tuple[str, ...]]:
    """By cluster and kind, those whose controller has pods; and what cannot be known."""
    found: set[tuple[str, str]] = set()
    notes: list[str] = []
    for cluster, kind in dict.fromkeys(places):
        master = MASTERS[kind]
        asked = [List(Selection(POD, labels=one), limit=ENOUGH) for one in master.selectors]
        for outcome in await ask(session.world, *asked, cluster=cluster):
            if isinstance(outcome, Listed) and any(is_alive(body_of(one)) for one in outcome.items):
                found.add((cluster, kind))
            elif isinstance(outcome, Forbidden):
                notes.append(f"whether {master.title} is alive cannot be seen: pods are not shown")
            elif is_refusal(outcome):
                raise refusal_error(outcome, f"looking for {master.title}", where=Place("pods"))
    return frozenset(found), tuple(dict.fromkeys(notes))


async def _look(own: Mapping[UnitId, OwnObject], session: Session) -> dict[UnitId, Live]:
    """Those of the own objects that live."""
    found: dict[UnitId, Live] = {}
    by_cluster: dict[str, list[UnitId]] = {}
    for name, one in own.items():
        by_cluster.setdefault(one.spot.cluster, []).append(name)
    for cluster, names in by_cluster.items():
        asked: list[Request] = [Get(own[name].spot.ref) for name in names]
        outcomes = await ask(session.world, *asked, cluster=cluster)
        for name, outcome in zip(names, outcomes, strict=True):
            if isinstance(outcome, Done) and outcome.live is not None:
                found[name] = outcome.live
            elif is_refusal(outcome) and not isinstance(outcome, Missing | NotServed):
                raise refusal_error(outcome, "looking at units", where=Place(str(name)))
    return {name: found[name] for name in own if name in found}


async def _change(own: OwnObject, live: Live, session: Session, *, holds: bool) -> None:
    """Hold the controller of a unit, or let it go; others who write meanwhile are read."""
    spot, world = own.spot, session.world
    for attempt in range(TRIES):
        (outcome,) = await ask(world, _wish(own, live, holds=holds), cluster=spot.cluster)
        if isinstance(outcome, Conflict) and attempt < TRIES - 1:
            (found,) = await ask(world, Get(spot.ref), cluster=spot.cluster)
            if isinstance(found, Done) and found.live is not None:
                live = found.live
                continue
            outcome = found
        if is_refusal(outcome) and not isinstance(outcome, Missing):
            deed = "holding its controller" if holds else "letting its controller go"
            raise refusal_error(outcome, deed, where=Place(str(spot.ref)))
        return


def _wish(own: OwnObject, live: Live, *, holds: bool) -> Write:
    body = body_of(live)
    written: Body = msgspec.json.decode(own.text) if own.text else {}
    return Write(
        verb=Verb.PATCH,
        form=PatchForm.MERGE,
        ref=own.spot.ref,
        body=msgspec.json.encode(holding(body) if holds else releasing(body, written)),
        manager=MANAGER,
        uid=live.uid,
        version=live.version,
    )


def _held_from_the_beginning(
    planned: Planned, names: Iterable[UnitId], own: Mapping[UnitId, OwnObject]
) -> Planned:
    """The plan whose own objects of these units come to be held."""
    spots = {own[name].spot for name in names}
    plan = planned.plan
    steps = tuple(_with_held(step, spots) for step in plan.steps)
    if all(new is old for new, old in zip(steps, plan.steps, strict=True)):
        return planned
    parts = Fragment(units=plan.units, steps=steps, edges=plan.edges, slots=plan.slots)
    return replace(planned, plan=Plan.of(parts))


def _with_held(step: Step, spots: set[Spot]) -> Step:
    def changed(item: Item) -> Item:
        if Spot(step.cluster, item.ref) not in spots or not item.body:
            return item
        body = msgspec.json.encode(hold(msgspec.json.decode(item.body)))
        digest = digest_text(body, item.hook, step.event)
        return msgspec.structs.replace(item, body=body, digest=digest)

    batches = tuple(tuple(map(changed, batch)) for batch in step.batches)
    if batches == step.batches:
        return step
    digest = digest_step(batches, step.expands)
    return msgspec.structs.replace(step, batches=batches, digest=digest)


def _refuse_busy(busy: list[UnitId]) -> None:
    if busy:
        problem = f"{_titles(busy)} is in the middle of {_named(busy)}"
        hint = "wait until it is done there, and run this command again"
        raise ClusterError("cluster.master-busy", problem, where=Place(str(busy[0])), hint=hint)


def _two_masters(
    names: list[UnitId], alive: Iterable[tuple[str, str]], way_out: str
) -> ClusterError:
    problem = f"{_titles(names)} is alive, and brings {_named(names)} itself"
    workloads = sorted({MASTERS[kind].workload for _, kind in alive})
    hint = f"{way_out}; or stop it: `kubectl scale {workloads[0]} --replicas=0` in its namespace"
    return ClusterError("cluster.master", problem, where=Place(str(names[0])), hint=hint)


def _titles(names: Iterable[UnitId]) -> str:
    masters: dict[Master, None] = dict.fromkeys(MASTERS[one.kind] for one in names)
    return " and ".join(one.title for one in masters)


def _named(names: list[UnitId]) -> str:
    told = ", ".join(f"`{foreign(str(one))}`" for one in names[:MOST_NAMED])
    return f"{told} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else told


def _count(names: list[UnitId]) -> str:
    return f"{len(names)} unit{'s are' if len(names) != 1 else ' is'}"

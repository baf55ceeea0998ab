"""Ask a live controller of a dialect, as its own command does, and wait for what it answers.

What is asked and answered stands on own objects; what a controller says meanwhile is told on, so
that nobody waits for five minutes to be told that the time is over.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from tidegate.dialect.masters import MASTERS, SOURCES, is_held
from tidegate.dialect.requests import (
    Heard,
    RequestState,
    SyncWish,
    heard_from_argo,
    heard_from_flux,
    heard_resumed,
    is_refreshed,
    is_suspended,
    refreshing,
    requesting,
    source_of,
    syncing,
)
from tidegate.errors import ClusterError, LateError, Place, WordsError, foreign
from tidegate.flows.looking import body_of, look_at
from tidegate.flows.masters import find_alive
from tidegate.flows.named import NamedObject
from tidegate.flows.session import Session
from tidegate.model.moment import MINUTE, SECOND, Ms, format_duration
from tidegate.model.objects import Json, Live, Spot
from tidegate.model.unit import UnitId
from tidegate.world.ask import ask
from tidegate.world.calls import PatchForm, Selection, Verb, Watch, Write
from tidegate.world.facts import Answer, Change, Changed, Done, Ended, Outcome, is_refusal
from tidegate.world.refusals import refusal_error

Body = dict[str, Json]
Say = Callable[[str], None]
MANAGER = "tidegate-asking"
"""Nobody's who applies: what a person asks for is not taken back by the next rollout."""
PATIENCE = Ms(5 * MINUTE)
"""As long as Flux's own command waits."""
RESOURCE_PARTS = 3


class LivingObject(msgspec.Struct, frozen=True):
    """An own object that lives, and where."""

    id: UnitId
    live: Live

    @property
    def spot(self) -> Spot:
        return Spot(self.id.cluster, self.live.ref)

    @property
    def body(self) -> Body:
        return body_of(self.live)

    @property
    def title(self) -> str:
        """As Flux's own command says it."""
        return f"{self.id.kind} {self.id.name} in {self.id.namespace} namespace"


class Answered(msgspec.Struct, frozen=True):
    """What a controller has answered to whom it was asked about."""

    id: UnitId
    heard: Heard

    @property
    def is_done(self) -> bool:
        return self.heard.state is RequestState.DONE

    @property
    def document(self) -> dict[str, object]:
        """For programs."""
        name, heard = self.id, self.heard
        return {
            "kind": name.kind,
            "namespace": name.namespace,
            "name": name.name,
            "cluster": name.cluster,
            "state": str(heard.state),
            "revision": heard.revision,
            "message": heard.sentence,
        }


async def have_masters(objects: Sequence[NamedObject], session: Session) -> bool:
    """Whether the controllers of all of these are alive. Raises where only some are."""
    places = {(one.id.cluster, one.id.kind): one for one in objects}
    known = [one for one in places if one[0] in session.target.contexts]
    alive, _ = await find_alive(known, session)
    absent = [one for place, one in places.items() if place not in alive]
    if not alive or not absent:
        return bool(alive)
    titles = " and ".join(dict.fromkeys(MASTERS[kind].title for _, kind in alive))
    problem = f"{titles} is alive, and nobody is for `{absent[0].id}`"
    hint = "name those of one controller alone; or `--take-over` rolls out from here"
    raise ClusterError("cluster.master", problem, hint=hint)


async def find_living(objects: Iterable[NamedObject], session: Session) -> list[LivingObject]:
    """Own objects as they live. Raises ClusterError where one does not, or is suspended."""
    found = []
    for one in objects:
        lives = await look_at(session.world, (one.spot.ref,), cluster=one.id.cluster)
        if not lives:
            problem = f"`{one.id}` is not in the cluster, whose controller would bring it up"
            hint = "ask for the unit that brings it; `tidegate units` shows which that is"
            raise ClusterError("cluster.unit", problem, where=one.where, hint=hint)
        found.append(LivingObject(one.id, lives[0]))
    for living in found:
        if is_suspended(living.body) and not is_held(living.body):
            raise suspended_error(living.id)
    return found


def suspended_error(name: UnitId) -> ClusterError:
    problem = f"`{name}` is suspended: nothing is done to it"
    hint = f"`tidegate resume {name.kind.lower()} {name.name}` has it taken up again"
    return ClusterError("cluster.suspended", problem, hint=hint)


async def reconcile(
    asked: Sequence[LivingObject], session: Session, say: Say, within: Ms
) -> list[Answered]:
    """Ask controllers of Flux's for a reconciliation, and wait until all of it is current.

    All are asked before any is waited for: whoever depends on another one is not in its way.
    """
    now = datetime.fromtimestamp(session.world.now() / SECOND, UTC)
    stamp = f"{now:%Y-%m-%dT%H:%M:%S.%f}Z"
    for one in asked:
        say(f"► annotating {one.title}")
        await patch_object(one.spot, requesting(stamp), session)
        say(f"✔ {one.id.kind} annotated")
    return [Answered(one.id, await _reconciled(one, stamp, session, say, within)) for one in asked]


async def _reconciled(
    asked: LivingObject, stamp: str, session: Session, say: Say, within: Ms
) -> Heard:
    say(f"◎ waiting for {asked.id.kind} reconciliation")
    heard = await _wait(asked, lambda own: heard_from_flux(own, stamp), session, say, within)
    _end_reconciled(asked, heard, say)
    return heard


def _end_reconciled(asked: LivingObject, heard: Heard, say: Say) -> None:
    deed = "fetched" if asked.id.kind in SOURCES else "applied"
    is_told = heard.revision and asked.id.kind != "Application"
    _end(heard, f"{deed} revision {heard.revision}" if is_told else heard.sentence, say)


async def await_resumed(resumed: LivingObject, session: Session, say: Say, within: Ms) -> Answered:
    """Wait until a controller has come up with what was resumed; it is given as it was before.

    Raises LateError.
    """
    say(f"◎ waiting for {resumed.id.kind} reconciliation")
    before = resumed.body
    heard = await _wait(resumed, lambda own: heard_resumed(own, before), session, say, within)
    if heard.state is RequestState.DONE:
        say(f"✔ {resumed.id.kind} {resumed.id.name} reconciliation completed")
    _end_reconciled(resumed, heard, say)
    return Answered(resumed.id, heard)


def _end(heard: Heard, said: str, say: Say) -> None:
    """The last line: how it went, in the words of whoever did it."""
    is_done = heard.state is RequestState.DONE
    say(f"✔ {foreign(said)}" if is_done else f"✗ {foreign(heard.sentence)}")


async def sources_of(
    units: Iterable[LivingObject], named: Iterable[NamedObject], session: Session
) -> list[LivingObject]:
    """The sources that units of Flux's take from, each once, as they live."""
    wanted = dict.fromkeys(source_of(one.body) for one in units)
    known = {(one.id.kind, one.id.namespace, one.id.name): one for one in named}
    found = []
    for name in (one for one in wanted if one is not None):
        if name not in known:
            problem = f"the source {'/'.join(name)} is not in this repository"
            hint = "ask for the unit without `--with-source`"
            raise ClusterError("cluster.unit", problem, hint=hint)
        found.append(known[name])
    if found and not await have_masters(found, session):
        problem = "no source-controller of Flux's is alive, which would fetch the source"
        raise ClusterError("cluster.unit", problem, where=Place(str(found[0].id)))
    return await find_living(found, session)


def sync_wish(
    *, by: str, revision: str, prunes: bool, forces: bool, resources: Iterable[str]
) -> SyncWish:
    """How Argo CD is asked to sync. Raises WordsError for a resource that it cannot be told."""
    return SyncWish(
        by=by,
        revision=revision,
        prunes=prunes,
        forces=forces,
        resources=tuple(map(_resource, resources)),
    )


def _resource(words: str) -> tuple[str, str, str, str]:
    """Group, kind, namespace and name of one resource: an operation names them one by one."""
    parts = words.split(":")
    if len(parts) != RESOURCE_PARTS or "*" in words or words.startswith("!"):
        problem = (
            f"Argo CD syncs resources that are named one by one, and `{foreign(words)}` is none"
        )
        hint = "write GROUP:KIND:[NAMESPACE/]NAME; or `--take-over` rolls out from here"
        raise WordsError("words.resource", problem, hint=hint)
    group, kind, name = parts
    home, _, last = name.rpartition("/")
    return group, kind, home, last


async def refresh(
    asked: LivingObject, session: Session, *, hard: bool, within: Ms = PATIENCE
) -> None:
    """Have Argo CD compare an Application again, and wait until it has."""
    await patch_object(asked.spot, refreshing(hard=hard), session)

    def heard(own: Body) -> Heard:
        state = RequestState.DONE if is_refreshed(own) else RequestState.PENDING
        return Heard(state, "it has not looked again")

    await _wait(asked, heard, session, lambda _: None, within)


async def sync_by_master(
    asked: LivingObject, wish: SyncWish, session: Session, say: Say, within: Ms | None = None
) -> Answered:
    """Have Argo CD sync an Application, and wait until its operation has ended.

    Without `within` that may take as long as it takes, as with Argo CD's own command.
    """
    say(f"► asking Argo CD to sync {asked.id.namespace}/{asked.id.name}")
    await refresh(asked, session, hard=False, within=within or PATIENCE)
    (live,) = await look_at(session.world, (asked.live.ref,), cluster=asked.id.cluster)
    asked = replace(asked, live=live)
    if asked.body.get("operation") is not None:
        problem = f"another operation of `{asked.id}` is already in progress"
        raise ClusterError("cluster.master-busy", problem, hint="wait until it has ended")
    await patch_object(asked.spot, syncing(asked.body, wish), session)
    say(f"◎ waiting for the operation of {asked.id.namespace}/{asked.id.name}")
    before = asked.body
    heard = await _wait(asked, lambda own: heard_from_argo(own, before), session, say, within)
    revision = f" ({heard.revision})" if heard.revision else ""
    _end(heard, f"{heard.sentence or 'synced'}{revision}", say)
    return Answered(asked.id, heard)


async def _wait(
    asked: LivingObject,
    hear: Callable[[Body], Heard],
    session: Session,
    say: Say,
    within: Ms | None,
) -> Heard:
    """The answer of a controller. Raises where it has none in time; None waits for ever."""
    last = ""
    async with aclosing(follow(asked.spot, session, within)) as states:
        async for own in states:
            if own is None:
                raise ClusterError("cluster.unit", f"`{asked.id}` was deleted meanwhile")
            heard = hear(own)
            if heard.state is not RequestState.PENDING:
                return heard
            if heard.sentence != last:
                last = heard.sentence
                say(f"◎ {foreign(last)}")
    say("✗ context deadline exceeded")
    problem = f"`{asked.id}` did not come up within {format_duration(within or Ms(0))}: {last}"
    hint = f"`tidegate events --for {asked.id.kind}/{asked.id.name}` shows its Events"
    raise LateError("cluster.late", problem, hint=hint)


async def follow(spot: Spot, session: Session, within: Ms | None) -> AsyncGenerator[Body | None]:
    """An object as it is, and after each change; None where it is gone. Ends when time is over."""
    world, ref = session.world, spot.ref
    party, until = world.party(), None if within is None else Ms(world.now() + within)
    selection = Selection(ref.kind, ref.namespace, fields=f"metadata.name={ref.name}")
    ticket = party.submit(Watch(selection), cluster=spot.cluster)
    try:
        while until is None or world.now() < until:
            for fact in await party.wait(until):
                if isinstance(fact, Changed):
                    is_gone = fact.change is Change.DELETED
                    yield None if is_gone else body_of(fact.live)
                elif isinstance(fact, Answer | Ended) and fact.outcome is not None:
                    _refuse(fact.outcome, spot)
    finally:
        party.cancel(ticket)


def _refuse(outcome: Outcome, spot: Spot) -> None:
    if is_refusal(outcome):
        raise refusal_error(outcome, "watching it", where=Place(str(spot.ref)))


async def patch_object(spot: Spot, change: Body, session: Session) -> Live | None:
    """Change some fields of an object that lives, whoever writes it meanwhile."""
    write = Write(
        verb=Verb.PATCH,
        form=PatchForm.MERGE,
        ref=spot.ref,
        body=msgspec.json.encode(change),
        manager=MANAGER,
    )
    (outcome,) = await ask(session.world, write, cluster=spot.cluster)
    if is_refusal(outcome):
        raise refusal_error(outcome, "asking its controller", where=Place(str(spot.ref)))
    return outcome.live if isinstance(outcome, Done) else None

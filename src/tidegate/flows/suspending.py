"""Suspend units and sources in their cluster, and resume them.

own object        where the cluster has it: in the words of its dialect
record            else: an object of ours beside the unit's journal
"""

from __future__ import annotations

import getpass
import socket
from collections.abc import Sequence

import msgspec

from tidegate.dialect.requests import is_suspended, suspending
from tidegate.engine.stored import NAMESPACE
from tidegate.engine.suspensions import suspension, suspension_ref
from tidegate.errors import Place
from tidegate.flows.controllers import LivingObject, patch_object
from tidegate.flows.looking import look_at
from tidegate.flows.masters import find_alive
from tidegate.flows.named import NamedObject
from tidegate.flows.session import Session
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.unit import UnitId
from tidegate.world.ask import ask
from tidegate.world.calls import Request, Verb, Write
from tidegate.world.facts import Exists, Missing, is_refusal
from tidegate.world.refusals import refusal_error

Body = dict[str, Json]


class Suspended(msgspec.Struct, frozen=True):
    """What became of a unit or a source that was suspended, or resumed.

    `living`: its own object as it was; None where only a record of ours says it. `by_git`: Git
    itself suspends it, so that the next rollout does so again.
    """

    named: NamedObject
    living: LivingObject | None
    by_git: bool


async def suspend(named: NamedObject, session: Session, *, suspends: bool) -> Suspended:
    """Have nothing done to a unit, or have it taken up again. Raises ClusterError."""
    cluster = named.id.cluster
    lives = await look_at(session.world, (named.spot.ref,), cluster=cluster)
    living = LivingObject(named.id, lives[0]) if lives else None
    if living is not None:
        await patch_object(living.spot, suspending(living.body, suspends=suspends), session)
    if living is None or not suspends:
        await _record(named.id, session, suspends=suspends)
    return Suspended(named, living, is_suspended(named.own))


async def masters_of(
    resumed: Sequence[Suspended], session: Session
) -> tuple[frozenset[tuple[str, str]], tuple[str, ...]]:
    """The clusters and kinds whose controllers go on with what was resumed.

    And of whom that cannot be seen.
    """
    places = {(one.named.id.cluster, one.named.id.kind) for one in resumed if one.living}
    known = sorted(one for one in places if one[0] in session.target.contexts)
    return await find_alive(known, session)


async def _record(name: UnitId, session: Session, *, suspends: bool) -> None:
    """Write the record of a suspension, or take it away."""
    where, mark = Place(str(name)), name.mark
    if not suspends:
        (gone,) = await ask(session.world, _deletion(mark), cluster=name.cluster)
        if is_refusal(gone) and not isinstance(gone, Missing):
            raise refusal_error(gone, "resuming", where=where)
        return
    by = f"{getpass.getuser()}@{socket.gethostname()}"
    for request in (_room(), suspension(mark, by)):
        (outcome,) = await ask(session.world, request, cluster=name.cluster)
        if is_refusal(outcome) and not isinstance(outcome, Exists):
            raise refusal_error(outcome, "suspending", where=where)


def _deletion(mark: str) -> Request:
    return Write(verb=Verb.DELETE, ref=suspension_ref(mark))


def _room() -> Request:
    body: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    ref = Ref(Kind("", "v1", "Namespace"), "", NAMESPACE)
    return Write(verb=Verb.CREATE, ref=ref, body=msgspec.json.encode(body))

"""How units stand, now and whenever something of them has changed.

    async for _ in each_change(await places_of(found, session), session, within):
        ...                      # read again, and show it

It is heard from watches. What cannot be watched, as its kind is not served yet, is looked at again
after a while.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable

from tidegate.flows.entering import Found
from tidegate.flows.lineage import read_lineage
from tidegate.flows.session import Session
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Kind
from tidegate.world.calls import Selection, Ticket, View, Watch
from tidegate.world.exchange import Party
from tidegate.world.facts import Answer, Changed, Ended, Fact

Place = tuple[str, Kind, str]
"""A cluster, a kind and a namespace."""
AGAIN = Ms(10 * SECOND)
SETTLING = Ms(200)
"""What changes together is looked at together."""


async def places_of(found: Found, session: Session) -> list[Place]:
    """Where units, sources and all that they bring are."""
    places: dict[Place, None] = {}
    for lineage in await read_lineage(found, session):
        for named in lineage.named:
            places[named.id.cluster, named.spot.ref.kind, named.id.namespace] = None
        for one in (one for brought in lineage.objects.values() for one in brought):
            places[one.cluster, one.ref.kind, one.ref.namespace] = None
    return [one for one in places if one[0] in session.target.contexts]


async def each_change(
    places: Iterable[Place], session: Session, within: Ms | None = None
) -> AsyncGenerator[None]:
    """Come back at once, and again whenever something changed there, until time is over."""
    world = session.world
    party, end = world.party(), None if within is None else Ms(world.now() + within)
    open_ = {
        party.submit(Watch(Selection(kind, home, view=View.METADATA)), cluster=cluster)
        for cluster, kind, home in places
    }
    try:
        await _until_whole(party, {*open_})
        while True:
            yield
            if not await _changed(party, end):
                return
    finally:
        for ticket in open_:
            party.cancel(ticket)


async def _until_whole(party: Party, awaited: set[Ticket]) -> None:
    """Wait until each watch has told what is there, or was refused."""
    while awaited:
        awaited -= {one.ticket for one in await party.wait(None) if isinstance(one, Answer | Ended)}


async def _changed(party: Party, end: Ms | None) -> bool:
    """Wait for a change, at most for a while; False when time is over."""
    again = Ms(party.now() + AGAIN)
    until = again if end is None else min(again, end)
    while party.now() < until:
        if any(map(_is_news, await party.wait(until))):
            settled = Ms(party.now() + SETTLING)
            while party.now() < settled:
                await party.wait(settled)
            break
    return end is None or party.now() < end


def _is_news(fact: Fact) -> bool:
    return isinstance(fact, Changed)

"""Many callers of one world, none of whom knows of the others.

    exchange = Exchange(Line(world))
    party = exchange.party()
    ticket = party.submit(Get(ref))
    facts = await party.wait(until)

The exchange hands out the tickets, and each fact goes to the party whose ticket it carries. A world
has one waiter: whichever party waits first listens for all, and hands that on when it has something
to do itself. Nobody listens while a party that was called has not come to take what is there for
it, so that virtual time never runs ahead of anybody.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable

from tidegate.model.identity import Identity
from tidegate.model.moment import Ms
from tidegate.world.calls import Call, Request, Ticket, Watch
from tidegate.world.facts import Due, Ended, Fact
from tidegate.world.protocol import World


class Exchange:
    """What callers share."""

    def __init__(self, world: World) -> None:
        self.now = world.now
        self._world = world
        self._last = 0
        self._asking: dict[Ticket, Party] = {}
        self._watching: dict[Ticket, Party] = {}
        self._waiting: dict[Party, None] = {}
        self._called: set[Party] = set()
        self._listener: Party | None = None
        self._until: Ms | None = None
        self._alarms: list[tuple[Ms, int, Party]] = []
        self._alarms_set = 0
        self._works = 0
        self._at_work: set[Party] = set()

    def party(self) -> Party:
        """Somebody who asks: with tickets, facts and an alarm of its own."""
        made = Party(self)
        if self._works:
            self._at_work.add(made)
        return made

    def begin_work(self) -> None:
        """Somebody does something that no world knows of, such as reading files, for the others.

        Virtual time stands still meanwhile, but for those who begin to ask then.
        """
        self._works += 1
        self._world.wake()

    def end_work(self) -> None:
        self._works -= 1
        if not self._works:
            self._at_work.clear()
            self._hand_on()

    def _may_listen(self, party: Party) -> bool:
        return not self._works or party in self._at_work

    def _hand_on(self) -> None:
        """Whoever has waited longest listens next, once all that were called have come."""
        if self._listener is None and not self._called:
            able = (one for one in self._waiting if self._may_listen(one))
            following = next(able, None)
            if following is not None:
                self._call(following)

    def next_ticket(self) -> Ticket:
        self._last += 1
        return Ticket(self._last)

    def send(self, party: Party, call: Call) -> None:
        """Send a call of a party, to whom its facts will go."""
        owners = self._watching if isinstance(call.request, Watch) else self._asking
        owners[call.ticket] = party
        self._world.submit(call)

    def withdraw(self, ticket: Ticket) -> bool:
        self._asking.pop(ticket, None)
        self._watching.pop(ticket, None)
        return self._world.cancel(ticket)

    async def attend(self, party: Party) -> None:
        """Come back when a party has something to do."""
        self._waiting[party] = None
        # Moments that are no longer waited for stay until they come up; each stands there once.
        if party.until is not None and party.until != party.rings:
            party.rings = party.until
            self._alarms_set += 1
            heapq.heappush(self._alarms, (party.until, self._alarms_set, party))
        try:
            while not party.is_due(self.now()):
                is_free = self._listener is None and not self._called
                if is_free and self._may_listen(party):
                    await self._listen(party)
                    continue
                self._hand_on()  # it may have been called before somebody began to work
                await self._rest(party)
        finally:
            del self._waiting[party]
            self._hand_on()

    def wake(self, party: Party) -> None:
        """Let a wait end now."""
        if self._listener is party:
            self._world.wake()
        else:
            self._call(party)

    async def _listen(self, party: Party) -> None:
        """Hear for all what the world says, once."""
        self._listener, self._until = party, self._earliest()
        try:
            facts = await self._world.wait(self._until)
        finally:
            self._listener = None
        self._route(facts)
        now = self.now()
        while (moment := self._earliest()) is not None and moment <= now:
            self._call(self._next_alarm())

    async def _rest(self, party: Party) -> None:
        """Somebody else listens; an earlier alarm than all the others is news to the world."""
        until = party.until
        if self._listener and until is not None and (self._until is None or until < self._until):
            self._world.wake()
        party.rest = asyncio.get_running_loop().create_future()
        try:
            await party.rest
        finally:
            party.rest = None
            self._called.discard(party)

    def _route(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            if isinstance(fact, Due):
                continue
            owner = self._watching.get(fact.ticket)
            if owner is None:
                owner = self._asking.pop(fact.ticket, None)
            elif isinstance(fact, Ended):
                del self._watching[fact.ticket]
            if owner is not None:
                owner.inbox.append(fact)
                self._call(owner)

    def _call(self, party: Party) -> None:
        if party.rest is not None and not party.rest.done():
            party.rest.set_result(None)
            self._called.add(party)

    def _earliest(self) -> Ms | None:
        """The first moment that somebody waits for."""
        while self._alarms:
            moment, _, party = self._alarms[0]
            if party.until == moment and party in self._waiting:
                return moment
            self._next_alarm()
        return None

    def _next_alarm(self) -> Party:
        moment, _, party = heapq.heappop(self._alarms)
        if party.rings == moment:
            party.rings = None
        return party


class Party:
    """One caller of a world. What is not a method here is the exchange's."""

    def __init__(self, exchange: Exchange) -> None:
        self.inbox: list[Fact] = []
        self.until: Ms | None = None
        self.rings: Ms | None = None
        self.rest: asyncio.Future[None] | None = None
        self.is_woken = False
        self.now = exchange.now
        self._exchange = exchange

    def submit(
        self,
        request: Request,
        *,
        cluster: str = "",
        identity: Identity | None = None,
        urgent: bool = False,
        until: Ms | None = None,
    ) -> Ticket:
        """Send a request; the facts that come of it carry this ticket."""
        ticket = self._exchange.next_ticket()
        call = Call(
            ticket=ticket,
            request=request,
            cluster=cluster,
            identity=identity,
            urgent=urgent,
            until=until,
        )
        self._exchange.send(self, call)
        return ticket

    def cancel(self, ticket: Ticket) -> bool:
        """Forget a call or end a watch: no fact of it follows. True: it was certainly not sent."""
        if self.inbox:
            self.inbox = [one for one in self.inbox if isinstance(one, Due) or one.ticket != ticket]
        return self._exchange.withdraw(ticket)

    async def wait(self, until: Ms | None) -> tuple[Fact, ...]:
        """The only pause: facts as soon as there are any; none when `until` comes, or `wake`."""
        if not self.inbox:
            self.until, self.is_woken = until, False
            await self._exchange.attend(self)
        facts, self.inbox = tuple(self.inbox), []
        return facts

    def wake(self) -> None:
        """Let a wait that is pending end now."""
        self.is_woken = True
        self._exchange.wake(self)

    def is_due(self, now: Ms) -> bool:
        """Whether there is something to do."""
        return bool(self.inbox) or self.is_woken or (self.until is not None and self.until <= now)

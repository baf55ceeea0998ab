"""A world wrapped with courier and mirrors: the same methods, kept promises.

Calls go when the courier lets them and come back when they are settled. A watch is kept whole by a
mirror: it tells what is there, is answered once that is complete, and then tells every change,
over lost streams and expired versions. Worlds send once.
"""

from __future__ import annotations

import msgspec
from msgspec import structs

from tidegate.model.moment import Ms
from tidegate.world import facts
from tidegate.world.calls import Call, List, Selection, Ticket, Watch
from tidegate.world.courier import DEFAULT_PATIENCE, Courier, Patience
from tidegate.world.mirror import QUIET, Mirror, MirrorTurn
from tidegate.world.protocol import World


class _Reflection(msgspec.Struct):
    """A mirror at work: for which call, and under which ticket the world knows its stream."""

    mirror: Mirror
    call: Call
    within: tuple[str, ...]
    stream: Ticket | None = None
    whole: bool = False


class _Watching(msgspec.Struct):
    """What a caller's watch consists of: one mirror, or one for each namespace it may see."""

    parts: list[_Reflection] = msgspec.field(default_factory=list)
    answered: bool = False

    def is_whole(self) -> bool:
        return all(part.whole for part in self.parts)


class Line:
    """What stands above a world, once."""

    def __init__(
        self,
        world: World,
        *,
        seed: int = 0,
        patience: Patience = DEFAULT_PATIENCE,
        quiet: Ms = QUIET,
    ) -> None:
        self._world = world
        self._seed = seed
        self._quiet = quiet
        self._courier = Courier(seed=seed, patience=patience)
        self._watchings: dict[Ticket, _Watching] = {}
        self._reflections: dict[Ticket, _Reflection] = {}
        self._last = 0
        self._alarm: Ms | None = None
        """No mirror's alarm is earlier; once it has come, they are all looked at."""
        self._told: list[facts.Fact] = []
        self._is_woken = False

    def now(self) -> Ms:
        return self._world.now()

    def submit(self, call: Call) -> None:
        now = self.now()
        if isinstance(call.request, Watch):
            self._watchings[call.ticket] = _Watching()
            watch = call.request
            self._reflect(call, watch.selection, watch.since, watch.within)
        else:
            self._courier.accept(call, now)
        self._release(now)
        if self._told:
            self._world.wake()

    def cancel(self, ticket: Ticket) -> bool:
        self._told = [fact for fact in self._told if getattr(fact, "ticket", None) != ticket]
        if self._drop_watch(ticket):
            return True
        with_world, maybe_sent = self._courier.withdraw(ticket)
        unsent = self._world.cancel(ticket) if with_world else True
        self._release(self.now())
        return unsent and not maybe_sent

    async def wait(self, until: Ms | None) -> tuple[facts.Fact, ...]:
        self._is_woken = False
        self._ring(self.now())
        while not self._told and not self._is_woken:
            for fact in await self._world.wait(self._earliest(until)):
                self._take(fact, self.now())
            self._ring(self.now())
            if until is not None and self.now() >= until:
                break
        told, self._told = tuple(self._told), []
        return told or (facts.Due(),)

    def wake(self) -> None:
        self._is_woken = True
        self._world.wake()

    def _drop_watch(self, ticket: Ticket) -> bool:
        watching = self._watchings.pop(ticket, None)
        for part in watching.parts if watching else ():
            self._stop(part)
        return watching is not None

    def _earliest(self, until: Ms | None) -> Ms | None:
        return _first(until, _first(self._courier.alarm(), self._alarm))

    def _ring(self, now: Ms) -> None:
        if self._alarm is not None and self._alarm <= now:
            self._alarm = None
            for watching in [*self._watchings.values()]:
                for part in [*watching.parts]:
                    self._turn(part, part.mirror.due(now), now)
        self._release(now)

    def _release(self, now: Ms) -> None:
        for call in self._courier.release(now):
            self._world.submit(call)
        self._told += [facts.Answer(ticket, lost) for ticket, lost in self._courier.late()]

    def _take(self, fact: facts.Fact, now: Ms) -> None:
        match fact:
            case facts.Answer():
                self._answer(fact, now)
            case facts.Changed() if part := self._reflections.get(fact.ticket):
                self._turn(part, part.mirror.changed(fact.change, fact.live, now), now)
            case facts.Bookmark() if part := self._reflections.get(fact.ticket):
                self._turn(part, part.mirror.bookmarked(fact.version, now), now)
            case facts.Ended() if part := self._reflections.pop(fact.ticket, None):
                part.stream = None
                self._turn(part, part.mirror.ended(fact.outcome, now), now)
            case _:
                pass

    def _answer(self, fact: facts.Answer, now: Ms) -> None:
        outcome = self._courier.answered(fact.ticket, fact.outcome, now)
        if outcome is not None:
            part = self._reflections.pop(fact.ticket, None)
            if part is None:
                self._told.append(facts.Answer(fact.ticket, outcome))
            else:
                part.stream = None
                self._turn(part, part.mirror.listed(outcome, now), now)
        self._release(now)

    def _reflect(
        self, call: Call, selection: Selection, since: str, within: tuple[str, ...]
    ) -> None:
        mirror = Mirror(call.ticket, selection, since=since, seed=self._seed, quiet=self._quiet)
        part = _Reflection(mirror, call, within)
        self._watchings[call.ticket].parts.append(part)
        now = self.now()
        self._turn(part, mirror.begin(now), now)
        if since:
            self._complete(part, since)

    def _turn(self, part: _Reflection, turn: MirrorTurn, now: Ms) -> None:
        if turn.hang_up:
            self._stop(part)
        self._told.extend(turn.changes)
        if turn.send is not None:
            self._send(part, turn.send, now)
        if turn.refused is not None:
            self._refuse(part, turn.refused)
        elif turn.whole_at:
            self._complete(part, turn.whole_at)
        self._alarm = _first(self._alarm, part.mirror.alarm)

    def _send(self, part: _Reflection, request: List | Watch, now: Ms) -> None:
        self._last -= 1
        part.stream = Ticket(self._last)
        self._reflections[part.stream] = part
        call = Call(
            ticket=part.stream,
            request=request,
            cluster=part.call.cluster,
            identity=part.call.identity,
            urgent=part.call.urgent,
        )
        if isinstance(request, List):
            self._courier.accept(call, now)
            self._release(now)
        else:
            self._world.submit(call)

    def _complete(self, part: _Reflection, version: str) -> None:
        part.whole = True
        watching = self._watchings[part.call.ticket]
        if not watching.answered and watching.is_whole():
            watching.answered = True
            self._told.append(facts.Answer(part.call.ticket, facts.Listed((), version)))

    def _refuse(self, part: _Reflection, refused: facts.Refusal) -> None:
        ticket = part.call.ticket
        watching = self._watchings[ticket]
        watching.parts.remove(part)
        if isinstance(refused, facts.Forbidden) and part.within:
            selections = [
                structs.replace(part.mirror.selection, namespace=name) for name in part.within
            ]
            for selection in selections:
                self._reflect(part.call, selection, "", ())
            return
        self._drop_watch(ticket)
        self._told.append(facts.Ended(ticket, refused))

    def _stop(self, part: _Reflection) -> None:
        if part.stream is None:
            return
        self._reflections.pop(part.stream, None)
        self._courier.withdraw(part.stream)
        self._world.cancel(part.stream)
        part.stream = None


def _first(one: Ms | None, other: Ms | None) -> Ms | None:
    """The earlier of two moments that may never come."""
    return other if one is None else one if other is None else min(one, other)

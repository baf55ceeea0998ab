"""A unit in our keeping: taken by its record, for as long as our heartbeat goes on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from tidegate.engine.heartbeat import Wish
from tidegate.engine.neighbours import Keeping, Neighbour
from tidegate.engine.reach.errands import Errand, Pause
from tidegate.engine.reach.hooks import free
from tidegate.engine.record import LASTING, Now, Record
from tidegate.errors import ClusterError, Place
from tidegate.model.event import Told
from tidegate.model.moment import MINUTE, SECOND, Ms
from tidegate.model.objects import Ref, Spot
from tidegate.model.unit import UnitId
from tidegate.world.facts import Forbidden, Outcome, is_refusal
from tidegate.world.refusals import refusal_error

FLUSHES = Ms(1 * SECOND)
"""How often at most a journal is written while a rollout runs."""
SETTLES = Ms(50)
"""How long one writer of a record waits for another, before it looks again."""
CLOSES = Ms(1 * MINUTE)
"""How long troubles of a cluster may keep us from letting a unit go."""
Tell = Callable[[Told, UnitId, str], None]
"""Says something of a unit, with a sentence."""


def told_takeover(unit: UnitId) -> str:
    return f"another rollout of `{unit}` takes over"


class OvertakenError(ClusterError):
    """Somebody else brought another plan of a unit while we were away."""

    exit_code = 6


class UnitHold(msgspec.Struct):
    """What the rollout of one unit keeps in its cluster."""

    unit: UnitId
    record: Record
    keeping: Keeping
    plan: str
    tell: Tell
    text: str = ""
    """The digest of what the unit is to become."""
    source: str = ""
    """Where that lies."""
    refs: dict[Ref, None] = msgspec.field(default_factory=dict)
    """The objects that may be written, in the order in which they became known."""
    hooks: set[Ref] = msgspec.field(default_factory=set)
    """Those of the present plan."""
    begun: Ms | None = None
    looked: int = 0
    """The epoch of the record in which its objects were looked at last."""
    busy: bool = False
    """Its record is being taken or written."""
    asked_to_go: Wish | None = None
    """What somebody else with another plan wants."""
    tried: bool = False
    """Its record may say that we hold it."""
    wanted: bool = False
    """A step of it could begin: whoever else has it is asked, also for the same plan."""
    leaving: bool = False
    """It is being let go of: nobody waits for it meanwhile."""
    _life: int = -1
    """The life of our heartbeat in which it was taken."""
    _told: str = ""
    """The plan that the record names since we wrote it last."""
    _enters: bool = False
    """It has its slot: the journal is to say so before anything is written."""
    _counted: tuple[int, str, bool] = (0, "", False)
    """So many of these does the journal name, the text it speaks of, and whether it has a slot."""
    _has_counted: bool = False
    """The record has named our objects in this rollout."""
    _said: str = ""
    """What was told of our waiting."""

    def intend(self, text: str) -> None:
        """Bring another text from now on."""
        if text != self.text:
            self.text, self.hooks, self.begun, self._enters = text, set(), None, False

    def enter(self) -> None:
        """Have who comes after us know that the unit has one of its group's slots."""
        self._enters = True

    def begin(self, now: Ms) -> Ms:
        """When the rollout of this text began: now, unless one is taken up again.

        Names are made of it, so the journal gets to know the same moment.
        """
        self.begun = self.record.begun(self.text, now)
        return self.begun

    @property
    def is_ours(self) -> bool:
        """Whether nobody can have taken it from us, though we may not write at the moment."""
        return self._life == self.keeping.heartbeat.life and self.record.is_ours

    def is_taken(self, now: Ms) -> bool:
        """Whether its objects may be written."""
        is_good = self.is_ours and not self.leaving and self.keeping.heartbeat.is_good(now)
        return is_good and self._counted == self._countable

    @property
    def _countable(self) -> tuple[int, str, bool]:
        return len(self.refs), self.text, self._enters

    def take(self, now: Now) -> Errand[None]:
        """Hold the unit, and count its objects as its own before they are written.

        Another process that holds it is waited for, unless we let go of it meanwhile.
        """
        while self.busy or self.leaving:
            yield Pause(Ms(now() + SETTLES))
        self.busy = True
        try:
            yield from self._take(now)
            self.wanted = self.wanted and not self.is_taken(now())
        finally:
            self.busy = False

    def _take(self, now: Now) -> Errand[None]:
        while not self.leaving and not self.is_taken(now()):
            yield from self.be_alive(now)
            if self.is_ours:
                yield from self._free_earlier(now)
                yield from self._bear((yield from self._count(now)), "writing", now)
                continue
            if self._life >= 0:
                yield from self._bear((yield from self.record.read(now)), "reading", now)
            yield from self._await_holder(now)
            if not self.leaving:
                yield from self._seize(now)

    def be_alive(self, now: Now) -> Errand[None]:
        """Have our heartbeat go on before anything is taken by it."""
        refused = yield from self.keeping.heartbeat.begin(now)
        if refused is not None:
            raise refusal_error(refused, "taking the lease", where=self._place)

    def _seize(self, now: Now) -> Errand[None]:
        """Make the record ours, over what we know of it."""
        heartbeat, record = self.keeping.heartbeat, self.record
        life, known, self._counted = heartbeat.life, record.epoch, (0, "", False)
        record.claim(heartbeat.holder)
        self.tried = True
        if record.is_large(self.refs) or record.earlier_hooks(self.text):
            refused = yield from record.write_claim(now)
        else:
            refused = yield from self._count(now)
        if record.is_ours:
            self._life, self._told = life, record.plan
            self._say("")
        elif record.epoch == known:
            yield from self._bear(refused, "writing", now)

    def _count(self, now: Now) -> Errand[Outcome | None]:
        known = self._countable
        begun = now() if self.begun is None else self.begun
        if self._enters:
            self.record.enter(self.text)
        self.record.expect(
            self.plan,
            self.refs,
            text=self.text,
            source=self.source,
            now=begun,
            goes_on=self._has_counted or self.looked != self.record.epoch,
        )
        refused = yield from self.record.write(now)
        if refused is None:
            self._has_counted = True
            self._counted, self._told = known, self.record.plan
        return refused

    def _await_holder(self, now: Now) -> Errand[None]:
        """Wait until nobody else holds the unit. Whoever did may have written until then."""
        record, keeping = self.record, self.keeping
        while (holder := record.holder) not in ("", keeping.heartbeat.holder):
            self._refuse_overtaken()
            if self.leaving or keeping.neighbours.is_dead(holder, record.seen_at):
                break
            keeping.waiting[record.unit] = record
            try:
                seen = yield from keeping.look(record, now)
                if seen is not None and seen.dead_at is None and not self.leaving:
                    yield from self._urge(seen)
            finally:
                keeping.waiting.pop(record.unit, None)
        self._refuse_overtaken()
        record.epoch += holder != "" and not record.is_ours

    def _urge(self, seen: Neighbour) -> Errand[None]:
        """Have the holder know that we wait, where that helps, and everybody else.

        One with another plan is to give way, whoever asks for that. One with the same plan is asked
        when a step could begin: it lets go of a unit in which it only waits, as we do.
        """
        record, name = self.record, self.record.ref.name
        is_rival, asked = record.plan != self.plan, seen.asked.get(name)
        was_asked = asked is not None and (not is_rival or asked.plan != record.sign(record.plan))
        if (is_rival or self.wanted) and not was_asked:
            if is_rival:
                self.keeping.rivals.ask(record.holder)
            wish = Wish(record.turn, record.sign(self.plan), self.keeping.heartbeat.holder)
            (answer,) = yield (self.keeping.neighbours.ask_to_go(record.holder, name, wish),)
            if isinstance(answer, Forbidden):
                raise refusal_error(answer, "asking for the unit", where=self._place)
            was_asked = not is_refusal(answer)
        since = datetime.fromtimestamp(seen.first // SECOND, UTC)
        asked_to = ", and was asked to give way" if is_rival and was_asked else ""
        self._say(f"`{record.holder}` holds it, as we see since {since:%H:%M:%S} UTC{asked_to}")

    def _say(self, sentence: str) -> None:
        """Tell what we wait for, once; and that we go on, if we have waited."""
        if sentence != self._said:
            self._said = sentence
            told = Told.UNIT_WAITING if sentence else Told.UNIT_TAKEN
            self.tell(told, self.unit, sentence)

    def _free_earlier(self, now: Now) -> Errand[None]:
        """Let go of hooks of a rollout that did not come to its end."""
        refs = (ref for ref in self.record.earlier_hooks(self.text) if ref not in self.hooks)
        yield from free([Spot(self.record.cluster, ref) for ref in refs], now)

    def _bear(self, refused: Outcome | None, deed: str, now: Now) -> Errand[None]:
        """Wait until a trouble of the cluster is over; one with what was asked is an error."""
        if isinstance(refused, LASTING):
            raise refusal_error(refused, f"{deed} the journal", where=self._place)
        if refused is not None:
            yield Pause(Ms(now() + FLUSHES))

    def flush(self, now: Now) -> Errand[Outcome | None]:
        """Write the journal if it is ours; what is refused is tried again with the next flush."""
        while self.busy:
            yield Pause(Ms(now() + SETTLES))
        if not self.record.is_ours:
            return None
        self.busy = True
        refused = yield from self.record.write(now)
        self.busy = False
        return refused

    def settle(self, now: Now) -> Errand[None]:
        """Write the journal until all of it is written, for as long as the record is ours."""
        while self.record.is_ours:
            refused = yield from self.flush(now)
            if refused is None:
                return
            yield from self._bear(refused, "writing", now)

    def close(self, now: Now, *, lends: bool = False) -> Errand[None]:
        """Write what is not written yet and let go, with one write.

        That is safe though our time may be up: if somebody took the unit, nothing is written.
        `lends`: we come back to it, and know what has been done of our text until then.
        """
        self.leaving, self.wanted = True, False
        while self.busy:
            yield Pause(Ms(now() + SETTLES))
        ends = now() + CLOSES
        if self.tried and not self.record.is_ours:
            yield from self.record.read(now)
        while self.tried and self.record.is_ours and now() < ends:
            self.record.release()
            refused = yield from self.flush(now)
            if refused is None:
                break
            yield from self._bear(refused, "writing", now)
        self.tried, self.leaving, self._life = False, False, -1
        self._has_counted = self._has_counted and lends

    def drop_errands(self) -> None:
        """Whoever was writing here was withdrawn."""
        self.busy = self.leaving = False

    @property
    def _place(self) -> Place:
        return Place(f"unit {self.record.unit}")

    def _refuse_overtaken(self) -> None:
        """Who was away while another plan was brought leaves the unit alone: that is the newer.

        So does who gave way to its holder somewhere else.
        """
        record = self.record
        if self.keeping.rivals.has_yielded(record.holder) and record.plan != self.plan:
            raise OvertakenError("cluster.overtaken", told_takeover(self.unit), where=self._place)
        was_there = self._life < 0 and not record.was_away
        if was_there or record.plan in ("", self.plan, self._told):
            return
        problem = f"another rollout of `{record.unit}` took over while this one was cut off"
        hint = "see what it did, then run this command again"
        raise OvertakenError("cluster.overtaken", problem, where=self._place, hint=hint)

"""A unit in the cluster's keeping: its lease and its journal, and when each wants a write."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.engine.journal import Keeper
from tidegate.engine.lease import LASTS, MARGIN, RENEWS, Lease, Now
from tidegate.engine.reach.errands import Errand, Pause
from tidegate.engine.reach.hooks import free
from tidegate.errors import ClusterError, Place
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Ref, Spot
from tidegate.world.facts import Failed, Lost, Outcome, Throttled, is_refusal
from tidegate.world.refusals import refusal_error

FLUSHES = Ms(1 * SECOND)
"""How often at most the journal is written while a rollout runs."""
SETTLES = Ms(50)
"""How long one writer of a journal waits for another, before it looks again."""
PASSING = Lost | Throttled | Failed
"""Troubles of a cluster, and not with what was asked of it."""


@dataclass(slots=True)
class Hold:
    """What the rollout of one unit keeps in its cluster."""

    lease: Lease
    keeper: Keeper
    refs: dict[Ref, None] = field(default_factory=dict)
    """The objects that may be written, in the order in which they became known."""
    hooks: set[Ref] = field(default_factory=set)
    """Those of the present plan."""
    text: str = ""
    """The digest of what the unit is to become."""
    begun: Ms | None = None
    flushed: Ms = Ms(0)
    flushing: bool = False
    renewing: bool = False
    taking: bool = False
    epoch: int = 0
    """How often somebody else may have been at work since we knew what is there."""
    counted: tuple[int, str] = (0, "")
    """So many of these does the journal name, and this is the text it speaks of."""

    def intend(self, text: str) -> None:
        """Bring another text from now on."""
        if text != self.text:
            self.text, self.hooks, self.begun = text, set(), None

    def begin(self, now: Ms) -> Ms:
        """When the rollout of this text began: now, unless one is taken up again.

        Names are made of it, so the journal gets to know the same moment.
        """
        self.begun = self.keeper.begun(self.text, now)
        return self.begun

    def load(self) -> Errand[None]:
        self._check((yield from self.keeper.load()), "reading")

    def take(self, now: Now) -> Errand[None]:
        """Hold the unit, and count its objects as its own before they are written."""
        while self.taking:
            yield Pause(Ms(now() + SETTLES))
        self.taking = True
        while not self.is_taken(now()):
            if not self.lease.is_good(now()):
                yield from self._acquire(now)
            yield from self._free_earlier(now)
            known = (len(self.refs), self.text)
            begun = now() if self.begun is None else self.begun
            self.keeper.expect(self.lease.plan, self.refs, text=self.text, now=begun)
            refused = yield from self._write(now)
            if refused is None:
                self.counted = known
            else:
                yield from self._bear(refused, "writing", now)
        self.taking = False

    def _free_earlier(self, now: Now) -> Errand[None]:
        """Let go of hooks of a rollout that did not come to its end."""
        refs = (ref for ref in self.keeper.earlier_hooks(self.text) if ref not in self.hooks)
        yield from free([Spot(self.lease.cluster, ref) for ref in refs], now)

    def is_taken(self, now: Ms) -> bool:
        return self.lease.is_good(now) and self.counted == (len(self.refs), self.text)

    def _acquire(self, now: Now) -> Errand[None]:
        """What was ours may be somebody else's by now, and the journal with it."""
        self.lease.held, self.lease.contested, self.counted = False, False, (0, "")
        refused = yield from self.lease.acquire(now)
        if refused is not None:
            raise refusal_error(refused, "taking the lease", where=self._place)
        if not self.lease.held:
            raise self._overtaken()
        known = self.keeper.news
        while (unread := (yield from self.keeper.load())) is not None:
            yield from self._bear(unread, "reading", now)
        # Who came and went since we looked has left the lease as if nobody had been there.
        self.epoch += self.lease.contested or self.keeper.news != known

    def _bear(self, refused: Outcome, deed: str, now: Now) -> Errand[None]:
        """Wait until a trouble of the cluster is over; one with what was asked is an error."""
        if not isinstance(refused, PASSING):
            self._check(refused, deed)
        yield Pause(Ms(now() + FLUSHES))

    def is_renewal_due(self, now: Ms) -> bool:
        return self.lease.held and not self.renewing and now >= self.lease.renewed + RENEWS

    def renew(self, now: Now) -> Errand[None]:
        self.renewing = True
        yield from self.lease.renew(now)
        self.renewing = False

    def is_flush_due(self, now: Ms) -> bool:
        return self._wants_flush and now >= self.flushed + FLUSHES

    @property
    def _wants_flush(self) -> bool:
        """Whoever takes the unit must first read what somebody else may have written."""
        is_free = not self.flushing and not self.taking
        return is_free and self.lease.held and self.keeper.is_dirty

    def flush(self, now: Now) -> Errand[Outcome | None]:
        """Write the journal if it is ours; what is refused is tried again with the next flush."""
        while self.taking:
            yield Pause(Ms(now() + SETTLES))
        return (yield from self._write(now)) if self.lease.is_good(now()) else None

    def _write(self, now: Now) -> Errand[Outcome | None]:
        while self.flushing:
            yield Pause(Ms(now() + SETTLES))
        self.flushing, self.flushed = True, now()
        refused = yield from self.keeper.store()
        self.flushing = False
        return refused

    def settle(self, now: Now) -> Errand[None]:
        """Write the journal until all of it is written, for as long as the unit is ours."""
        while self.lease.is_good(now()):
            refused = yield from self.flush(now)
            if refused is None:
                return
            yield from self._bear(refused, "writing", now)

    def close(self, now: Now) -> Errand[None]:
        """Write what is not written yet, and let go, which a renewal on its way would undo."""
        yield from self.settle(now)
        if self.keeper.is_dirty or self.flushing:
            # Its time was up; nobody may have taken it yet.
            self.lease.held = False
            yield from self.lease.regain(now)
            yield from self.settle(now)
        while self.renewing:
            yield Pause(Ms(now() + SETTLES))
        yield from self.lease.release(now)

    def drop_errands(self) -> None:
        """Whoever was writing here was withdrawn."""
        self.flushing = self.renewing = self.taking = False

    @property
    def ends(self) -> Ms:
        """When writing must stop unless the lease is renewed before."""
        return Ms(self.lease.renewed + LASTS - MARGIN)

    @property
    def alarm(self) -> Ms | None:
        if not self.lease.held:
            return None
        renewal = self.ends if self.renewing else Ms(self.lease.renewed + RENEWS)
        if self._wants_flush:
            return min(renewal, Ms(self.flushed + FLUSHES))
        return renewal

    @property
    def _place(self) -> Place:
        return Place(f"unit {self.lease.unit}")

    def _check(self, refused: Outcome | None, deed: str) -> None:
        if refused is not None and is_refusal(refused):
            raise refusal_error(refused, f"{deed} the journal", where=self._place)

    def _overtaken(self) -> ClusterError:
        problem = f"another rollout of `{self.lease.unit}` took over while this one was cut off"
        hint = "see what it did, then run this command again"
        return ClusterError("cluster.overtaken", problem, where=self._place, hint=hint)

"""A unit in the cluster's keeping: its lease and its journal, and when each wants a write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.engine.journal import Keeper
from tidegate.engine.lease import LASTS, MARGIN, RENEWS, Lease, Now
from tidegate.engine.reach.errands import Errand
from tidegate.errors import ClusterError, Place
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Ref
from tidegate.world.facts import Outcome, is_refusal
from tidegate.world.refusals import refusal_error

FLUSHES = Ms(1 * SECOND)
"""How often at most the journal is written while a rollout runs."""


@dataclass(slots=True)
class Hold:
    """What the rollout of one unit keeps in its cluster."""

    lease: Lease
    keeper: Keeper
    flushed: Ms = Ms(0)
    flushing: bool = False
    renewing: bool = False
    counted: bool = False
    """The journal names all objects that may be written."""

    def load(self) -> Errand[None]:
        self._check((yield from self.keeper.load()), "reading")

    def take(self, now: Now, refs: Iterable[Ref]) -> Errand[None]:
        """Hold the unit, and count these objects as its own before they are written."""
        wanted = tuple(refs)
        while not (self.lease.held and self.counted):
            refused = yield from self.lease.acquire(now)
            if refused is not None:
                raise refusal_error(refused, "taking the lease", where=self._place)
            if not self.lease.held:
                raise self._overtaken()
            yield from self.load()
            self.keeper.expect(self.lease.plan, wanted)
            stored = yield from self.keeper.store()
            self.counted = stored is None
            if self.lease.held:
                self._check(stored, "writing")
        self.flushed = now()

    def is_renewal_due(self, now: Ms) -> bool:
        return self.lease.held and not self.renewing and now >= self.lease.renewed + RENEWS

    def renew(self, now: Now) -> Errand[None]:
        self.renewing = True
        yield from self.lease.renew(now)
        self.renewing = False

    def is_flush_due(self, now: Ms) -> bool:
        wants = self.keeper.is_dirty and self.lease.held and not self.flushing
        return wants and now >= self.flushed + FLUSHES

    def flush(self, now: Ms) -> Errand[None]:
        """Write the journal; what is refused now is tried again with the next flush."""
        self.flushing, self.flushed = True, now
        yield from self.keeper.store()
        self.flushing = False

    def close(self, now: Now) -> Errand[None]:
        """Write what is not written yet, and let go."""
        if not self.lease.held:
            return
        if self.keeper.is_dirty:
            self._check((yield from self.keeper.store()), "writing")
        yield from self.lease.release(now)

    @property
    def ends(self) -> Ms:
        """When writing must stop unless the lease is renewed before."""
        return Ms(self.lease.renewed + LASTS - MARGIN)

    @property
    def alarm(self) -> Ms | None:
        if not self.lease.held:
            return None
        renewal = self.ends if self.renewing else Ms(self.lease.renewed + RENEWS)
        if self.keeper.is_dirty and not self.flushing:
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

"""Whether steps came one after another, by what a cluster has written down of their objects.

All moments are whole seconds of the cluster's clock, so that two in one second decide nothing. Of
an object that changes only the last change is known: what has turned since the rollout does not
speak of it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Spot
from tidegate.model.plan import AWAITED, Deed
from tidegate.model.proof import OrderPair, PairState, Sighting, Witness
from tidegate.model.run import RunHead, RunObject, RunStep
from tidegate.model.unit import UnitId

WRITTEN = frozenset({Deed.APPLY, Deed.CREATE})
WAITED_FOR = (WRITTEN | AWAITED) - {Deed.AWAIT_ABSENT}


class Lookout(msgspec.Struct, frozen=True, kw_only=True):
    """What is known around an order.

    `sightings`: objects as the cluster has them. `begun`: when the rollout of a unit began that is
    looked at; None where that is not known. `passed`: by step, when its gate opened by the record.
    `is_own`: an object only says what a unit is, and is as well as what that brings.
    """

    sightings: Mapping[Spot, Sighting]
    begun: Callable[[UnitId], Ms | None]
    passed: Mapping[str, Ms] | None = None
    is_own: Callable[[RunObject], bool] = lambda _: False


class _Ready(msgspec.Struct, frozen=True):
    """Of a step, the last moment that stands, and the last of those that may have come again."""

    fixed: Witness | None = None
    turning: Witness | None = None

    def with_more(self, other: _Ready) -> _Ready:
        return _Ready(later(self.fixed, other.fixed), later(self.turning, other.turning))


def later(one: Witness | None, other: Witness | None) -> Witness | None:
    return max((each for each in (one, other) if each), key=lambda each: each.at, default=None)


class SeenOrder:
    """Looks at pairs of steps."""

    def __init__(self, head: RunHead, lookout: Lookout) -> None:
        self._lookout = lookout
        self._steps = {step.id: step for step in head.steps}
        self._first: dict[Spot, str] = {}
        for step in head.steps:
            for one in step.objects:
                self._first.setdefault(Spot(step.cluster, one.ref), step.id)
        before: dict[str, list[str]] = {}
        for edge in head.edges:
            before.setdefault(edge.after, []).append(edge.before)
        self._ready: dict[str, _Ready] = {}
        for step in head.steps:  # those before a joint come before it
            found = _Ready()
            for other in before.get(step.id, ()) if not step.objects else ():
                found = found.with_more(self._ready.get(other, _Ready()))
            for witness, is_fixed in self._readies(step):
                own = _Ready(fixed=witness) if is_fixed else _Ready(turning=witness)
                found = found.with_more(own)
            self._ready[step.id] = found

    def ready(self, step: str) -> Witness | None:
        """The last of a step that became ready."""
        found = self._ready.get(step, _Ready())
        return later(found.fixed, found.turning)

    def first_write(self, step: RunStep, since: Ms | None = None) -> Witness | None:
        """The first object of a step that was written, `since` a rollout began."""
        return min(self._writes(step, since), key=lambda one: one.at, default=None)

    def look(self, pair: OrderPair) -> OrderPair:
        """The pair with what the cluster says of it."""
        after, ready = self._steps[pair.after], self._ready.get(pair.before, _Ready())
        first = later(ready.fixed, ready.turning)
        if first is None:
            return _told(pair, PairState.UNPROVEN, "nothing that it waited for is there to be seen")
        since = self._since(first.unit, after.unit)
        then = self.first_write(after, since)
        if then is None:
            is_there = self.first_write(after) is not None
            return _told(pair, *(UNTOUCHED if is_there else UNSEEN), first)
        for witness, is_fixed in ((ready.fixed, True), (ready.turning, False)):
            if witness is not None and _second(then.at) < _second(witness.at):
                stands = is_fixed or self._opened(witness)
                return _told(pair, *self._judge(since, stands=stands), witness, then)
        if _second(then.at) == _second(first.at):
            return _told(pair, PairState.UNPROVEN, "both are of one second", first, then)
        return _told(pair, PairState.KEPT, "", first, then)

    def _judge(self, since: Ms | None, *, stands: bool) -> tuple[PairState, str]:
        if since is None:
            return PairState.UNPROVEN, "nothing says that they are of one rollout"
        if stands:
            return PairState.BROKEN, ""
        known = self._lookout.passed is not None
        return PairState.UNPROVEN, TURNED if known else PERHAPS_TURNED

    def _opened(self, witness: Witness) -> bool:
        """Whether the gate opened behind this moment, by the record: so it is of the rollout."""
        opened = (self._lookout.passed or {}).get(witness.step)
        return opened is not None and _second(witness.at) <= _second(opened)

    def _since(self, *units: UnitId) -> Ms | None:
        """When the later of the rollouts began that these units are of."""
        moments = [self._lookout.begun(one) for one in units]
        known = [one for one in moments if one is not None]
        return max(known) if len(known) == len(moments) else None

    def _readies(self, step: RunStep) -> Iterator[tuple[Witness, bool]]:
        for one, found in self._seen(step):
            if one.deed not in WAITED_FOR or not one.gates:
                continue
            yield self._witness(step, one, found.made), True
            if self._lookout.is_own(one):
                continue
            if found.written is not None:
                yield self._witness(step, one, found.written, "written"), False
            if found.ready is not None:
                yield self._witness(step, one, found.ready, "ready"), found.is_final

    def _writes(self, step: RunStep, since: Ms | None) -> Iterator[Witness]:
        for one, found in self._seen(step):
            is_first = self._first[Spot(step.cluster, one.ref)] == step.id
            if one.deed not in WRITTEN or not is_first:  # a namespace may be brought by several
                continue
            if since is None or _second(found.made) >= _second(since):
                yield self._witness(step, one, found.made)
            elif found.written is not None and _second(found.written) >= _second(since):
                yield self._witness(step, one, found.written, "written")

    def _seen(self, step: RunStep) -> Iterator[tuple[RunObject, Sighting]]:
        for one in step.objects:
            found = self._lookout.sightings.get(Spot(step.cluster, one.ref))
            if found is not None:
                yield one, found

    def _witness(self, step: RunStep, one: RunObject, at: Ms, what: str = "made") -> Witness:
        spot = Spot(step.cluster, one.ref)
        who = self._lookout.sightings[spot].made_by if what == "made" else ""
        return Witness(at, step.id, step.unit, spot, what, who)


UNTOUCHED = PairState.IDLE, "nothing was written behind it"
UNSEEN = PairState.UNPROVEN, "nothing that waited is there to be seen"
TURNED = "what was waited for has turned since"
PERHAPS_TURNED = "what was waited for may have turned since; a run record would tell"


def _second(moment: Ms) -> int:
    return moment // SECOND


def _told(
    pair: OrderPair,
    state: PairState,
    why: str,
    first: Witness | None = None,
    then: Witness | None = None,
) -> OrderPair:
    return msgspec.structs.replace(pair, seen=state, why=why, first=first, then=then)

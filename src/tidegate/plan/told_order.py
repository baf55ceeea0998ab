"""When steps began and passed, as a rollout told it, and whether each waited for its turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tidegate.model.event import Event, Told
from tidegate.model.moment import Ms
from tidegate.model.plan import Deed
from tidegate.model.proof import PairState
from tidegate.model.run import RunHead, RunStep

NEEDLESS = frozenset({Deed.CREATE, Deed.SKIP, Deed.LEAVE})


class ToldTimes(msgspec.Struct, frozen=True):
    """By step, when it first began and last passed.

    `early`: pairs of steps of which the second began though the first had not passed, and when.
    """

    begun: Mapping[str, Ms]
    passed: Mapping[str, Ms]
    early: Mapping[tuple[str, str], Ms]

    def judge(self, before: str, after: str) -> PairState:
        if (before, after) in self.early:
            return PairState.BROKEN
        return PairState.KEPT if after in self.begun else PairState.IDLE


def tell_steps(head: RunHead, events: Iterable[Event]) -> ToldTimes:
    """Follow a rollout event by event. A step that begins again has not passed any more."""
    events = tuple(events)
    walk = _Following(head, {event.step for event in events})
    for event in events:
        if event.told is Told.STEP_APPLYING:
            walk.begin(event.step, event.at)
        elif event.told is Told.STEP_PASSED:
            walk.passed[event.step] = event.at
    joints = {step.id: at for step in head.steps if (at := walk.passes(step.id)) is not None}
    return ToldTimes(walk.begun, joints, walk.early)


class _Following:
    """How far a rollout has come. A joint has passed when all before it have; it tells nothing.

    So does a step whose objects were there already, if that is all it asks for.
    """

    def __init__(self, head: RunHead, telling: set[str]) -> None:
        self.begun: dict[str, Ms] = {}
        self.passed: dict[str, Ms] = {}
        self.early: dict[tuple[str, str], Ms] = {}
        sparing = {unit.id for unit in head.units if unit.sparing}
        self._joints = {
            step.id
            for step in head.steps
            if step.id not in telling and may_be_cut(step, spares=step.unit in sparing)
        }
        self._through: dict[str, Ms] = {}
        self._before: dict[str, list[str]] = {}
        for edge in head.edges:
            self._before.setdefault(edge.after, []).append(edge.before)

    def begin(self, step: str, at: Ms) -> None:
        self.begun.setdefault(step, at)
        if self.passed.pop(step, None) is not None:
            self._through.clear()
        for before in self._before.get(step, ()):
            if self.passes(before) is None:
                self.early.setdefault((before, step), at)

    def passes(self, step: str) -> Ms | None:
        """When it had passed by now; asks those before a joint, the farthest first."""
        way = [step]
        while way:
            one = way[-1]
            asked = self._asked(one)
            if asked:
                way += asked
                continue
            way.pop()
            if one in self._joints and one not in self._through:
                times = [self._known(each) for each in self._before.get(one, ())]
                if None in times:
                    return None
                self._through[one] = max((at for at in times if at is not None), default=Ms(0))
        return self._known(step)

    def _asked(self, step: str) -> list[str]:
        """The joints before a joint of which nothing is known yet."""
        if step not in self._joints or step in self._through:
            return []
        before = self._before.get(step, ())
        return [one for one in before if one in self._joints and one not in self._through]

    def _known(self, step: str) -> Ms | None:
        return self._through.get(step) if step in self._joints else self.passed.get(step)


def may_be_cut(step: RunStep, *, spares: bool) -> bool:
    """Whether there may be nothing to do in it: what is there already need not be written."""
    needless = {*NEEDLESS, Deed.APPLY} if spares else NEEDLESS
    return all(one.deed in needless and not one.hook for one in step.objects)

"""An object that is deleted to be made again, and goes by itself in the same moment."""

from __future__ import annotations

import pytest

from tests.support.builders import make_job, make_plan_from
from tidegate.engine.decide import decide
from tidegate.engine.messages import (
    Apply,
    Command,
    ComparedObject,
    CompareResult,
    Delete,
    Input,
    ObjectDeleted,
    RolloutStarted,
    StepCompared,
    WriteFinished,
    WrittenObject,
)
from tidegate.engine.state.rollout import Rollout
from tidegate.model.k8s.objects import ClusterRef
from tidegate.model.rollouts.event import StepState
from tidegate.model.times import Ms

OLD = WrittenObject("old", 1, "5")
NEW = WrittenObject("new", 1, "9", changed=True)


class RecreatedStep:
    """A step whose only object, a Job, is being deleted since its text has changed."""

    def __init__(self) -> None:
        plan = make_plan_from(make_job())
        (step,) = plan.steps
        self.name, self.object_ref = step.id, ClusterRef(step.cluster, step.batches[0][0].ref)
        self.rollout = Rollout()
        self.receive(RolloutStarted(plan))
        compared = ComparedObject(self.object_ref, CompareResult.RECREATE, OLD)
        (self.deletion,) = self.receive(StepCompared(self.name, (compared,)))

    @property
    def state(self) -> StepState:
        return self.rollout.steps[self.name].state

    def receive(self, message: Input) -> tuple[Command, ...]:
        return tuple(decide(self.rollout, message, Ms(0)).commands)

    def wrote(self, outcome: WrittenObject | None) -> tuple[Command, ...]:
        return self.receive(WriteFinished(self.name, self.object_ref, outcome))


@pytest.mark.parametrize("answer", [None, OLD], ids=["it was gone", "it is going"])
def test_an_end_that_is_seen_before_the_deletion_is_answered_keeps_the_gate_shut(
    answer: WrittenObject | None,
) -> None:
    replacing = RecreatedStep()
    assert isinstance(replacing.deletion, Delete)

    early = replacing.receive(ObjectDeleted(replacing.object_ref, "old"))
    (commands,) = replacing.wrote(answer)
    before = replacing.state
    replacing.wrote(NEW)

    assert early == ()
    assert isinstance(commands, Apply)
    assert before is StepState.APPLYING
    assert replacing.state is StepState.GATING

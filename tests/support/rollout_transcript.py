"""All events of a few rollouts, as text; run as a module."""

from __future__ import annotations

import random
import sys

import msgspec

from tests.support.rollout_cases import FAULTS_END, Case, Shape
from tests.support.rollout_stages import Stage
from tidegate.sandbox.faults import CallFault, FaultSelector, Frequency, ResponseLoss

KINDS = ("ConfigMap", "Deployment", "Job")
LOSSES = CallFault(
    ResponseLoss(is_performed=True), FaultSelector(), Frequency(probability=0.1, until=FAULTS_END)
)


def a_case(seed: int) -> Case:
    """A case with every kind in every wave, and everything else by chance."""
    chance = random.Random(seed)
    units = tuple(
        tuple(
            tuple(Shape(kind, chance.choice((0, 20, 900)), 0, "well") for kind in KINDS)
            for _ in range(chance.randint(1, 3))
        )
        for _ in range(3)
    )
    return Case(units, ((), (0,), (0,)), (LOSSES,))


if __name__ == "__main__":
    for number in range(5):
        case = a_case(number)
        for event in Stage(case, seed=number).roll_out(case.plan()).run.events:
            sys.stdout.write(msgspec.json.encode(event).decode() + "\n")

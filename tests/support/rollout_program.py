"""A rollout as a program of its own, so that a test can kill it.

    python -m tests.support.rollout_program PLAN KUBECONFIG HOLDER

It reads a saved plan, runs it, and prints each event as a line of JSON.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from tidegate.clusters.connect import open_world
from tidegate.clusters.evaluator import DefaultEvaluator
from tidegate.engine.context import RolloutSettings
from tidegate.engine.driver import Driver, drive
from tidegate.health.judge import Judge
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import Event
from tidegate.plan.serialize import from_json
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.resilient import ResilientWorld

KEY = b"of the tests"


def print_event(event: Event) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
    sys.stdout.buffer.flush()


async def main(plan: Plan, kubeconfig: str, holder: str) -> str:
    async with open_world({"": None}, kubeconfig=kubeconfig) as world:
        settings = RolloutSettings(holder=holder)
        return await drive(
            Driver(
                Dispatcher(ResilientWorld(world)),
                plan,
                DefaultEvaluator(Judge.from_rows(())),
                settings,
                print_event,
            )
        )


if __name__ == "__main__":
    path, login, name = sys.argv[1:]
    plan = from_json(Path(path).read_bytes(), name=path, bodies={}, key=KEY)
    sys.exit(asyncio.run(main(plan, login, name)) != "passed")

"""A rollout that waits for one object until it is stopped, on a real screen.

Its argument says how it takes an interruption: `stops`, or `goes-on` as if it had not heard.
"""

from __future__ import annotations

import asyncio
import os
import sys

from tests.support.builders import make_config_map, make_deployment, make_plan_from
from tidegate.cli.screen.screen import Screen
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.times import Ms
from tidegate.report.rollout.summary import NextCommands

PLAN = make_plan_from(make_config_map(), make_deployment("web"), make_deployment("late"))
FIRST, SECOND, _ = PLAN.steps
SETTINGS, WEB = (step.batches[0][0].ref for step in (FIRST, SECOND))


def events() -> list[Event]:
    return [
        Event(Ms(0), EventType.ROLLOUT_STARTED),
        Event(Ms(0), EventType.STEP_CHECKING, FIRST.id),
        Event(Ms(0), EventType.STEP_APPLYING, FIRST.id),
        Event(Ms(40), EventType.OBJECT_WRITTEN, FIRST.id, SETTINGS),
        Event(Ms(40), EventType.STEP_GATING, FIRST.id),
        Event(Ms(50), EventType.GATE_OPENED, FIRST.id),
        Event(Ms(50), EventType.STEP_PASSED, FIRST.id),
        Event(Ms(50), EventType.STEP_CHECKING, SECOND.id),
        Event(Ms(50), EventType.STEP_APPLYING, SECOND.id),
        Event(Ms(60), EventType.OBJECT_WRITTEN, SECOND.id, WEB),
        Event(Ms(60), EventType.STEP_GATING, SECOND.id),
        Event(Ms(60), EventType.GATE_WAITING, SECOND.id, WEB, "Unready", "0 of 1 pods are ready"),
    ]


async def main(manner: str) -> None:
    stopped = asyncio.Event()
    moments = iter(range(1_000_000))

    def stop(reason: str) -> None:
        if manner == "stops":
            screen.emit(
                Event(Ms(2_000), EventType.ROLLOUT_FINISHED, reason="stopped", message=reason)
            )
            stopped.set()

    async with Screen.for_stream(sys.stdout, os.environ) as screen:
        screen.set_title("shop")
        screen.start(PLAN, clock=lambda: Ms(next(moments)), stop=stop)
        for event in events():
            screen.emit(event)
        await stopped.wait()
        screen.finish(commands=NextCommands(repeat="tidegate sync shop"))


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)

"""Units that are tried again with what their sources have by then: `retry.refresh`.

engine ── a unit is about to be tried again
   │
read   ── everything is found and planned anew, in the same session
   │
engine ── a newer plan supersedes this one; else the unit goes on as it was planned
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from tidegate.engine.drive import Driver, drive
from tidegate.errors import TidegateError, errors_of
from tidegate.flows.planning import Planned
from tidegate.model.moment import Ms
from tidegate.model.unit import UnitId
from tidegate.world.exchange import Exchange

ReadAgain = Callable[[], Awaitable[Planned]]
"""The plan as of now. Raises where nothing can be rolled out of what is there."""


class Refreshing(msgspec.Struct):
    """Looks for a newer plan when the engine asks. `hear` is told of one before it is begun.

    `stands`: a world whose time must not run ahead meanwhile. `untold`: what could not be read, and
    why.
    """

    read: ReadAgain
    hear: Callable[[Planned], Awaitable[None]]
    stands: Exchange | None = None
    untold: list[str] = msgspec.field(default_factory=list)
    _wanted: asyncio.Queue[UnitId] = msgspec.field(default_factory=asyncio.Queue)

    def ask(self, unit: UnitId) -> None:
        self._begin_work()
        self._wanted.put_nowait(unit)

    async def drive(self, driver: Driver, digest: str, until: Ms | None) -> str:
        """Run a rollout that begins with the plan of this digest, and answer meanwhile."""
        failure: TidegateError | None = None
        result = ""
        async with asyncio.TaskGroup() as group:
            answering = group.create_task(self._answer(driver, digest))
            try:
                result = await drive(driver, until=until)
            except TidegateError as error:  # as it is, and not in a group
                failure = error
            self._begin_work()
            answering.cancel()
        self._end_work()
        if failure is not None:
            raise failure
        return result

    async def _answer(self, driver: Driver, digest: str) -> None:
        while True:
            unit = await self._wanted.get()
            newer = await self._newest(unit)
            if newer is None or newer.plan.digest == digest:
                driver.refreshed(unit)
            else:
                await self.hear(newer)
                driver.supersede(newer.plan)
                digest = newer.plan.digest
            self._end_work()

    def _begin_work(self) -> None:
        if self.stands is not None:
            self.stands.begin_work()

    def _end_work(self) -> None:
        if self.stands is not None:
            self.stands.end_work()

    async def _newest(self, unit: UnitId) -> Planned | None:
        found: Planned | None = None
        try:
            found = await self.read()
        except* TidegateError as group:
            why = "; ".join(one.problem for one in errors_of(group))
            self.untold.append(f"`{unit}` is tried again as it was planned: {why}")
        return found

"""Units that go on with what is there by then: retries that refresh, and sets that ask late.

engine ── a unit is about to be tried again, or a set to begin or to end
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
from tidegate.engine.vocabulary import Refresh
from tidegate.errors import TidegateError, errors_of
from tidegate.flows.late_clusters import LateClusters
from tidegate.flows.late_lookups import LateLookups
from tidegate.flows.planning import Planned
from tidegate.model.moment import Ms
from tidegate.model.unit import UnitId
from tidegate.world.exchange import Exchange

ReadAgain = Callable[[], Awaitable[Planned]]
"""The plan as of now. Raises where nothing can be rolled out of what is there."""


class Refreshing(msgspec.Struct):
    """Looks for a newer plan when the engine asks. `hear` is told of one before it is begun.

    `late`: what sets have to know of clusters, where there are such; `lookups`: what releases look
    up. `stands`: a world whose time must not run ahead meanwhile. `untold`: what could not be read,
    and why.
    """

    read: ReadAgain
    hear: Callable[[Planned], Awaitable[None]]
    late: LateClusters | None = None
    lookups: LateLookups | None = None
    stands: Exchange | None = None
    untold: dict[str, None] = msgspec.field(default_factory=dict)
    _wanted: asyncio.Queue[Refresh | None] = msgspec.field(default_factory=asyncio.Queue)
    _looks: bool = False
    _is_over: bool = False

    def ask(self, wanted: Refresh) -> None:
        self._begin_work()
        self._wanted.put_nowait(wanted)

    def look(self) -> None:
        """Something has changed that sets look at."""
        if not self._looks and not self._is_over:
            self._looks = True
            self._begin_work()
            self._wanted.put_nowait(None)

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
            self._is_over = True
            answering.cancel()
        self._drop_looks()
        self._end_work()
        if failure is not None:
            raise failure
        return result

    async def _answer(self, driver: Driver, digest: str) -> None:
        while True:
            wanted = await self._wanted.get()
            try:
                digest = await self._look_for_newer(driver, digest, wanted)
            finally:
                self._end_work()

    async def _look_for_newer(self, driver: Driver, digest: str, wanted: Refresh | None) -> str:
        """Have the driver go on, with a newer plan where there is one; the digest of the plan."""
        self._looks = self._looks and wanted is not None
        lookups = self.lookups
        if wanted is not None and lookups is not None and lookups.is_first(wanted):
            return await self._look_up(driver, digest, wanted.unit, lookups)
        unit = wanted.unit if wanted is not None else None
        is_late = self.late is not None and (unit is None or unit in self.late.sets)
        newer, trouble = None, ""
        if not is_late or await self._is_news(wanted):
            newer, trouble = await self._newest()
        if newer is not None and newer.plan.digest != digest:
            await self.hear(newer)
            driver.supersede(newer.plan, newer.refused)
            return newer.plan.digest
        if trouble:
            subject = f"`{unit}`" if unit is not None else "a set"
            verb = "does not take what has come" if is_late else "is tried again as it was planned"
            self.untold[f"{subject} {verb}: {trouble}"] = None
        if unit is not None:
            driver.refreshed(unit, trouble if is_late else "")
        return digest

    async def _look_up(
        self, driver: Driver, digest: str, unit: UnitId, lookups: LateLookups
    ) -> str:
        """The same for a release that is about to begin: it must be what its templates see now."""
        newer, trouble = None, ""
        if await lookups.have_changed(unit):
            newer, trouble = await self._newest()
        trouble = trouble or lookups.unmet(unit)
        if newer is not None and newer.plan.digest != digest and not trouble:
            await self.hear(newer)
            driver.supersede(newer.plan, newer.refused)
            return newer.plan.digest
        driver.refreshed(unit, trouble)
        return digest

    async def _is_news(self, wanted: Refresh | None) -> bool:
        """Whether sets would generate something else by now, or in a simulation soon will."""
        late = self.late
        if late is None or await late.have_changed():
            return late is not None
        if wanted is None or not wanted.last or self.stands is None:
            return False
        self._drop_looks()
        self._looks = True  # whoever waits for it here hears of it
        self._end_work()
        try:
            await late.come()
        finally:
            self._begin_work()
            self._looks = False
        return await late.have_changed()

    def _drop_looks(self) -> None:
        """Nobody else wants anything: what has not been looked at need not be."""
        while not self._wanted.empty():
            self._wanted.get_nowait()
            self._end_work()

    def _begin_work(self) -> None:
        if self.stands is not None:
            self.stands.begin_work()

    def _end_work(self) -> None:
        if self.stands is not None:
            self.stands.end_work()

    async def _newest(self) -> tuple[Planned | None, str]:
        """The plan as of now, or why there is none."""
        found, why = None, ""
        try:
            found = await self.read()
        except* TidegateError as group:
            why = "; ".join(one.problem for one in errors_of(group))
            if self.late is not None:
                self.late.forget()
        return found, why

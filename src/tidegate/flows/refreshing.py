"""New plans during a rollout: for retries, ApplicationSets and Helm lookups.

engine ── a unit is about to be retried, or an ApplicationSet to start or to end
   │
replan ── the repository is loaded and planned again, in the same session
   │
engine ── a newer plan supersedes the current one; else the unit continues as planned

ApplicationSets depend on cluster Secrets, which may appear during the rollout. They are read
when the set is due, when it is about to end, and before the rollout ends; in between, a watch
reports them. Lookups of a release are repeated when it is due, since Helm renders a chart when
it releases it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from tidegate.engine.drive import Driver, drive
from tidegate.engine.vocabulary import Refresh
from tidegate.errors import TidegateError, flatten_errors
from tidegate.flows.late_clusters import NewClusters
from tidegate.flows.late_lookups import LookupRecheck
from tidegate.flows.planning import PlanResult
from tidegate.model.moment import Ms
from tidegate.model.unit import UnitId
from tidegate.world.exchange import Dispatcher

Replan = Callable[[], Awaitable[PlanResult]]
"""Returns the current plan. Raises where the current state cannot be rolled out."""


class Replanner(msgspec.Struct):
    """Makes a new plan when the engine requests one."""

    replan: Replan
    on_new_plan: Callable[[PlanResult], Awaitable[None]]
    """Receives a newer plan before it starts."""
    new_clusters: NewClusters | None = None
    """The clusters that ApplicationSets depend on, if any."""
    lookups: LookupRecheck | None = None
    """The lookups of releases, if any."""
    simulated_world: Dispatcher | None = None
    """A World whose virtual time must not advance during planning."""
    problems: dict[str, None] = msgspec.field(default_factory=dict)
    """Why new plans could not be made."""
    _requests: asyncio.Queue[Refresh | None] = msgspec.field(default_factory=asyncio.Queue)
    _is_check_queued: bool = False
    _is_stopped: bool = False

    def request(self, refresh: Refresh) -> None:
        self._start_work()
        self._requests.put_nowait(refresh)

    def check_clusters(self) -> None:
        """Queue a check after a change of cluster Secrets."""
        if not self._is_check_queued and not self._is_stopped:
            self._is_check_queued = True
            self._start_work()
            self._requests.put_nowait(None)

    async def drive(self, driver: Driver, digest: str, until: Ms | None) -> str:
        """Run a rollout that starts with the plan of this digest, and serve its requests."""
        failure: TidegateError | None = None
        result = ""
        async with asyncio.TaskGroup() as group:
            server = group.create_task(self._serve_requests(driver, digest))
            try:
                result = await drive(driver, until=until)
            except TidegateError as error:  # as it is, and not in a group
                failure = error
            self._start_work()
            self._is_stopped = True
            server.cancel()
        self._drop_checks()
        self._end_work()
        if failure is not None:
            raise failure
        return result

    async def _serve_requests(self, driver: Driver, digest: str) -> None:
        while True:
            refresh = await self._requests.get()
            try:
                digest = await self._handle_request(driver, digest, refresh)
            finally:
                self._end_work()

    async def _handle_request(self, driver: Driver, digest: str, refresh: Refresh | None) -> str:
        """Let the driver continue, with a newer plan if there is one. Return the plan's digest."""
        self._is_check_queued = self._is_check_queued and refresh is not None
        lookups = self.lookups
        if refresh is not None and lookups is not None and lookups.is_release_start(refresh):
            return await self._handle_lookup(driver, digest, refresh.unit, lookups)
        unit = refresh.unit if refresh is not None else None
        concerns_clusters = self.new_clusters is not None and (
            unit is None or unit in self.new_clusters.appsets
        )
        newer, problem = None, ""
        if not concerns_clusters or await self._have_clusters_changed(refresh):
            newer, problem = await self._make_newest()
        if newer is not None and newer.plan.digest != digest:
            await self.on_new_plan(newer)
            driver.supersede(newer.plan, newer.rejected)
            return newer.plan.digest
        if problem:
            subject = f"`{unit}`" if unit is not None else "a set"
            verb = (
                "does not take what has come"
                if concerns_clusters
                else "is tried again as it was planned"
            )
            self.problems[f"{subject} {verb}: {problem}"] = None
        if unit is not None:
            driver.finish_refresh(unit, problem if concerns_clusters else "")
        return digest

    async def _handle_lookup(
        self, driver: Driver, digest: str, unit: UnitId, lookups: LookupRecheck
    ) -> str:
        """Let a release start with what its templates see now. Return the plan's digest."""
        newer, problem = None, ""
        if await lookups.has_changed(unit):
            newer, problem = await self._make_newest()
        problem = problem or lookups.lookup_error(unit)
        if newer is not None and newer.plan.digest != digest and not problem:
            await self.on_new_plan(newer)
            driver.supersede(newer.plan, newer.rejected)
            return newer.plan.digest
        driver.finish_refresh(unit, problem)
        return digest

    async def _have_clusters_changed(self, refresh: Refresh | None) -> bool:
        """Whether ApplicationSets would generate other units now, or soon in a simulation."""
        new_clusters = self.new_clusters
        if new_clusters is None or await new_clusters.has_changed():
            return new_clusters is not None
        if refresh is None or not refresh.is_last or self.simulated_world is None:
            return False
        self._drop_checks()
        self._is_check_queued = True  # whoever waits for it here hears of it
        self._end_work()
        try:
            await new_clusters.wait_for_secrets()
        finally:
            self._start_work()
            self._is_check_queued = False
        return await new_clusters.has_changed()

    def _drop_checks(self) -> None:
        """Drop the queued checks, which no unit waits for."""
        while not self._requests.empty():
            self._requests.get_nowait()
            self._end_work()

    def _start_work(self) -> None:
        if self.simulated_world is not None:
            self.simulated_world.start_work()

    def _end_work(self) -> None:
        if self.simulated_world is not None:
            self.simulated_world.finish_work()

    async def _make_newest(self) -> tuple[PlanResult | None, str]:
        """Return the current plan, or why there is none."""
        newest, problem = None, ""
        try:
            newest = await self.replan()
        except* TidegateError as group:
            problem = "; ".join(error.problem for error in flatten_errors(group))
            if self.new_clusters is not None:
                self.new_clusters.invalidate()
        return newest, problem

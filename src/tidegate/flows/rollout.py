"""Run a plan and report it: the one place where a rollout is run, for every face."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import msgspec

from tidegate.engine.drive import Driver, drive
from tidegate.engine.reach.preflight import Preflight
from tidegate.engine.site import Settings
from tidegate.engine.vocabulary import Refresh
from tidegate.flows.beside import Company
from tidegate.flows.causes import Causes
from tidegate.flows.evidence import Background, inquire
from tidegate.flows.field_places import SourceFiles
from tidegate.flows.late_clusters import ClusterWatch, LateClusters
from tidegate.flows.late_lookups import LateLookups
from tidegate.flows.planning import Planned
from tidegate.flows.printed import PrintedLogs
from tidegate.flows.refreshing import ReadAgain, Refreshing
from tidegate.flows.releases import ReleaseBooks, make_releases
from tidegate.flows.session import Session, own_name
from tidegate.flows.statuses import Statuses, make_statuses, told_unreported
from tidegate.model.event import Event, Result
from tidegate.model.moment import Ms
from tidegate.model.plan import Plan
from tidegate.model.unit import UnitId
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.discretion import Discretion
from tidegate.report.rollout.evidence import Evidence

__all__ = ["Audience", "Preflight", "RolledOut", "Rolling", "make_driver", "roll_out"]


class Rolling(msgspec.Struct, frozen=True, kw_only=True):
    """How a rollout is run, whatever its units are.

    `left_out`: units of which nothing can be done, and why; what waits for them is left out, too.
    `pace`: seconds of the world's time that pass in one of ours; None does not wait. `within`: how
    long it may take before it is stopped cleanly. `approved`: units that wait for nobody's leave.
    `statuses`: what is said on units' own objects. `releases`: the records of Helm releases.
    `explains`: it is asked and told, meanwhile, why gates wait. `reads_logs`: what hooks and Jobs
    print is told, too. `read_again`: makes the plan of
    what is there by now; None where nobody can have changed it. `preflight`: a simulated cluster
    knows no more than the rules here, so it is asked about what they leave open only if all is
    asked about.
    """

    keeps_going: bool = False
    preflight: Preflight = Preflight.AUTO
    holder: str = ""
    left_out: Mapping[UnitId, str] = msgspec.field(default_factory=dict)
    pace: float | None = None
    within: Ms | None = None
    approved: frozenset[UnitId] = frozenset()
    statuses: Statuses | None = None
    releases: ReleaseBooks | None = None
    explains: bool = False
    reads_logs: bool = False
    read_again: ReadAgain | None = None


class Audience(Protocol):
    """Who looks on. Events come without secrets; a newer plan may take the place of the first."""

    @property
    def course(self) -> Course: ...
    def begin(
        self, plan: Plan, *, clock: Callable[[], Ms], stop: Callable[[str], None]
    ) -> None: ...
    def emit(self, event: Event) -> None: ...
    def follow(self, plan: Plan) -> None: ...


class RolledOut(msgspec.Struct, frozen=True):
    """How a rollout ended, and what is known of what failed.

    `unreported`: what could not be said on units' own objects, and why.
    """

    result: Result
    evidence: tuple[Evidence, ...] = ()
    unreported: tuple[str, ...] = ()


async def roll_out(plan: Plan, session: Session, rolling: Rolling, audience: Audience) -> RolledOut:
    """Run a plan to its end before an audience."""
    discretion, world, newest = Discretion.of(plan), session.world, plan
    files, known = SourceFiles(session.tree), session.craft.rules.known
    if rolling.releases is not None:
        rolling.releases.hear = discretion.learn

    def background() -> Background:
        return Background(
            plan=newest, catalogue=known, discretion=discretion, behind=session.behind
        )

    def tell(event: Event) -> None:
        placed = files.of_event(event) if event.field else event
        audience.emit(discretion.hide_in(placed))

    async def follow(newer: Planned) -> None:
        nonlocal newest
        newest = newer.plan
        late.follow(newest)
        discretion.learn(newest)
        audience.follow(newest)
        if rolling.statuses is not None:
            rolling.statuses.take(await make_statuses(newer, session))

    late = LateClusters(session, plan)
    refreshing = _refreshing(rolling, session, follow, late)
    company = Company(
        tell,
        [
            *([Causes(world, audience.course, background, tell)] if rolling.explains else ()),
            *([PrintedLogs(world, audience.course, tell)] if rolling.reads_logs else ()),
            *([ClusterWatch(world, late, refreshing.look)] if refreshing and late.sets else ()),
        ],
    )
    driver = make_driver(
        plan, session, rolling, company.hear, refreshing.ask if refreshing else None
    )
    audience.begin(plan, clock=world.now, stop=driver.stop)
    until = None if rolling.within is None else Ms(world.now() + rolling.within)
    story = (
        drive(driver, until=until)
        if refreshing is None
        else refreshing.drive(driver, plan.digest, until)
    )
    result = Result(await company.beside(story))
    outcome = _outcome(result, driver, audience.course)
    audience.course.is_late = outcome is Result.LATE
    evidence = await inquire(world, audience.course, background())
    unread = refreshing.untold if refreshing else []
    untold = tuple(map(discretion.hide, (*told_unreported(driver.unreported), *unread)))
    return RolledOut(outcome, evidence, untold)


def _refreshing(
    rolling: Rolling,
    session: Session,
    follow: Callable[[Planned], Awaitable[None]],
    late: LateClusters,
) -> Refreshing | None:
    """Who looks for a newer plan. Releases are entered as what was rendered last."""
    read_again = rolling.read_again
    if read_again is None:
        return None

    async def read() -> Planned:
        newer = await read_again()
        if rolling.releases is not None:
            describes = rolling.releases.describes
            rolling.releases.take(await make_releases(newer, session, describes=describes))
        return newer

    simulated, books = session.target.simulation is not None, rolling.releases
    lookups = None if books is None else LateLookups(session, lambda: books.sought)
    return Refreshing(read, follow, late, lookups, session.world if simulated else None)


def make_driver(
    plan: Plan,
    session: Session,
    rolling: Rolling,
    emit: Callable[[Event], None],
    refresher: Callable[[Refresh], None] | None = None,
) -> Driver:
    """A rollout that is not begun."""
    session.paced.keep(rolling.pace)
    is_simple = session.target.simulation is not None and rolling.preflight is Preflight.AUTO
    settings = Settings(
        holder=rolling.holder or own_name(),
        keeps_going=rolling.keeps_going,
        preflight=Preflight.LOCAL if is_simple else rolling.preflight,
        left_out=rolling.left_out,
        approved=rolling.approved,
        reporter=rolling.statuses,
        keeper=rolling.releases,
        refresher=refresher,
    )
    return Driver(session.world, plan, session.craft, settings, emit)


def _outcome(result: Result, driver: Driver, course: Course) -> Result:
    """How it ended, and for a rollout that was stopped why."""
    if _is_forbidden(course):
        return Result.FORBIDDEN
    if result is not Result.STOPPED:
        return result
    if driver.is_late:
        return Result.LATE
    return Result.OVERTAKEN if driver.is_overtaken else result


def _is_forbidden(course: Course) -> bool:
    """Whether nothing is wrong but what we may do in the cluster."""
    reasons = {remark.reason for remark in course.refused}
    return course.result == Result.INVALID and reasons == {"Forbidden"}

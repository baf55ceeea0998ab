"""`app wait`: until Applications stand as somebody wants them."""

from __future__ import annotations

from contextlib import aclosing

import msgspec

from tidegate.cli import options
from tidegate.cli.asking import in_found, pointed_of
from tidegate.cli.exits import CODES
from tidegate.cli.naming import find_families, name_units
from tidegate.cli.saying import note
from tidegate.cli.unit_options import Given
from tidegate.errors import LateError
from tidegate.flows.entering import Found
from tidegate.flows.following import each_change, places_of
from tidegate.flows.preview import NOTHING
from tidegate.flows.session import Session
from tidegate.flows.standing import UnitStanding, is_gone, narrow_standings, read_standings
from tidegate.flows.telling import explain_standings
from tidegate.model.event import Result
from tidegate.model.moment import format_duration
from tidegate.model.reading import part, text
from tidegate.model.verdict import Health
from tidegate.report.rollout.ending import wait_ending, wait_rows
from tidegate.report.rollout.rows import plain

ENDED = frozenset({"", "Succeeded", "Failed", "Error"})


class DesiredState(msgspec.Struct, frozen=True):
    """What an Application is to be like; of healths any that is wanted will do.

    `resources`: these of it alone. `gone`: it is to be deleted.
    """

    synced: bool = False
    rests: bool = False
    healths: frozenset[Health] = frozenset()
    resources: tuple[str, ...] = ()
    gone: bool = False

    @classmethod
    def of(
        cls,
        *,
        sync: bool,
        operation: bool,
        healths: frozenset[Health],
        resources: tuple[str, ...] = (),
    ) -> DesiredState:
        """What is said; where nothing is, all that `argocd app wait` waits for."""
        if not (sync or operation or healths):
            sync, operation, healths = True, True, frozenset({Health.HEALTHY})
        return cls(synced=sync, rests=operation, healths=healths, resources=resources)

    async def holds(self, one: UnitStanding, session: Session) -> bool:
        if self.gone:
            return await is_gone(one, session)
        is_well = not self.healths or one.verdict.health in self.healths
        return (one.is_synced or not self.synced) and is_well and (_rests(one) or not self.rests)

    def is_lost(self, before: Health | None, one: UnitStanding) -> bool:
        """Whether it has become Degraded while somebody waits for it to become well."""
        is_ill = one.verdict.health is Health.DEGRADED
        return is_ill and self.healths == {Health.HEALTHY} and before not in {None, Health.DEGRADED}


def _rests(one: UnitStanding) -> bool:
    """Whether no operation of a live Argo CD is under way."""
    phase = text(one.live, "status", "operationState", "phase")
    return part(one.live, "operation") is None and phase in ENDED


def wait_for(names: tuple[str, ...], wanted: DesiredState, told: Given) -> int:
    """Wait until all that are meant are so. Gives the exit code; raises where time is over."""
    kinds = ("Application",)
    families = find_families(told["place"], told)
    units = told["units"] = name_units(families, names, told["labels"], kinds, told["home"])
    known: dict[str, tuple[str, Health]] = {}

    async def ask(session: Session, found: Found) -> Result:
        places, left = await places_of(found, session), list[UnitStanding]()
        async with aclosing(each_change(places, session, told["timeout"])) as changes:
            async for _ in changes:
                standings = await read_standings(found, families, session)
                meant = [one for one in standings if one.unit.id.kind in kinds]
                meant = [one for one in meant if not units or str(one.unit.id) in units]
                meant = narrow_standings(meant, wanted.resources)
                lost = [one for one in meant if wanted.is_lost(_before(known, one), one)]
                _tell(meant, known, told["output"])
                if lost:
                    why = f"`{lost[0].unit.id}` became Degraded: {lost[0].verdict.sentence}"
                    await _explain(lost, Result.FAILED, why, session, told["output"])
                    note(why)
                    return Result.FAILED
                left = [one for one in meant if not await wanted.holds(one, session)]
                if not left:
                    return Result.PASSED
        late = _late(left, told)
        await _explain(left, Result.LATE, late.problem, session, told["output"])
        raise late

    return CODES[in_found(pointed_of(told["place"], told), told, ask)]


async def _explain(
    left: list[UnitStanding], outcome: Result, why: str, session: Session, output: str
) -> None:
    """Behind all changes, what is known of those that are not well."""
    evidence = await explain_standings(left, session)
    plan = left[0].plan if left else NOTHING
    document = wait_ending(plan, outcome, why, evidence)
    options.show(output, [document], map(plain, wait_rows(plan, evidence)))


def _before(known: dict[str, tuple[str, Health]], one: UnitStanding) -> Health | None:
    before = known.get(str(one.unit.id))
    return before[1] if before else None


def _tell(standings: list[UnitStanding], known: dict[str, tuple[str, Health]], output: str) -> None:
    """A line for each that is not as it was."""
    for one in standings:
        name, sync = str(one.unit.id), "Synced" if one.is_synced else "OutOfSync"
        if known.get(name) == (sync, one.verdict.health):
            continue
        known[name] = (sync, one.verdict.health)
        why = f": {one.verdict.sentence}" if one.verdict.sentence else ""
        line = f"{one.unit.id.namespace}/{one.unit.id.name}  {sync}  {one.verdict.health}{why}"
        document = {
            "unit": name,
            "synced": one.is_synced,
            "health": one.verdict.health.value,
            "sentence": one.verdict.sentence,
        }
        options.show(output, [document], [line])


def _late(left: list[UnitStanding], told: Given) -> LateError:
    names = ", ".join(f'"{one.unit.id.name}"' for one in left)
    span = format_duration(told["timeout"]) if told["timeout"] else "0s"
    worst = left[0] if left else None
    hint = f"{worst.unit.id}: {worst.verdict.health}, {worst.verdict.sentence}" if worst else ""
    problem = f"timed out ({span}) waiting for app {names} match desired state"
    return LateError("cluster.late", problem, hint=hint)

"""What goes on around a simulated rollout, as its scenario says: edits and commits."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import structs
from msgspec.structs import replace

from tidegate.flows.assuming import find_again
from tidegate.flows.committing import Commits
from tidegate.flows.entering import Found
from tidegate.flows.former_releases import with_formers
from tidegate.flows.healing import Healing, Sync, unmet_edits
from tidegate.flows.late_clusters import asks_late
from tidegate.flows.planning import Planned, make_plan
from tidegate.flows.pointing import Pointed
from tidegate.flows.releases import ReleaseBooks, has_releases, make_releases
from tidegate.flows.resyncing import Resyncing
from tidegate.flows.session import Session
from tidegate.flows.taking_up import Sight, TakingUp
from tidegate.flows.wiring import simulated
from tidegate.model.absence import Absence
from tidegate.model.drift import Drift
from tidegate.model.event import Event
from tidegate.model.finding import Finding
from tidegate.model.moment import Ms
from tidegate.model.plan import Because, Fragment, Plan
from tidegate.model.semantics import Semantics
from tidegate.model.unit import UnitId
from tidegate.model.uptake import Uptake

NEVER = ("units.unknown", "flux.itself", "argo.destination")
"""What keeps a unit from ever beginning."""


class Meanwhile(msgspec.Struct):
    """A simulated rollout of what is pointed at, with what others do beside it and behind it.

    `planned` is the newest plan that somebody has taken up, `found` what it was made of, `releases`
    the ledgers for it.
    """

    session: Session
    pointed: Pointed
    rules: Semantics | None
    found: Found
    planned: Planned
    commits: Commits | None
    sync: Sync
    until: Ms
    releases: ReleaseBooks
    resyncing: Resyncing
    absences: tuple[Absence, ...] = ()
    """What it leans on besides, by now."""

    async def read_again(self) -> Planned:
        """The plan of what is committed by now."""
        newer = self.commits and self.commits.pointed_at(self.pointed, self._passed)
        plan = self.planned.plan  # each try of a release is another revision
        if newer or asks_late(plan) or has_releases(plan):
            self.found, absences = await find_again(self.session, newer or self.pointed)
            planned = await make_plan(self.found.one, self.session, rules=self.rules)
            planned = await with_formers(planned, self.session)
            refused = {**unbegun(self.found, planned), **planned.refused}
            plan = _moved(planned.plan) if newer else planned.plan
            self.planned = replace(planned, plan=plan, refused=refused)
            self.absences = tuple(dict.fromkeys((*self.absences, *absences)))
        return self.planned

    @property
    def _passed(self) -> Ms:
        return Ms(self.session.world.now() - self._began)

    @property
    def _began(self) -> Ms:
        sandbox = simulated(self.session.behind)
        return sandbox.began if sandbox is not None else Ms(0)

    async def take_up(self, events: Sequence[Event]) -> tuple[Uptake, ...]:
        """What units do with each commit, one commit after another."""
        found: list[Uptake] = []
        world, simulation = self.session.world, self.session.target.simulation
        sight = Sight.of(events, self._began, simulation.seed if simulation else 0)
        for commit in self.commits.commits if self.commits else ():
            committed = Ms(self._began + commit.at)
            if committed > self.until:
                break
            party = world.party()
            while world.now() < committed:
                await party.wait(committed)
            old, newer = self.planned, await self.read_again()
            self.releases = await make_releases(newer, self.session, describes=False)
            changed = sight.changed(old, newer, committed)
            taking = TakingUp(world, self.sync, newer.plan, committed, self.until, self.resyncing)
            found += await taking.run(changed)
        return tuple(found)

    async def drifts(self, events: Sequence[Event]) -> tuple[tuple[Drift, ...], list[Finding]]:
        """What others did to objects, and who put it back; edits that came to nothing."""
        sandbox = simulated(self.session.behind)
        if sandbox is None or not (sandbox.edits or sandbox.next_edit() is not None):
            return (), []
        healing = Healing(self.planned.plan, self.session, sandbox, self.sync, self.until)
        return await healing.run(events), unmet_edits(sandbox)


def _moved(plan: Plan) -> Plan:
    """The plan of a newer revision: a unit that lies elsewhere in it is the same unit."""
    units = tuple(
        structs.replace(one, policy=structs.replace(one.policy, adopts_name=True))
        for one in plan.units
    )
    return Plan.of(Fragment(units=units, steps=plan.steps, edges=plan.edges, slots=plan.slots))


def unbegun(found: Found, planned: Planned) -> dict[UnitId, str]:
    """By unit that nobody's rules let begin, why; also those without objects that others wait for.

    What is only taken to be there comes about.
    """
    plan = planned.plan
    begun = {unit.id for unit in plan.units} - found.opaque
    awaited = {one.unit for member in found.members for one in member.unit.dependencies}
    first = {edge.before for edge in plan.edges if edge.because is Because.ROLLOUT_STEP}
    awaited |= {step.unit for step in plan.steps if step.id in first}
    unknown = {name: why for name, why in planned.faults.items() if name in awaited}
    faults = {**unknown, **found.at_fault_for(NEVER)}
    return {name: why for name, why in faults.items() if name in begun}

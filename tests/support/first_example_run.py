"""A run of `examples/first` on the sandbox: its plan, its events, its evidence."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

from tests.support.sessions import a_session
from tests.support.unit_trees import make_unit_tree
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.engine.driver import drive
from tidegate.model.plans.plan import Plan
from tidegate.model.redaction import Redactor
from tidegate.model.rollouts.causes import failing_objects
from tidegate.model.rollouts.event import Event
from tidegate.model.rollouts.evidence import Evidence
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import Ms
from tidegate.model.units.policy import Order, Policy
from tidegate.planning.preparation import prepare_plan
from tidegate.rollout.diagnosis import DiagnosisContext, collect_evidence
from tidegate.rollout.run import RolloutOptions, build_driver
from tidegate.workspace.request import unit_for_path

FIRST = Path(__file__).parents[2] / "examples" / "first"


@dataclass(frozen=True, slots=True)
class ExampleRun:
    plan: Plan
    start: Ms
    events: list[Event]
    evidence: tuple[Evidence, ...]

    def progress(self, after: float | None = None) -> RolloutProgress:
        """Return the progress after this many seconds, or at the end."""
        progress = RolloutProgress(self.start)
        progress.add_plan(self.plan)
        end = len(self.events) if after is None else self._count_events(after)
        for event in self.events[:end]:
            progress.add_event(event)
        return progress

    def moment(self, after: float) -> Ms:
        return Ms(self.start + round(after * 1_000))

    def _count_events(self, after: float) -> int:
        return bisect_right([event.at for event in self.events], self.moment(after))


async def run_first_example(*, ignores_waves: bool = False) -> ExampleRun:
    world = build_sandbox(SimulationConfig())
    session = a_session(world)
    policy = Policy(order=Order.NONE if ignores_waves else Order.WAVES)
    planned = await prepare_plan(
        [await make_unit_tree(unit_for_path(str(FIRST), policy), session)], session
    )
    plan, start, events = planned.plan, world.now(), list[Event]()
    await drive(build_driver(plan, session, RolloutOptions(holder="story"), events.append))
    progress = ExampleRun(plan, start, events, ()).progress()
    background = DiagnosisContext(plan=plan, redactor=Redactor.from_plan(plan))
    evidence = await collect_evidence(session.world, failing_objects(progress), background)
    return ExampleRun(plan, start, events, evidence)

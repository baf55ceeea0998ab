"""Rollouts on a stage: processes that run plans on one sandbox, and what is left of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tests.support.builders import make_object
from tests.support.cluster_history import Record, is_planned, is_ready, read_result
from tests.support.killable_processes import (
    Happening,
    ProcessWorld,
    SharedSandbox,
    SimulatedProcess,
    let_live,
    spin,
)
from tests.support.quick_workloads import JOB, KINDS, WorkloadTimes, nurse_of
from tests.support.rollout_cases import Case
from tests.support.rollout_hooks import HookCase
from tests.support.rollout_runs import PolicyChanges, Run, with_policy
from tidegate.clusters.evaluator import DefaultEvaluator
from tidegate.engine.context import RolloutSettings
from tidegate.engine.decide import decide
from tidegate.engine.driver import Driver
from tidegate.engine.evaluator import HistoryBackend
from tidegate.engine.messages import Command, Decision, Input
from tidegate.engine.records.storage import TIDEGATE_NAMESPACE
from tidegate.engine.state.rollout import Rollout
from tidegate.health.judge import Judge
from tidegate.model.k8s.json_fields import get_value as part_of
from tidegate.model.k8s.kinds import LEASE
from tidegate.model.k8s.objects import Json, Kind
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import Ms
from tidegate.sandbox.controllers.core import API_CONTROLLERS
from tidegate.sandbox.server.store import StoredObject
from tidegate.sandbox.world import START, Worker
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import is_error
from tidegate.world.requests import Verb, Write
from tidegate.world.resilient import ResilientWorld

CRAFT = DefaultEvaluator(Judge.from_rows(()))
PLANNED = (Kind("", "v1", "ConfigMap"), *KINDS)
DriverCall = Callable[[Driver], object]
PATIENCE = 1_800
"""Seconds that a property may take: the number of its examples is not known here."""


@dataclass
class Script:
    """All that reached `decide`, and what it made of it."""

    lines: list[tuple[Input, Ms, Decision]] = field(default_factory=list)

    def decide(self, rollout: Rollout, message: Input, now: Ms) -> Decision:
        decision = decide(rollout, message, now)
        self.lines.append((message, now, decision))
        return decision

    def ordered_after(self, message: type[Input]) -> list[Command]:
        """What was asked for once such an input was heard."""
        places = [place for place, (item, *_) in enumerate(self.lines) if isinstance(item, message)]
        later = self.lines[places[0] :] if places else []
        return [command for *_, decision in later for command in decision.commands]

    @property
    def ordered(self) -> list[Command]:
        return [command for *_, decision in self.lines for command in decision.commands]


def replayed(script: Script) -> Script:
    """What comes of everything that was heard, when it is heard again."""
    again, fresh = Script(), Rollout()
    for message, now, _ in script.lines:
        again.decide(fresh, message, now)
    return again


@dataclass
class Actor:
    """A process that runs a plan: its events, its inputs, and its life."""

    plan: Plan
    life: SimulatedProcess
    run: Run
    script: Script
    driver: Driver


@dataclass(frozen=True, kw_only=True)
class ProcessOptions:
    """How one process of a scenario behaves.

    `calls` are made at turns of its rollout, `answers` after its first event of a type.
    `changes` overrides the policies of its units. Its clock is `fast` milliseconds ahead.
    """

    holder: str = "one"
    fast: int = 0
    begins: int = 0
    dies_at: int = 0
    lands: int = 0
    calls: Mapping[int, DriverCall] = field(default_factory=dict)
    answers: Mapping[EventType, DriverCall] = field(default_factory=dict)
    changes: PolicyChanges = field(default_factory=PolicyChanges)
    keeps_going: bool = False
    keeper: HistoryBackend | None = None
    patience: Ms | None = None


PLAIN = ProcessOptions()
LIFE = "ttlSecondsAfterFinished"
NOTHING = Case((), ())


class Stage:
    """One cluster or more, and everybody who ever was at work there."""

    def __init__(
        self,
        case: Case | HookCase,
        *,
        seed: int = 0,
        workers: dict[str, Worker] | None = None,
        clusters: tuple[str, ...] = ("",),
    ) -> None:
        self.record = Record()
        controllers = (*API_CONTROLLERS, nurse_of(WorkloadTimes()), self.record.controller())
        self.realm = SharedSandbox(
            controllers, seed=seed, faults=case.faults, workers=workers, clusters=clusters
        )
        self.realm.preload([make_object("v1 Namespace", "default", namespace="")])
        self._actors = 0

    def actor(self, plan: Plan, part: ProcessOptions = PLAIN) -> Actor:
        """A process that waits for its beginning."""
        self._actors += 1
        world = ProcessWorld(self.realm, f"{self._actors}", fast=Ms(part.fast))
        run, script = Run(), Script()
        plan = with_policy(plan, **part.changes)
        going = part.keeps_going
        settings = RolloutSettings(
            holder=part.holder,
            skip_faulty_units=going,
            history_backend=part.keeper,
            cluster_patience=part.patience,
        )
        dispatcher = Dispatcher(ResilientWorld(world))
        driver = Driver(dispatcher, plan, CRAFT, settings, run.events.append, script.decide)
        begins = Ms(START + part.begins)
        rollout = _play(driver, part, run)
        life = SimulatedProcess(world, rollout, begins, part.dies_at, part.lands)
        return Actor(plan, life, run, script, driver)

    def play(self, *actors: Actor, happenings: Iterable[Happening] = ()) -> None:
        """Let these live until all are over."""
        spin(let_live(self.realm, [actor.life for actor in actors], happenings))
        self._finish(actors)

    def roll_out(
        self, plan: Plan, part: ProcessOptions = PLAIN, happenings: Iterable[Happening] = ()
    ) -> Actor:
        """One process, from its beginning to its end; what could not even begin is begun again."""
        actor = self.actor(plan, part)
        self.play(actor, happenings=happenings)
        while (error := actor.life.error) is not None:
            if actor.run.events:
                raise error
            actor = self.actor(plan, part)
            self.play(actor, happenings=happenings)
        return actor

    def delete_jobs(self) -> None:
        """Another client deletes all Jobs."""
        cluster = self.realm.clusters[""]
        for job in cluster.reader.list_objects(JOB, "default"):
            cluster.server.perform(Write(verb=Verb.DELETE, ref=job.ref))

    def delete_leases(self) -> None:
        """Another client deletes the heartbeats of all processes."""
        for cluster in self.realm.clusters.values():
            for lease in cluster.reader.list_objects(LEASE, TIDEGATE_NAMESPACE):
                cluster.server.perform(Write(verb=Verb.DELETE, ref=lease.ref))

    def objects(self) -> dict[str, Json]:
        """What the objects say, and whether they are ready."""
        return {str(item.ref): [read_result(item), is_ready(item)] for item in self.planned()}

    def texts(self) -> dict[str, Json]:
        """What those say that do not remove themselves; not everybody waits until all are ready."""
        stay = (item for item in self.planned() if part_of(item.body, "spec", LIFE) is None)
        return {str(item.ref): read_result(item) for item in stay}

    def planned(self) -> list[StoredObject]:
        views = [cluster.reader for cluster in self.realm.clusters.values()]
        there = (
            item
            for view in views
            for kind in PLANNED
            for item in view.list_objects(kind, "default")
        )
        return [item for item in there if is_planned(item)]

    def _finish(self, actors: Iterable[Actor]) -> None:
        for actor in actors:
            actor.run.result = actor.life.result


@lru_cache(maxsize=32)
def finished(plan: Plan) -> Mapping[str, Json]:
    """What is there when a plan has passed, as a server reads it."""
    cluster = Stage(NOTHING).realm.clusters[""]
    items = (item for step in plan.steps for batch in step.batches for item in batch if item.body)
    there: dict[str, Json] = {}
    for item in items:
        cluster.server.perform(
            Write(verb=Verb.APPLY, ref=item.ref, body=item.body, manager="tidegate")
        )
        stored = cluster.reader.get(item.ref)
        if stored is not None and not item.expires and item.hook is None:
            there[str(item.ref)] = [read_result(stored), True]
    return there


def assert_two_blocks(stage: Stage) -> None:
    for unit, senders in blocks(stage).items():
        assert senders in (["1"], ["2"], ["1", "2"]), unit


def blocks(stage: Stage) -> dict[str, list[str]]:
    """Who wrote objects of each unit, in turns."""
    result: dict[str, list[str]] = {}
    for landed in stage.realm.landed:
        ref = landed.write.ref
        if ref.namespace == "default" and not is_error(landed.outcome):
            senders = result.setdefault(ref.name.partition("-")[0], [])
            if senders[-1:] != [landed.sender]:
                senders.append(landed.sender)
    return result


async def _play(driver: Driver, part: ProcessOptions, run: Run) -> str:
    driver.open()
    turn, answers = 0, dict(part.answers)
    while not driver.closed:
        turn += 1
        if turn in part.calls:
            part.calls[turn](driver)
        for result in [answer for answer in answers if run.events_of(answer)]:
            answers.pop(result)(driver)
        if not driver.closed:
            await driver.run_once()
    return driver.result

"""Two to four rollouts of overlapping units: all end, and only who holds a unit writes to it."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from tests.support.builders import make_unit_id
from tests.support.cluster_history import assert_record_in_order
from tests.support.killable_processes import Absence
from tests.support.random_fleets import hook_of, hook_runs
from tests.support.rollout_cases import Case, Shape, fast_by, no_budget, shared_by
from tests.support.rollout_stages import PATIENCE, Actor, ProcessOptions, Stage, finished
from tidegate.engine.records.storage import JOURNAL_KEY, UNIT_LABEL, label_value
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.kinds import SECRET
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.plan import Edge, EdgeReason, Plan
from tidegate.model.times import MINUTE
from tidegate.plan.build.build import build_plan
from tidegate.sandbox.world import START
from tidegate.world.messages import is_error

pytestmark = pytest.mark.timeout(PATIENCE)
NAMES = ("d", "a", "c", "b")
"""Of two rollouts that ask each other, names decide: the later one is not always the greater."""


@dataclass(frozen=True)
class ConcurrentRollout:
    """One rollout: of which units, when it begins, and how its clock is set."""

    units: frozenset[int]
    begins: int
    fast: int
    image: str


@dataclass(frozen=True)
class OverlappingUnits:
    """Units with two waves each; `crossed`: their second waves wait for first ones of others."""

    waits: tuple[int, ...]
    depends: tuple[tuple[int, ...], ...]
    crossed: frozenset[tuple[int, int]]
    hooked: frozenset[int]
    parties: tuple[ConcurrentRollout, ...]

    def plan(self, party: ConcurrentRollout) -> Plan:
        numbers = sorted(party.units)
        waves = [((Shape("Deployment", wait, 0, "well"),), (CONFIG,)) for wait in self.waits]
        depends = [tuple(party.units & {*others}) for others in self.depends]
        expected = Case(tuple(waves), tuple(map(tuple, map(sorted, depends)))).unit_manifests(
            image=party.image
        )
        units = [
            structs.replace(
                expected[number],
                manifests=(
                    *((hook_of(number),) if number in self.hooked else ()),
                    *expected[number].manifests,
                ),
            )
            for number in numbers
        ]
        plan = build_plan(units, readiness_timeout=no_budget)
        first, second = (
            {number: f"unit-{number}/sync/{wave}" for number in numbers} for wave in (0, 1)
        )
        edges = [
            Edge(first[item], second[other], EdgeReason.REFERENCE)
            for item, other in sorted(self.crossed)
            if item in first and other in second and item not in self._behind(other)
        ]
        return structs.replace(plan, edges=tuple(dict.fromkeys((*plan.edges, *edges))))

    def _behind(self, number: int) -> set[int]:
        """Units that begin when all of this one has passed."""
        near = {item for item, others in enumerate(self.depends) if number in others}
        return near.union(*map(self._behind, near)) if near else near


CONFIG = Shape("ConfigMap", 0, 0, "well")


@st.composite
def crowds(draw: st.DrawFn, *, alike: bool) -> OverlappingUnits:
    """`alike`: all have one plan."""
    count = draw(st.integers(2, 3))
    numbers = range(count)
    parties = draw(st.integers(2, 4))
    subsets = st.frozensets(st.sampled_from(numbers), min_size=1)
    return OverlappingUnits(
        waits=tuple(draw(st.sampled_from([0, 900, 7_000])) for _ in numbers),
        depends=tuple(
            tuple(other for other in range(number) if draw(st.integers(0, 3)) == 0)
            for number in numbers
        ),
        crossed=draw(st.frozensets(st.tuples(*(st.sampled_from(numbers),) * 2), max_size=3)),
        hooked=draw(st.frozensets(st.sampled_from(numbers), max_size=2)),
        parties=tuple(
            ConcurrentRollout(
                frozenset(numbers) if alike or draw(st.booleans()) else draw(subsets),
                draw(st.sampled_from([0, 3, 20, 500, 1_300, 6_000])),
                draw(fast_by),
                "app:1" if alike else draw(st.sampled_from(["app:1", "app:2"])),
            )
            for _ in range(parties)
        ),
    )


HOOK_BETWEEN_THREE = OverlappingUnits(
    waits=(0, 7_000, 0),
    depends=((), (), (1,)),
    crossed=frozenset(),
    hooked=frozenset({2}),
    parties=tuple(
        ConcurrentRollout(frozenset({0, 1, 2}), begins, 0, "app:1") for begins in (20, 6_000, 6_000)
    ),
)
"""The first is away when its unit with a hook has its turn; the last finds nothing to do there."""
READ_WHILE_TAKEN = OverlappingUnits(
    waits=(900, 900, 900),
    depends=((), (0,), (1,)),
    crossed=frozenset(),
    hooked=frozenset({1}),
    parties=(
        ConcurrentRollout(frozenset({0, 1, 2}), 20, -3_600_000, "app:1"),
        ConcurrentRollout(frozenset({1}), 1_300, -16_000, "app:2"),
        ConcurrentRollout(frozenset({0, 2}), 0, 300, "app:1"),
        ConcurrentRollout(frozenset({0, 1, 2}), 0, 0, "app:1"),
    ),
)
"""Read the record of another unit while another process and this one try to take it."""
absences = st.none() | st.builds(
    Absence, st.integers(10, 9_000), st.integers(1, 30), st.sampled_from(["cut", "frozen"])
)


@shared_by(4)
@given(crowds(alike=True), absences)
@example(HOOK_BETWEEN_THREE, Absence(5_306, 28, "frozen"))
def test_rollouts_of_one_plan_all_pass(crowd: OverlappingUnits, absence: Absence | None) -> None:
    stage, actors = play(crowd, absence)

    there, expected = stage.objects(), finished(actors[0].plan)
    assert {actor.run.result for actor in actors} == {"passed"}
    assert {ref: there.get(ref) for ref in expected} == expected
    assert set(hook_runs(stage.record).values()) <= {1}
    assert_written_by_holders(stage, actors)
    assert_record_in_order(actors[0].plan, stage.record)


@shared_by(4)
@given(crowds(alike=False), absences)
@example(READ_WHILE_TAKEN, None)
def test_rollouts_of_several_plans_all_finish(
    crowd: OverlappingUnits, absence: Absence | None
) -> None:
    stage, actors = play(crowd, absence)

    here = actors[1:] if absence else actors
    assert {actor.run.result for actor in here} <= {"passed", "stopped"}
    assert all(actor.life.is_over for actor in actors)
    assert_written_by_holders(stage, actors)


def play(crowd: OverlappingUnits, absence: Absence | None) -> tuple[Stage, list[Actor]]:
    """Run all of them to their ends, which must be soon: no process waits forever."""
    stage = Stage(Case((), ()))
    actors = [
        stage.actor(
            crowd.plan(item), ProcessOptions(holder=name, begins=item.begins, fast=item.fast)
        )
        for item, name in zip(crowd.parties, NAMES, strict=False)
    ]
    stage.play(*actors, happenings=absence.happenings(actors[0].life) if absence else ())
    assert stage.realm.now() - START < 4 * MINUTE
    return stage, actors


def assert_written_by_holders(stage: Stage, actors: list[Actor]) -> None:
    """Every write to a unit was made by the holder in the record of the unit at that moment."""
    names = {actor.life.world.name: name for actor, name in zip(actors, NAMES, strict=False)}
    marks = {label_value(make_unit_id(f"unit-{item}").tracking_id): f"u{item}" for item in range(4)}
    holders: dict[str, str] = {}
    for landed in stage.realm.landed:
        write = landed.write
        if is_error(landed.outcome):
            continue
        if write.ref.kind == SECRET and write.ref.namespace == "tidegate-system":
            body: JsonObject = msgspec.json.decode(write.body)
            unit = marks[get_text(body, "metadata", "labels", UNIT_LABEL)]
            head = msgspec.json.decode(base64.b64decode(get_text(body, "data", JOURNAL_KEY)))
            holders[unit] = get_text(head, "holder")
        elif write.ref.namespace == "default":
            unit = write.ref.name.partition("-")[0]
            assert holders.get(unit) == names[landed.sender], (write.ref.name, landed.at - START)

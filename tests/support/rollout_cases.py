"""Plans of random shape and faults at random."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from msgspec import structs

from tests.support.builders import annotate, make_config_map, make_deployment, make_job, make_unit
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.manifest import Manifests
from tidegate.model.plans.plan import Plan
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.policy import Policy
from tidegate.model.units.semantics import TIDEGATE, Retry
from tidegate.plan.build.build import build_plan
from tidegate.sandbox.faults import (
    CONFLICT,
    ERROR,
    CallEffect,
    CallFault,
    Compaction,
    Delay,
    Fault,
    FaultSelector,
    Frequency,
    Outage,
    Rejection,
    ResponseLoss,
    StreamDrop,
    StreamSilence,
    TimedFault,
    too_many_requests,
)

EXAMPLES = int(os.environ.get("TIDEGATE_EXAMPLES", "200"))
THOUSANDS = 2_000


def shared_by(number: int) -> settings:
    """The examples of one property, divided among so many tests."""
    return settings(max_examples=max(1, EXAMPLES // number), deadline=None)


def in_full(number: int) -> settings:
    """All examples for one test where thousands are asked for; else a share of them."""
    return shared_by(1 if EXAMPLES >= THOUSANDS else number)


def some_turns(turns: int, variant: int) -> range:
    """Every third turn of a rollout; which ones is drawn, so that all of them have their day."""
    return range(1 + variant % 3, turns + 1, 3)


every_case = shared_by(1)
FAULTS_END = Ms(20 * SECOND)
BRISK = structs.replace(
    TIDEGATE,
    name="brisk",
    deadline=Ms(20 * SECOND),
    settle_time=Ms(10 * SECOND),
    retry=Retry(limit=6, backoff=Ms(2 * SECOND), factor=2, backoff_limit=Ms(15 * SECOND)),
)
"""Our own rules in a hurry: the leases of an idle minute cost more than all the rest."""
IN_A_HURRY = Policy(semantics=BRISK)
WELL: tuple[str, ...] = ("well",)
MOSTLY_WELL: tuple[str, ...] = ("well",) * 25 + ("never", "dies", "dies")
OFTEN_ILL: tuple[str, ...] = ("well",) * 2 + ("never", "dies")


@dataclass(frozen=True)
class Shape:
    """What an object of a plan is like.

    A fleeting one is a Job that is removed when it is done, an elastic one a Deployment of whose
    replicas Git says nothing.
    """

    kind: str
    after: int
    sick: int
    outcome: str


@dataclass(frozen=True)
class Case:
    """A plan by its shape: units, their waves, the objects in each, and who depends on whom."""

    units: tuple[tuple[tuple[Shape, ...], ...], ...]
    depends: tuple[tuple[int, ...], ...]
    faults: tuple[Fault, ...] = ()

    def plan(self, *, image: str = "app:1", since: int = 0) -> Plan:
        """Units from number `since` on have this image, those before the first one."""
        return build_plan(
            self.unit_manifests(image=image, since=since), readiness_timeout=no_budget
        )

    def unit_manifests(self, *, image: str = "app:1", since: int = 0) -> tuple[Manifests, ...]:
        return tuple(
            self._unit(number, image if number >= since else "app:1")
            for number in range(len(self.units))
        )

    def _unit(self, number: int, image: str) -> Manifests:
        waves = tuple(
            tuple(
                body_of(shape, f"u{number}-w{wave}-{place}", image)
                for place, shape in enumerate(shapes)
            )
            for wave, shapes in enumerate(self.units[number])
        )
        after = tuple(f"unit-{other}" for other in self.depends[number])
        return make_unit(*waves, name=f"unit-{number}", after=after, policy=IN_A_HURRY)

    @property
    def is_well(self) -> bool:
        """Whether nothing in it fails by itself."""
        return all(
            shape.outcome == "well" for unit in self.units for wave in unit for shape in wave
        )

    @property
    def without_faults(self) -> Case:
        return replace(self, faults=())


def no_budget(_: JsonObject) -> None:
    """Ten minutes, which every Deployment asks for, is a long time to wait in a test."""


def body_of(shape: Shape, name: str, image: str) -> JsonObject:
    notes = {"after": str(shape.after)}
    if shape.sick:
        notes["sick"] = str(shape.sick)
    if shape.outcome != "well":
        notes[shape.outcome] = "1"
    if shape.kind == "ConfigMap":
        return make_config_map(name, image=image)
    if shape.kind in {"Deployment", "Elastic"}:
        body = annotate(make_deployment(name, image=image), **notes)
        return body if shape.kind == "Deployment" else without_replicas(body)
    lifetime = 0 if shape.kind == "Fleeting" else None
    return annotate(make_job(name, image=image, ttl=lifetime), **notes)


def without_replicas(body: JsonObject) -> JsonObject:
    spec = get_mapping(body, "spec")
    return {**body, "spec": {name: value for name, value in spec.items() if name != "replicas"}}


def _shapes(fates: tuple[str, ...]) -> st.SearchStrategy[Shape]:
    return st.builds(
        Shape,
        kind=st.sampled_from(["ConfigMap", "Deployment", "Elastic", "Job", "Fleeting"]),
        after=st.sampled_from([0, 20, 20, 900, 900, 7_000]),
        sick=st.sampled_from([0, 0, 0, 4_000]),
        outcome=st.sampled_from(fates),
    )


def _units(
    fates: tuple[str, ...], most: int
) -> st.SearchStrategy[tuple[tuple[tuple[Shape, ...], ...], ...]]:
    wave = st.lists(_shapes(fates), min_size=1, max_size=most).map(tuple)
    unit = st.lists(wave, min_size=1, max_size=most).map(tuple)
    return st.lists(unit, min_size=1, max_size=most).map(tuple)


def _fault() -> st.SearchStrategy[Fault]:
    effects: st.SearchStrategy[CallEffect] = st.one_of(
        st.just(Rejection(ERROR)),
        st.just(Rejection(too_many_requests())),
        st.builds(ResponseLoss, is_performed=st.booleans()),
        st.builds(Delay, duration=st.integers(0, 3_000).map(Ms)),
        st.builds(StreamDrop, after=st.integers(0, 2_000).map(Ms)),
        st.builds(
            StreamSilence,
            duration=st.integers(0, 9_000).map(Ms),
            after=st.integers(0, 2_000).map(Ms),
        ),
    )
    often = st.builds(Frequency, probability=st.sampled_from([0.1, 0.3]), until=st.just(FAULTS_END))
    conflicts = CallFault(
        Rejection(CONFLICT),
        FaultSelector(verbs=("replace", "patch")),
        Frequency(every=3, until=FAULTS_END),
    )
    moments = st.integers(0, FAULTS_END).map(Ms)
    return st.one_of(
        st.builds(CallFault, effects, st.just(FaultSelector()), often),
        st.just(conflicts),
        st.builds(TimedFault, moments, st.just(Compaction())),
        st.builds(down, moments, st.integers(1, 14)),
    )


def down(at: Ms, seconds: int) -> TimedFault:
    return TimedFault(at, Outage(until=Ms(at + seconds * SECOND)))


# Made once: hypothesis looks at a new strategy for longer than at what it draws from it.
UNITS = {
    (fates, most): _units(fates, most)
    for fates in (WELL, MOSTLY_WELL, OFTEN_ILL)
    for most in (2, 3)
}
fast_by = st.sampled_from([0, 300, -4_000, 9_000, 16_000, -16_000, 3_600_000, -3_600_000])
"""By how many milliseconds a clock is ahead of another."""
FAULTS = st.lists(_fault(), max_size=3).map(tuple)
_CHANCE = st.booleans()


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    fates: tuple[str, ...] = MOSTLY_WELL,
    faulty: bool = True,
    most: int = 3,
) -> Case:
    units = draw(UNITS[fates, most])
    depends = tuple(
        tuple(other for other in range(number) if draw(_CHANCE)) for number in range(len(units))
    )
    return Case(units, depends, draw(FAULTS) if faulty else ())

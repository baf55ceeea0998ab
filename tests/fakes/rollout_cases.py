"""Plans of random shape, faults at random, and a record of what a cluster really went through."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.fakes.quick_workloads import Nurse, nurse_of
from tidegate.model.manifest import WantedUnit
from tidegate.model.moment import MINUTE, SECOND, Ms
from tidegate.model.objects import Ref
from tidegate.model.plan import Plan
from tidegate.model.reading import mappings, number, text
from tidegate.sandbox.cluster import API_CONTROLLERS
from tidegate.sandbox.controllers.reaction import Controller, Looking, View
from tidegate.sandbox.faults import (
    CONFLICT,
    ERROR,
    CallEffect,
    CallFault,
    Compact,
    Down,
    Drop,
    Fault,
    Lose,
    Match,
    Often,
    Refuse,
    Silence,
    Slow,
    TimedFault,
    throttled,
)
from tidegate.sandbox.server.store import Event, Stored
from tidegate.sandbox.world import Sandbox
from tidegate.testing import Body
from tidegate.testing.builders import (
    a_config_map,
    a_deployment,
    a_job,
    a_plan,
    a_unit,
    an_object,
    noted,
)

EXAMPLES = int(os.environ.get("TIDEGATE_EXAMPLES", "2000"))
FAULTS_END = Ms(2 * MINUTE)


@dataclass(frozen=True)
class Shape:
    """What an object of a plan is like."""

    kind: str
    after: int
    sick: int
    fate: str


@dataclass(frozen=True)
class Case:
    """A plan by its shape: units, their waves, the objects in each, and who depends on whom."""

    units: tuple[tuple[tuple[Shape, ...], ...], ...]
    depends: tuple[tuple[int, ...], ...]
    faults: tuple[Fault, ...] = ()

    def plan(self, *, image: str = "app:1") -> Plan:
        return a_plan(*(self._unit(number, image) for number in range(len(self.units))))

    def _unit(self, number: int, image: str) -> WantedUnit:
        waves = tuple(
            tuple(
                _body(shape, f"u{number}-w{wave}-{place}", image)
                for place, shape in enumerate(shapes)
            )
            for wave, shapes in enumerate(self.units[number])
        )
        after = tuple(f"unit-{other}" for other in self.depends[number])
        return a_unit(*waves, name=f"unit-{number}", after=after)

    @property
    def is_well(self) -> bool:
        """Whether nothing in it fails by itself."""
        return all(shape.fate == "well" for unit in self.units for wave in unit for shape in wave)


def _body(shape: Shape, name: str, image: str) -> Body:
    notes = {"after": str(shape.after)}
    if shape.sick:
        notes["sick"] = str(shape.sick)
    if shape.fate != "well":
        notes[shape.fate] = "1"
    if shape.kind == "ConfigMap":
        return a_config_map(name, image=image)
    make = a_job if shape.kind == "Job" else a_deployment
    return noted(make(name, image=image), **notes)


def shapes(*, fates: tuple[str, ...]) -> st.SearchStrategy[Shape]:
    return st.builds(
        Shape,
        kind=st.sampled_from(["ConfigMap", "Deployment", "Deployment", "Job"]),
        after=st.sampled_from([0, 20, 900, 7_000, 45_000]),
        sick=st.sampled_from([0, 0, 0, 4_000]),
        fate=st.sampled_from(fates),
    )


MOSTLY_WELL = ("well",) * 9 + ("never", "dies")


@st.composite
def cases(draw: st.DrawFn, *, fates: tuple[str, ...] = MOSTLY_WELL, faulty: bool = True) -> Case:
    wave = st.lists(shapes(fates=fates), min_size=1, max_size=3).map(tuple)
    unit = st.lists(wave, min_size=1, max_size=3).map(tuple)
    units = tuple(draw(st.lists(unit, min_size=1, max_size=3)))
    depends = tuple(
        tuple(sorted(draw(st.sets(st.integers(0, number - 1))))) if number else ()
        for number in range(len(units))
    )
    faults = tuple(draw(st.lists(fault(), max_size=3))) if faulty else ()
    return Case(units, depends, faults)


def fault() -> st.SearchStrategy[Fault]:
    effects: st.SearchStrategy[CallEffect] = st.one_of(
        st.just(Refuse(ERROR)),
        st.just(Refuse(throttled())),
        st.builds(Lose, performed=st.booleans()),
        st.builds(Slow, by=st.integers(0, 3_000).map(Ms)),
        st.builds(Drop, after=st.integers(0, 2_000).map(Ms)),
        st.builds(Silence, span=st.integers(0, 9_000).map(Ms), after=st.integers(0, 2_000).map(Ms)),
    )
    often = st.builds(Often, probability=st.sampled_from([0.1, 0.3]), until=st.just(FAULTS_END))
    conflicts = CallFault(
        Refuse(CONFLICT), Match(verbs=("replace", "patch")), Often(every=3, until=FAULTS_END)
    )
    moments = st.integers(0, 60_000).map(Ms)
    return st.one_of(
        st.builds(CallFault, effects, st.just(Match()), often),
        st.just(conflicts),
        st.builds(TimedFault, moments, st.just(Compact())),
        st.builds(_down, moments, st.integers(1, 20)),
    )


def _down(at: Ms, seconds: int) -> TimedFault:
    return TimedFault(at, Down(until=Ms(at + seconds * SECOND)))


@dataclass(slots=True)
class Record:
    """Every change of a cluster, in the server's own order, by an observer inside of it."""

    changes: list[Stored] = field(default_factory=list)

    def concerns(self, _: View, event: Event) -> Iterable[Ref]:
        self.changes.append(event.stored)
        return ()

    def look(self, _view: View, _ref: Ref, _now: Ms) -> Looking:
        yield from ()

    def controller(self) -> Controller:
        return Controller("recorder", self.look, self.concerns)

    def spans(self) -> dict[str, tuple[int, int | None]]:
        """For each object that a plan wrote: when its last text came, and when it was ready."""
        found: dict[str, tuple[int, int | None]] = {}
        texts: dict[str, object] = {}
        for place, stored in enumerate(self.changes):
            name = stored.ref.name
            if stored.ref.namespace != "default":
                continue
            said = (stored.uid, stored.generation, stored.body.get("data"))
            if texts.get(name) != said:
                texts[name] = said
                found[name] = (place, None)
            begun, ready = found[name]
            if ready is None and is_ready(stored):
                found[name] = (begun, place)
        return found


def is_ready(stored: Stored) -> bool:
    """The test's own idea of ready, for the objects of its own."""
    match stored.ref.kind.name:
        case "Deployment":
            seen = number(stored.body, "status", "observedGeneration") == stored.generation
            return seen and number(stored.body, "status", "availableReplicas") > 0
        case "Job":
            conditions = mappings(stored.body, "status", "conditions")
            return any(text(one, "type") == "Complete" for one in conditions)
        case _:
            return True


def a_world(case: Case, record: Record, *, seed: int = 0) -> Sandbox:
    controllers = (*API_CONTROLLERS, nurse_of(Nurse()), record.controller())
    world = Sandbox(seed=seed, faults=case.faults, controllers=controllers)
    world.give([an_object("v1 Namespace", "default", namespace="")])
    return world

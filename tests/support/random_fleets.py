"""Several units of random shape: on two clusters, with slots, hooks, strangers and late comers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache

import msgspec
from hypothesis import strategies as st
from msgspec import structs

from tests.support.builders import make_config_map, make_manifest, make_object, make_unit_id
from tests.support.cluster_history import NOBODYS, Record
from tests.support.killable_processes import Happening
from tests.support.quick_workloads import DEPLOYMENT
from tests.support.rollout_cases import (
    FAULTS,
    IN_A_HURRY,
    UNITS,
    WELL,
    Case,
    Shape,
    body_of,
    no_budget,
)
from tests.support.rollout_stages import Stage
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.model.plans.manifest import Manifest, Manifests, Phase
from tidegate.model.plans.plan import (
    ConcurrencyLimit,
    Edge,
    EdgeReason,
    HookPolicy,
    Plan,
    PlanFragment,
    PlannedUnit,
    Step,
    digest_step,
)
from tidegate.model.times import Ms
from tidegate.model.units.unit import Dependency, Destination
from tidegate.plan.build.build import build_fragment, build_plan
from tidegate.sandbox.world import START
from tidegate.world.messages import WatchEventType
from tidegate.world.requests import PatchType, Verb, Write

GROUP = "canary"
YIELDS = "yields"
GROWS = "grows"
CLUSTERS = ("", "far")
UNKNOWN = make_object("nobody.example/v1 Gadget", "u-odd")
SETTINGS = Kind("", "v1", "ConfigMap")


@dataclass(frozen=True)
class UnitTraits:
    """Properties of a unit. `awaits`: an object of its neighbour, or of no unit."""

    place: str
    awaits: str
    grouped: bool
    hooked: bool


@dataclass(frozen=True)
class Fleet:
    """Units by their shapes and traits; so many of a group may be under way.

    `late`: the last unit comes when a step yields it.
    """

    case: Case
    traits: tuple[UnitTraits, ...]
    limit: int
    joins_later: bool
    comes: int
    """When the awaited objects of no unit are created, in milliseconds."""

    def stage(self, *, seed: int = 0) -> Stage:
        workers = {YIELDS: lambda _: msgspec.json.encode(self._fruit())}
        return Stage(self.case, seed=seed, workers=workers, clusters=CLUSTERS)

    def strangers(self, stage: Stage) -> list[Happening]:
        """Create the awaited objects that no unit creates."""
        numbers = [n for n, trait in enumerate(self.traits) if trait.awaits == "nobody"]

        def create() -> None:
            for number in numbers:
                body = make_config_map(f"{NOBODYS}-{number}", image="app:1")
                ref = Ref(SETTINGS, "default", f"{NOBODYS}-{number}")
                write = Write(verb=Verb.CREATE, ref=ref, body=msgspec.json.encode(body))
                stage.realm.clusters[self.traits[number].place].server.perform(write)

        return [(Ms(START + self.comes), create)] if numbers else []

    @cache  # noqa: B019 - a fleet is a value, and lives as long as an example
    def plan(self, *, bad: int | None = None) -> Plan:
        """`bad`: this unit has an object that no cluster serves."""
        expected = list(self._unit_manifests("app:1"))
        if bad is not None:
            odd = make_manifest(UNKNOWN, wave=len(self.case.units[bad]))
            known = expected[bad]
            expected[bad] = structs.replace(known, manifests=(*known.manifests, odd))
        if not self._grows:
            return build_plan(expected, concurrency_limits=self._slots, readiness_timeout=no_budget)
        last, expected = expected[-1], expected[:-1]
        made = build_fragment(expected, concurrency_limits=self._slots, readiness_timeout=no_budget)
        parent = PlannedUnit(id=make_unit_id(GROWS), policy=IN_A_HURRY)
        yields = Step(id=GROWS, unit=parent.id, digest=digest_step((), YIELDS), expansion=YIELDS)
        after = {
            dependency.unit for dependency in last.unit.dependencies if dependency.unit is not None
        }
        edges = (
            Edge(step.id, GROWS, EdgeReason.PARENT) for step in made.steps if step.unit in after
        )
        return Plan.from_fragment(
            PlanFragment(
                units=(*made.units, parent),
                steps=(*made.steps, yields),
                edges=(*made.edges, *edges),
                slots=made.slots,
            )
        )

    @cache  # noqa: B019
    def whole(self) -> Plan:
        """All of it, as if it had been known from the beginning."""
        return self.newer(frozenset(), image="app:1")

    def newer(self, units: frozenset[int], image: str = "app:2") -> Plan:
        """All of it, with another text for some units."""
        olds, news = self._unit_manifests("app:1"), self._unit_manifests(image)
        desired = [
            new if n in units else old for n, (old, new) in enumerate(zip(olds, news, strict=True))
        ]
        return build_plan(desired, concurrency_limits=self._slots, readiness_timeout=no_budget)

    def part(self, units: frozenset[int]) -> Plan:
        """Another manifest for some units, which wait only for external objects and each other."""
        names = {make_unit_id(f"unit-{number}") for number in units}
        expected = []
        for entry in (item for n, item in enumerate(self._unit_manifests("app:2")) if n in units):
            kept = tuple(
                known
                for known in entry.unit.dependencies
                if known.unit in names or (known.ref and known.ref.name.startswith(NOBODYS))
            )
            expected.append(
                structs.replace(entry, unit=structs.replace(entry.unit, dependencies=kept))
            )
        return build_plan(expected, concurrency_limits=self._slots, readiness_timeout=no_budget)

    @property
    def _grows(self) -> bool:
        return self.joins_later and len(self.traits) > 1

    @property
    def _slots(self) -> tuple[ConcurrencyLimit, ...]:
        return (ConcurrencyLimit(GROUP, self.limit),)

    def _fruit(self) -> PlanFragment:
        last = list(self._unit_manifests("app:1"))[-1]
        object_dependencies = tuple(
            dependency for dependency in last.unit.dependencies if dependency.ref is not None
        )
        alone = structs.replace(
            last, unit=structs.replace(last.unit, dependencies=object_dependencies)
        )
        return build_fragment([alone], concurrency_limits=self._slots, readiness_timeout=no_budget)

    def _unit_manifests(self, image: str) -> Iterable[Manifests]:
        for number, expected in enumerate(self.case.unit_manifests(image=image)):
            item, unit = self.traits[number], expected.unit
            unit = structs.replace(
                unit,
                destination=Destination(item.place),
                concurrency_group=GROUP if item.grouped else "",
                dependencies=(*unit.dependencies, *self._awaited(number)),
            )
            hooks = (hook_of(number),) if item.hooked else ()
            yield structs.replace(expected, unit=unit, manifests=(*hooks, *expected.manifests))

    def _awaited(self, number: int) -> Iterable[Dependency]:
        item = self.traits[number]
        if item.awaits == "nobody":
            yield Dependency(ref=Ref(SETTINGS, "default", f"{NOBODYS}-{number}"))
        near = number and self.traits[number - 1].place == item.place
        # Who comes late waits for the object alone, and not for all that is applied with it.
        near = near and (not self.joins_later or len(self.case.units[number - 1][0]) == 1)
        shape = self.case.units[number - 1][0][0]
        if item.awaits == "neighbour" and near and shape.kind in {"ConfigMap", "Deployment"}:
            kind = SETTINGS if shape.kind == "ConfigMap" else DEPLOYMENT
            yield Dependency(ref=Ref(kind, "default", f"u{number - 1}-w0-0"))


def hook_of(number: int) -> Manifest:
    body = body_of(Shape("Job", 20, 0, "well"), f"u{number}-hook", "app:1")
    made = make_manifest(body, phase=Phase.PRE_SYNC)
    return structs.replace(made, hook_policies=(HookPolicy.BEFORE_CREATION,))


def hook_runs(record: Record) -> dict[str, int]:
    """How often each hook was made."""
    made: dict[str, int] = {}
    for event in record.changes:
        name = event.stored.ref.name
        if name.endswith("-hook") and event.change is WatchEventType.ADDED:
            made[name] = made.get(name, 0) + 1
    return made


@dataclass(frozen=True)
class ObjectEdit:
    """Another client changes or deletes an object of ours, if it exists at that time."""

    at: int
    target: int
    change: str

    def happening(self, fleet: Fleet, stage: Stage) -> Happening:
        return Ms(START + self.at), lambda: self._do(fleet, stage)

    def _do(self, fleet: Fleet, stage: Stage) -> None:
        refs = [
            (step.cluster, item.ref)
            for step in fleet.whole().steps
            for batch in step.batches
            for item in batch
            if item.hook is None and item.body and item.ref.kind.name != "Job"
        ]
        if refs:
            cluster, ref = refs[self.target % len(refs)]
            write = DEEDS[self.change](ref)
            stage.realm.clusters[cluster].server.perform(write)


def _patch(ref: Ref, spec: Json, data: Json, manager: str = "kubectl") -> Write:
    body: Json = {"data": data} if ref.kind == SETTINGS else {"spec": spec}
    return Write(
        verb=Verb.PATCH,
        ref=ref,
        body=msgspec.json.encode(body),
        patch_type=PatchType.MERGE,
        manager=manager,
    )


def _revert(ref: Ref) -> Write:
    containers: Json = [{"name": "app", "image": "app:0"}]
    return _patch(ref, {"template": {"spec": {"containers": containers}}}, {"image": "app:0"})


DEEDS: dict[str, Callable[[Ref], Write]] = {
    "edits": lambda ref: _patch(ref, {"minReadySeconds": 1}, {"theirs": "1"}),
    "scales": lambda ref: _patch(ref, {"replicas": 0}, {"image": "app:9"}),
    "idles": lambda ref: _patch(ref, {"replicas": 0}, {"theirs": "2"}, manager="scaler"),
    "reverts": _revert,
    "deletes": lambda ref: Write(verb=Verb.DELETE, ref=ref),
}
"""Edits touch what is not ours; who idles an elastic Deployment does so, too."""

_TRAITS = st.builds(
    UnitTraits,
    place=st.sampled_from(CLUSTERS),
    awaits=st.sampled_from(["", "", "", "nobody", "neighbour"]),
    grouped=st.booleans(),
    hooked=st.booleans(),
).map(lambda item: replace(item, grouped=item.grouped and not item.awaits))
"""A unit that waits for others has no slot, because others may wait for it."""
meddlings = st.lists(
    st.builds(
        ObjectEdit, st.integers(50, 15_000), st.integers(0, 20), st.sampled_from(sorted(DEEDS))
    ),
    min_size=1,
    max_size=4,
)


@st.composite
def fleets(
    draw: st.DrawFn, *, fates: tuple[str, ...] = WELL, faulty: bool = False, most: int = 2
) -> Fleet:
    shapes = draw(UNITS[fates, most]) + draw(UNITS[fates, 2])
    numbers = range(len(shapes))
    depends = tuple(
        tuple(other for other in range(number) if draw(st.integers(0, 2)) == 0)
        for number in numbers
    )
    case = Case(shapes, depends, draw(FAULTS) if faulty else ())
    traits = tuple(draw(_TRAITS) for _ in numbers)
    joins_later, limit = draw(st.booleans()), draw(st.integers(1, 2))
    return Fleet(case, traits, limit, joins_later, draw(st.sampled_from([10, 700, 4_000])))

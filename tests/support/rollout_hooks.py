"""Units with hooks of random phase and policy, and what a cluster says of their runs."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import msgspec
from hypothesis import strategies as st

from tests.support.builders import make_manifest, make_unit_id
from tests.support.cluster_history import Record, is_planned, is_ready
from tests.support.rollout_cases import FAULTS, IN_A_HURRY, UNITS, WELL, Shape, body_of, no_budget
from tidegate.dialect.ownership.tracking import UNIT
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.manifest import Manifest, Manifests, Phase
from tidegate.model.plans.plan import HOOK_FINALIZER, HookPolicy, Plan
from tidegate.model.units.unit import Unit
from tidegate.plan.build.build import build_plan
from tidegate.sandbox.faults import Fault
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.world.messages import WatchEventType

ORDER = tuple(item for item in Phase if item is not Phase.TEST)  # tests are releases' own
BEFORE = ORDER[:2]
NAME = "unit-0"
UNIT_0 = Unit(id=make_unit_id(NAME), policy=IN_A_HURRY)
POLICIES: tuple[tuple[HookPolicy, ...], ...] = (
    (HookPolicy.BEFORE_CREATION,),
    (HookPolicy.SUCCEEDED,),
    (HookPolicy.FAILED,),
    (HookPolicy.BEFORE_CREATION, HookPolicy.SUCCEEDED),
    (HookPolicy.SUCCEEDED, HookPolicy.FAILED),
)


@dataclass(frozen=True)
class HookShape:
    """A hook is a Job. `generates`: it has only the beginning of a name. `also`: a second phase."""

    shape: Shape
    phase: Phase
    policies: tuple[HookPolicy, ...]
    generates: bool = False
    also: Phase | None = None


@dataclass(frozen=True)
class HookCase:
    """One unit: its waves, and its hooks."""

    waves: tuple[tuple[Shape, ...], ...]
    hooks: tuple[HookShape, ...]
    faults: tuple[Fault, ...] = ()

    def plan(self, *, image: str = "app:1", waves: int = 9) -> Plan:
        """The hooks say the same with every image; so many waves are still in Git."""
        return build_plan(
            (self.unit_manifests(image=image, waves=waves),), readiness_timeout=no_budget
        )

    def unit_manifests(self, *, image: str = "app:1", waves: int = 9) -> Manifests:
        kept = (
            make_manifest(_owned(body_of(shape, f"u0-w{wave}-{place}", image), wave), wave=wave)
            for wave, shapes in enumerate(self.waves[:waves])
            for place, shape in enumerate(shapes)
        )
        hooks = [_hook(shape, name_of(number)) for number, shape in enumerate(self.hooks)]
        again = (
            msgspec.structs.replace(made, phase=hook.also)
            for made, hook in zip(hooks, self.hooks, strict=True)
            if hook.also is not None
        )
        return Manifests(unit=UNIT_0, manifests=(*kept, *hooks, *again))

    def ending(self) -> Manifests:
        """The same unit at its end: hooks of the first two phases run before it, others after."""
        expected = self.unit_manifests()
        kept = tuple(manifest for manifest in expected.manifests if manifest.hook_policies is None)
        hooks = [manifest for manifest in expected.manifests if manifest.hook_policies is not None]
        before = tuple(hook for hook in hooks if hook.phase in BEFORE)
        after = tuple(hook for hook in hooks if hook.phase not in BEFORE)
        return msgspec.structs.replace(
            expected, manifests=kept, before_deletion=before, after_deletion=after
        )

    def waves_of(self, waves: Iterable[int]) -> dict[str, int]:
        """The objects of these waves that stay until a plan deletes them, by name."""
        return {
            f"u0-w{wave}-{place}": wave
            for wave in waves
            for place, shape in enumerate(self.waves[wave])
            if shape.kind != "Fleeting"
        }

    @property
    def is_well(self) -> bool:
        """Whether it passes; what is there for a failure is not asked."""
        requests = (hook.shape for hook in self.hooks if hook.phase is not Phase.SYNC_FAIL)
        return all(shape.outcome == "well" for shape in requests)

    def number_of(self, name: str) -> int | None:
        """Which hook an object is a run of."""
        matches = (n for n in range(len(self.hooks)) if name.startswith(name_of(n)))
        return next(matches, None)


def name_of(hook: int) -> str:
    return f"u0-h{hook}"


def _owned(body: JsonObject, wave: int) -> JsonObject:
    metadata = get_mapping(body, "metadata")
    notes = get_mapping(metadata, "annotations")
    added: dict[str, Json] = {UNIT: NAME, "argocd.argoproj.io/sync-wave": str(wave)}
    return {**body, "metadata": {**metadata, "annotations": {**notes, **added}}}


def _hook(hook: HookShape, name: str) -> Manifest:
    body = _owned(body_of(hook.shape, name, "app:1"), 0)
    made = msgspec.structs.replace(
        make_manifest(body, phase=hook.phase), hook_policies=hook.policies
    )
    if not hook.generates:
        return made
    metadata = {key: item for key, item in get_mapping(body, "metadata").items() if key != "name"}
    nameless: JsonObject = {**body, "metadata": {**metadata, "generateName": f"{name}-"}}
    ref = msgspec.structs.replace(made.ref, name=f"{name}-")
    return msgspec.structs.replace(made, ref=ref, body=msgspec.json.encode(nameless))


def _hooks(phases: tuple[Phase, ...], fates: tuple[str, ...]) -> st.SearchStrategy[HookShape]:
    shape = st.builds(
        Shape,
        kind=st.sampled_from(["Job", "Job", "Fleeting"]),
        after=st.sampled_from([0, 20, 900]),
        sick=st.just(0),
        outcome=st.sampled_from(fates),
    )
    return st.builds(
        HookShape,
        shape,
        phase=st.sampled_from(phases),
        policies=st.sampled_from(POLICIES),
        generates=st.booleans(),
    )


def _at_the_end(hook: HookShape) -> HookShape:
    """A hook of a unit's end has a name here, and stays until it is seen: nothing holds it."""
    return replace(hook, shape=replace(hook.shape, kind="Job"), generates=False)


_WAVES = UNITS[WELL, 2].map(lambda units: units[0])
_WELL = st.lists(_hooks(ORDER, WELL), min_size=1, max_size=3).map(tuple)
_ILL = st.lists(_hooks(ORDER, ("well", "dies")), min_size=1, max_size=3).map(tuple)
_NAMED = _WELL.map(lambda hooks: tuple(map(_at_the_end, hooks)))
named_hooked = st.builds(HookCase, _WAVES, _NAMED)
unhooked = st.builds(HookCase, _WAVES, st.just(()))
faulty_unhooked = st.builds(HookCase, _WAVES, st.just(()), FAULTS)
faulty_named = st.builds(HookCase, _WAVES, _NAMED, FAULTS)
_TWICE = st.builds(
    HookShape,
    st.builds(Shape, st.just("Job"), st.sampled_from([0, 900]), st.just(0), st.just("well")),
    phase=st.just(Phase.PRE_SYNC),
    policies=st.just(POLICIES[0]),
    also=st.sampled_from([Phase.SYNC, Phase.POST_SYNC]),
)
twice_hooked = st.builds(HookCase, _WAVES, st.tuples(_TWICE))
well_hooked = st.builds(HookCase, _WAVES, _WELL)
ill_hooked = st.builds(HookCase, _WAVES, _ILL)
faulty_hooked = st.builds(HookCase, _WAVES, _WELL, FAULTS)


def runs_of(case: HookCase, changes: Iterable[StoreEvent]) -> dict[int, int]:
    """How often each hook was made, of those that were."""
    result: dict[int, int] = {}
    for event in changes:
        number = case.number_of(event.stored.ref.name)
        if number is not None and event.change is WatchEventType.ADDED and is_planned(event.stored):
            result[number] = result.get(number, 0) + 1
    return result


def is_dead(stored: StoredObject) -> bool:
    conditions = get_mappings(stored.body, "status", "conditions")
    return any(get_text(condition, "type") == "Failed" for condition in conditions)


def died(case: HookCase, record: Record) -> set[int]:
    """The hooks of which a run has failed."""
    dead = (event.stored for event in record.changes if is_dead(event.stored))
    return left(case, dead)


def assert_hooks_in_order(
    case: HookCase, record: Record, *, since: int = 0, kept: AbstractSet[int] = frozenset()
) -> None:
    """A hook is made when all before it is ready in this rollout, the last only after a failure.

    `kept`: the hooks of which an earlier run counts.
    """
    objects: dict[str, StoredObject] = {}
    ran: dict[int, StoredObject] = {}
    for place, event in enumerate(record.changes):
        stored = event.stored
        if not is_planned(stored) or event.change is WatchEventType.DELETED or stored.is_deleting:
            continue
        number = case.number_of(stored.ref.name)
        if number is None:
            objects[stored.ref.name] = stored
            continue
        if place < since and number not in kept:
            continue
        if event.change is WatchEventType.ADDED and place >= since:
            _assert_turn(case, number, objects, ran)
        ran[number] = stored


def _assert_turn(
    case: HookCase, number: int, objects: dict[str, StoredObject], ran: dict[int, StoredObject]
) -> None:
    phase = case.hooks[number].phase
    if phase is Phase.SYNC_FAIL:
        assert any(is_dead(item) for item in ran.values()), "a rescue without a failure"
        return
    for other, hook in enumerate(case.hooks):
        if ORDER.index(hook.phase) < ORDER.index(phase):
            assert other in ran, f"{number} came before {other}"
            assert is_ready(ran[other]), f"{number} came before {other} was ready"
    if phase is Phase.POST_SYNC:
        expected = sum(len(shapes) for shapes in case.waves)
        assert len(objects) == expected, f"{number} came before all waves"
        assert all(is_ready(item) for item in objects.values()), (
            f"{number} came before all waves passed"
        )


def assert_let_go(stored: Iterable[StoredObject]) -> None:
    """Nothing is held any more by what holds hooks."""
    assert [item.ref.name for item in stored if HOOK_FINALIZER in item.finalizers] == []


def left(case: HookCase, stored: Iterable[StoredObject]) -> set[int]:
    """The hooks of which something is there, and is not on its way out."""
    numbers = (case.number_of(item.ref.name) for item in stored if not item.is_deleting)
    return {number for number in numbers if number is not None}


def assert_gone_in_reverse(waves: dict[str, int], changes: Iterable[StoreEvent]) -> None:
    """Nothing of these begins to go before all of the higher waves is gone."""
    there = dict(waves)
    for event in changes:
        name = event.stored.ref.name
        if name not in there or not (
            event.change is WatchEventType.DELETED or event.stored.is_deleting
        ):
            continue
        later = [item for item, wave in there.items() if wave > waves[name]]
        assert later == [], f"{name} went before {later}"
        if event.change is WatchEventType.DELETED:
            del there[name]
    assert there == {}

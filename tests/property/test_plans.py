"""Plans of any shape: their order, their circles, their documents."""

from __future__ import annotations

import base64
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import DEFAULT_POLICY, STAGED_POLICY, make_unit_id
from tests.support.ordered_manifests import (
    CRD,
    a_definition,
    a_hook,
    a_thing,
    a_unit_of,
    add_prunes,
    no_budget,
)
from tests.support.plan_key import KEY
from tidegate.errors import PlanError
from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.manifest import Manifest, Manifests, Phase
from tidegate.model.plans.plan import Edge, Plan, PlanItem, Step
from tidegate.model.units.policy import ObjectOptions, Policy
from tidegate.plan.build.build import build_plan, plan_unit
from tidegate.plan.build.chains import narrow_plan
from tidegate.plan.build.cycles import sort_steps
from tidegate.plan.changes.narrow import without_hooks
from tidegate.plan.changes.prune import PruneCandidate, reverse_waves
from tidegate.plan.serialize import from_json, to_json

KINDS = ("Namespace", "Secret", "ConfigMap", "Pod", "batch/v1 Job", "a.dev/v1 Gadget", CRD)
SPACES = ("default", "blue", "green")
WORDS = st.text(st.characters(codec="utf-8"), max_size=12)
HIDDEN = "correct-horse-battery"
"""As long as needs no padding, so that it can be found in base64 as well."""
WAVES = st.integers(-3, 3)
POLICIES = st.sampled_from([DEFAULT_POLICY, STAGED_POLICY])
Links = list[tuple[int, int]]


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    kind, name = draw(st.sampled_from(KINDS)), draw(st.sampled_from("abcd"))
    wave, phase = draw(WAVES), draw(st.sampled_from(Phase))
    if kind == CRD:
        return a_definition(f"gadgets{name}", "a.dev", "Gadget", wave=wave)
    if kind == "Secret":
        values = {draw(st.sampled_from("xy")): f"{HIDDEN}-{draw(st.sampled_from('12'))}"}
        return a_thing(kind, name, wave=wave, phase=phase, stringData={**values})
    if kind == "Namespace":
        return a_thing(kind, draw(st.sampled_from(SPACES)), wave=wave)
    if draw(st.booleans()):
        return a_hook(kind, name, phase, wave=wave)
    space, word = draw(st.sampled_from(SPACES)), draw(WORDS)
    return a_thing(kind, name, wave=wave, phase=phase, namespace=space, data={"word": word})


def several() -> st.SearchStrategy[list[Manifest]]:
    return st.lists(manifests(), max_size=12, unique_by=lambda item: (item.ref, item.phase))


@st.composite
def units(draw: st.DrawFn) -> list[Manifests]:
    """Units of which each depends on earlier ones only."""
    made: list[Manifests] = []
    for number in range(draw(st.integers(1, 4))):
        names = [item.unit.id.name for item in made]
        after = draw(st.lists(st.sampled_from(names), max_size=3)) if names else []
        unit = a_unit_of(
            *draw(several()),
            name=f"unit-{number}",
            after=tuple(after),
            policy=draw(POLICIES),
            namespace=draw(st.sampled_from(SPACES)),
        )
        made.append(unit)
    return draw(st.permutations(made))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Links]:
    count = draw(st.integers(1, 12))
    ends = st.integers(0, count - 1)
    return count, draw(st.lists(st.tuples(ends, ends), max_size=30))


def steps_of(count: int) -> dict[str, Step]:
    return {f"s{n}": Step(id=f"s{n}", unit=make_unit_id(f"u{n}"), digest="") for n in range(count)}


def edges_of(links: Links) -> list[Edge]:
    return [Edge(f"s{before}", f"s{after}") for before, after in links]


def items_of(plan: Plan) -> list[PlanItem]:
    return [item for step in plan.steps for batch in step.batches for item in batch]


def key_of(item: PlanItem) -> tuple[Ref, str]:
    return (item.ref, item.digest)


def bodies_of(plan: Plan) -> dict[Ref, bytes]:
    return {item.ref: item.body for item in items_of(plan)}


def assert_in_order(plan: Plan) -> None:
    place = {step.id: at for at, step in enumerate(plan.steps)}
    assert all(place[edge.before] < place[edge.after] for edge in plan.edges)


def reaches(links: Links, start: int, end: int) -> bool:
    """Whether some edges lead from one to another, over at least one of them."""
    seen: set[int] = set()
    later = [after for before, after in links if before == start]
    while later:
        item = later.pop()
        if item not in seen:
            seen.add(item)
            later += [after for before, after in links if before == item]
    return end in seen


def pairs_of(plan: Plan) -> set[tuple[str, str]]:
    """Which steps come before which, directly or by others."""
    before: dict[str, set[str]] = {step.id: set() for step in plan.steps}
    for step in plan.steps:
        for edge in plan.edges:
            if edge.after == step.id:
                before[step.id] |= {edge.before, *before[edge.before]}
    return {(item, other) for other, earlier in before.items() for item in earlier}


@given(graphs())
def test_every_edge_is_respected_and_nothing_moves_without_need(
    graph: tuple[int, Links],
) -> None:
    count, links = graph[0], [(item, other) for item, other in graph[1] if item != other]
    forward = [(min(link), max(link)) for link in links]
    backward = [(after, before) for before, after in forward]

    kept = sort_steps(steps_of(count), edges_of(forward))
    turned = sort_steps(steps_of(count), edges_of(backward))

    assert [step.id for step in kept] == list(steps_of(count))
    place = {step.id: at for at, step in enumerate(turned)}
    assert len(place) == count
    assert all(place[edge.before] < place[edge.after] for edge in edges_of(backward))


@given(graphs())
def test_a_cycle_is_reported_exactly_if_there_is_one(graph: tuple[int, Links]) -> None:
    count, links = graph
    circular = {n for n in range(count) if reaches(links, n, n)}
    if not circular:
        sort_steps(steps_of(count), edges_of(links))
        return

    with pytest.raises(PlanError) as raised:
        sort_steps(steps_of(count), edges_of(links))

    named = [int(word[1:]) for word in raised.value.problem.split("`")[1::2]]
    assert raised.value.code == "plan.cycle"
    assert set(named) <= circular
    rounds = [*named, named[0]] if len(named) == 1 else named
    assert all((after, before) in links for before, after in pairwise(rounds))


@given(units())
def test_a_plan_respects_its_edges_and_has_every_object_once(
    unit_manifests: list[Manifests],
) -> None:
    plan = build_plan(unit_manifests, readiness_timeout=no_budget)

    assert_in_order(plan)
    given_refs = sorted(manifest.ref for unit in unit_manifests for manifest in unit.manifests)
    assert sorted(item.ref for item in items_of(plan)) == given_refs


@given(several(), st.randoms(use_true_random=False), POLICIES)
def test_shuffled_manifests_make_the_same_plan(
    things: list[Manifest],
    chance: random.Random,
    policy: Policy,
) -> None:
    shuffled = chance.sample(things, len(things))

    plan = build_plan([a_unit_of(*things, policy=policy)], readiness_timeout=no_budget)
    other = build_plan([a_unit_of(*shuffled, policy=policy)], readiness_timeout=no_budget)

    assert plan == other


@given(several())
def test_namespaces_and_crds_never_follow_their_dependents(
    things: list[Manifest],
) -> None:
    plan = build_plan([a_unit_of(*things)], readiness_timeout=no_budget)

    place = {item.ref: at for at, item in reversed(list(enumerate(items_of(plan))))}
    spaces = {ref.name: at for ref, at in place.items() if ref.kind.name == "Namespace"}
    first_definition = [at for ref, at in place.items() if ref.kind.name == CRD.split()[1]]
    for ref, at in place.items():
        assert spaces.get(ref.namespace, -1) < at
        if ref.kind.name == "Gadget" and first_definition:
            assert min(first_definition) < at


@given(units())
def test_a_plan_is_serialized_without_loss_and_without_secrets(
    unit_manifests: list[Manifests],
) -> None:
    # One Secret in several places may be given by one body only: each has its own here.
    plan = build_plan(unit_manifests, readiness_timeout=no_budget)
    secrets = {item.ref: item.body for item in items_of(plan) if item.ref.kind.name == "Secret"}
    distinct = all(secrets.get(item.ref, item.body) == item.body for item in items_of(plan))
    text = to_json(plan, KEY)

    assert HIDDEN.encode() not in text
    assert base64.b64encode(HIDDEN.encode()) not in text
    if distinct:
        again = from_json(text, name="plan.json", bodies=bodies_of(plan), key=KEY)
        assert (again, again.digest) == (plan, plan.digest)
        assert to_json(again, KEY) == text


@given(st.lists(st.integers(-100, 100)))
def test_turning_waves_round_twice_changes_nothing(waves: list[int]) -> None:
    swapped = reverse_waves(waves)

    assert set(swapped) == set(swapped.values()) == set(waves)
    assert all(swapped[swapped[wave]] == wave for wave in waves)


@given(units(), st.lists(st.tuples(st.sampled_from("efgh"), WAVES, st.booleans()), max_size=6))
def test_pruned_objects_do_not_change_the_order_of_others(
    unit_manifests: list[Manifests], gone: list[tuple[str, int, bool]]
) -> None:
    plan = build_plan(unit_manifests, readiness_timeout=no_budget)
    unit = unit_manifests[0].unit
    stale = [
        PruneCandidate(a_thing("Pod", name).ref, wave, ObjectOptions(prune_last=last))
        for name, wave, last in gone
    ]

    completed = add_prunes(plan, plan_unit(unit), stale)

    assert_in_order(completed)
    assert pairs_of(plan) <= pairs_of(completed)
    deleted = [item.ref for item in items_of(completed) if item.action == "delete"]
    assert sorted(deleted) == sorted(item.ref for item in stale)
    applied = [item for item in items_of(completed) if item.action != "delete"]
    assert sorted(applied, key=key_of) == sorted(items_of(plan), key=key_of)


@given(units())
def test_a_plan_without_its_hooks_has_all_else_in_the_same_order(
    unit_manifests: list[Manifests],
) -> None:
    plan = build_plan(unit_manifests, readiness_timeout=no_budget)

    bare = without_hooks(plan, {item.unit.id for item in unit_manifests})

    left = {step.id for step in bare.steps}
    assert_in_order(bare)
    assert [item for item in items_of(plan) if item.hook is None] == items_of(bare)
    assert pairs_of(bare) == {pair for pair in pairs_of(plan) if left.issuperset(pair)}


@given(units(), st.randoms(use_true_random=False))
def test_narrowing_a_plan_never_lets_anything_start_earlier(
    unit_manifests: list[Manifests], chance: random.Random
) -> None:
    plan = build_plan(unit_manifests, readiness_timeout=no_budget)
    gone = {step.id for step in plan.steps if chance.getrandbits(1)}

    narrowed = narrow_plan(plan, lambda step: None if step.id in gone else step)

    left = {step.id for step in narrowed.steps}
    assert left == {step.id for step in plan.steps} - gone
    assert pairs_of(narrowed) == {pair for pair in pairs_of(plan) if left.issuperset(pair)}


def test_ten_thousand_objects_make_a_plan_whatever_their_kinds() -> None:
    things = [a_thing("a.dev/v1 Gadget", f"g{n:05}", wave=n % 7) for n in range(10_000)]

    plan = build_plan([a_unit_of(*things)], readiness_timeout=no_budget)

    assert [len(items_of(Plan(digest="", steps=(step,)))) for step in plan.steps] == [
        1429,
        1429,
        1429,
        1429,
        1428,
        1428,
        1428,
    ]

"""Argo CD's order inside a unit."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.ordered_manifests import (
    a_definition,
    a_hook,
    a_thing,
    a_unit_of,
    plan_of,
    results_by_name,
)
from tidegate.model.plans.manifest import Manifest, Phase
from tidegate.plan.build.waves import KIND_ORDER, group_by_wave


def order_of(*manifests: Manifest, namespace: str = "") -> list[tuple[str, int, list[list[str]]]]:
    groups = group_by_wave(manifests, namespace=namespace)
    return [
        (
            group.phase.value,
            group.wave,
            [[item.ref.name for item in batch] for batch in group.batches],
        )
        for group in groups
    ]


def test_a_service_is_written_before_a_pod_in_one_step() -> None:
    assert order_of(a_thing("Pod", "a"), a_thing("Service", "b")) == [("sync", 0, [["b"], ["a"]])]


def test_objects_are_ordered_by_phase_wave_kind_and_name() -> None:
    things = (
        a_hook("Pod", "fail", Phase.SYNC_FAIL),
        a_hook("Pod", "post", Phase.POST_SYNC),
        a_thing("Pod", "late", wave=1),
        a_thing("dev/v1 Unknown", "b"),
        a_thing("dev/v1 Another", "a"),
        a_thing("Pod", "pod"),
        a_thing("Service", "service"),
        a_thing("PersistentVolume", "volume"),
        a_thing("ConfigMap", "map"),
        a_thing("Pod", "early", wave=-1),
        a_hook("Pod", "pre", Phase.PRE_SYNC),
    )

    order = order_of(*things)

    assert order == [
        ("presync", 0, [["pre"]]),
        ("sync", -1, [["early"]]),
        ("sync", 0, [["map"], ["volume"], ["service"], ["pod"], ["a"], ["b"]]),
        ("sync", 1, [["late"]]),
        ("postsync", 0, [["post"]]),
        ("syncfail", 0, [["fail"]]),
    ]


def test_a_namespace_precedes_an_unknown_kind() -> None:
    order = order_of(a_thing("dev/v1 Gadget", "a"), a_thing("Namespace", "b"))

    assert order == [("sync", 0, [["b"], ["a"]])]


def test_kinds_have_the_ranks_that_argo_cd_gives_them() -> None:
    assert (len(KIND_ORDER), KIND_ORDER[0], KIND_ORDER[-1]) == (35, "Namespace", "APIService")
    assert (
        KIND_ORDER.index("Secret") < KIND_ORDER.index("ConfigMap") < KIND_ORDER.index("Deployment")
    )


def test_the_rank_of_a_kind_does_not_depend_on_its_group() -> None:
    order = order_of(a_thing("Service", "a"), a_thing("dev/v1 Secret", "b"))

    assert order == [("sync", 0, [["b"], ["a"]])]


def test_objects_of_one_kind_are_written_at_once_in_the_order_of_their_names() -> None:
    things = [a_thing("ConfigMap", name) for name in ("c", "a", "B", "b")]

    assert order_of(*things) == [("sync", 0, [["B", "a", "b", "c"]])]


def test_kinds_without_a_rank_are_ordered_by_the_names_of_their_objects_alone() -> None:
    things = (
        a_thing("dev/v1 Alpha", "a"),
        a_thing("dev/v1 Alpha", "c"),
        a_thing("dev/v1 Beta", "b"),
    )

    assert order_of(*things) == [("sync", 0, [["a"], ["b"], ["c"]])]


def test_the_namespace_does_not_affect_the_order() -> None:
    thing, other = (
        a_thing("ConfigMap", "b", namespace="a"),
        a_thing("ConfigMap", "a", namespace="b"),
    )

    assert order_of(thing, other) == [("sync", 0, [["a", "b"]])]


def test_a_namespace_moves_before_its_first_object() -> None:
    first = msgspec.structs.replace(
        a_thing("batch/v1 Job", "job1", phase=Phase.PRE_SYNC, namespace="ns1"), hook_policies=()
    )
    second = a_thing("batch/v1 Job", "job2", phase=Phase.PRE_SYNC, namespace="ns2")
    things = (
        first,
        second,
        a_thing("Namespace", "ns1", wave=1),
        a_thing("Namespace", "ns2", wave=2),
    )

    assert order_of(*things) == [("presync", 0, [["ns1"], ["job1"], ["ns2"], ["job2"]])]


def test_an_early_namespace_is_not_moved() -> None:
    things = (a_thing("Namespace", "ns", wave=-3), a_thing("Pod", "a", namespace="ns"))

    assert order_of(*things) == [("sync", -3, [["ns"]]), ("sync", 0, [["a"]])]


def test_objects_without_a_namespace_count_as_in_that_of_the_unit() -> None:
    things = (a_thing("ClusterRole", "role", wave=-1), a_thing("Namespace", "home", wave=5))

    assert order_of(*things, namespace="home") == [("sync", -1, [["home"], ["role"]])]
    assert order_of(*things, namespace="other") == [
        ("sync", -1, [["role"]]),
        ("sync", 5, [["home"]]),
    ]


def test_a_namespace_does_not_wait_for_another_one() -> None:
    things = (a_thing("Namespace", "a", wave=-1), a_thing("Namespace", "home", wave=5))

    assert order_of(*things, namespace="home") == [("sync", -1, [["a"]]), ("sync", 5, [["home"]])]


def test_a_kind_called_namespace_in_another_group_holds_nothing() -> None:
    things = (a_thing("dev/v1 Namespace", "ns", wave=1), a_thing("Pod", "a", namespace="ns"))

    assert order_of(*things) == [("sync", 0, [["a"]]), ("sync", 1, [["ns"]])]


def test_a_crd_moves_before_the_first_object_of_its_kind() -> None:
    gadget = a_thing("dev/v1 Gadget", "gadget", phase=Phase.PRE_SYNC)

    order = order_of(gadget, a_definition("gadgets.dev", "dev", "Gadget", wave=3))

    assert order == [("presync", 0, [["gadgets.dev"], ["gadget"]])]


def test_a_definition_does_not_move_for_the_same_kind_in_another_group() -> None:
    order = order_of(a_thing("other/v1 Gadget", "a"), a_definition("x", "dev", "Gadget", wave=3))

    assert order == [("sync", 0, [["a"]]), ("sync", 3, [["x"]])]


def test_a_crd_of_the_same_wave_precedes_its_kind_by_rank() -> None:
    order = order_of(a_thing("dev/v1 Gadget", "a"), a_definition("x", "dev", "Gadget"))

    assert order == [("sync", 0, [["x"], ["a"]])]


def test_hooks_of_a_failure_run_all_at_once_whatever_their_waves() -> None:
    hooks = (
        a_hook("Pod", "b", Phase.SYNC_FAIL, wave=1),
        a_hook("Pod", "a", Phase.SYNC_FAIL, wave=3),
    )

    assert order_of(*hooks) == [("syncfail", 0, [["b", "a"]])]


def test_a_plan_of_many_objects_is_in_order_with_each_namespace_before_its_own() -> None:
    count = 10_000
    things = [a_thing("Pod", f"p{n:05}", namespace=f"n{n % 500}") for n in range(count)]
    spaces = [a_thing("Namespace", f"n{n}", wave=9) for n in range(500)]

    (group,) = group_by_wave((*spaces, *things))

    ordered = [item.ref for batch in group.batches for item in batch]
    place = {ref: at for at, ref in enumerate(ordered)}
    assert len(ordered) == count + 500
    assert all(
        place[space.ref] < place[thing.ref]
        for space in spaces
        for thing in things[:500]
        if thing.ref.namespace == space.ref.name
    )


@pytest.mark.parametrize("wave", [-1, 0, 1])
def test_the_namespace_of_a_unit_is_handed_on_from_the_unit(wave: int) -> None:
    role, space = a_thing("ClusterRole", "role", wave=wave), a_thing("Namespace", "home", wave=7)

    plan = plan_of(a_unit_of(role, space, namespace="home"))

    assert results_by_name(plan) == {f"shop/sync/{wave}": [["home"], ["role"]]}

"""Pruning: which objects are deleted or kept, and in which wave."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.conformance.argocd.objects import a_pod, a_service, in_wave, with_options
from tests.conformance.argocd.stage import ONCE, ArgoStage, case, failure, named, open_stage
from tests.support.builders import make_config_map
from tests.support.objects import held
from tests.support.rollout_runs import Run
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import MINUTE, Ms
from tidegate.model.units.semantics import TIDEGATE
from tidegate.sandbox.faults import CallFault, FaultSelector, Rejection
from tidegate.sandbox.world import Sandbox
from tidegate.world.messages import Forbidden

AT_ONCE = structs.replace(ONCE, pause=Ms(0))
"""For what is there before a case begins."""
OLD = a_pod("old")


def things(*waves: int, options: str = "") -> list[JsonObject]:
    """One object for each wave: `w3`, and `w3b` for a second one of the same wave."""
    made: list[JsonObject] = []
    for place, wave in enumerate(waves):
        name = f"w{wave}{'b' * waves[:place].count(wave)}"
        body = in_wave(wave, make_config_map(name))
        made.append(with_options(options, body) if options else body)
    return made


def kept(*waves: int) -> list[JsonObject]:
    return [in_wave(wave, make_config_map(f"kept{wave}")) for wave in waves]


async def deploy(stage: ArgoStage, *bodies: JsonObject) -> None:
    """Let these be in the cluster, and forget what was done for that."""
    assert (await stage.sync(*bodies, semantics=AT_ONCE)).result == "passed"
    assert stage.record is not None
    await stage.record.mark()


def waves_of(run: Run) -> dict[str, int]:
    """The wave in which each object was pruned."""
    messages = [(item.ref, item.step) for item in run.events_of(EventType.OBJECT_PRUNED)]
    waves = [(ref, step.rpartition("/")[2].partition(".")[0]) for ref, step in messages]
    return {ref.name: int(wave) for ref, wave in waves if ref is not None}


async def order_of(stage: ArgoStage) -> list[str]:
    """What was pruned and written, in order."""
    return [item.rpartition("/")[2] for item in await stage.changes("create", "delete")]


@case(13)
async def test_objects_removed_from_git_are_deleted_before_their_wave_is_written(
    each_stage: ArgoStage,
) -> None:
    stage = each_stage
    await deploy(stage, OLD)

    run = await stage.sync(a_service(), prunes=True)

    assert run.result == "passed"
    assert (named(run, EventType.OBJECT_PRUNED), named(run, EventType.OBJECT_WRITTEN)) == (
        ["old"],
        ["web"],
    )
    assert await stage.changes("create", "delete") == ["delete pods/old", "create services/web"]
    await stage.goes(OLD)


@case(14)
async def test_without_pruning_a_removed_object_stays(stage: ArgoStage) -> None:
    await deploy(stage, OLD)

    run = await stage.sync(a_service())

    assert run.result == "passed"
    assert await stage.changes() == ["create services/web"]


@case(15)
@pytest.mark.parametrize("options", [(), ("Prune=true",), ("Prune=false",)])
async def test_prune_false_keeps_an_object_in_every_sync(
    stage: ArgoStage, options: tuple[str, ...]
) -> None:
    await deploy(stage, with_options("Prune=false", OLD))

    runs = [await stage.sync(a_service(), prunes=True, options=options) for _ in range(2)]

    assert [run.result for run in runs] == ["passed", "passed"]
    assert await stage.changes() == ["create services/web"]


@case(16)
async def test_prune_false_of_a_unit_keeps_all_its_objects(stage: ArgoStage) -> None:
    await deploy(stage, OLD)

    run = await stage.sync(a_service(), prunes=True, options=("Prune=false",))

    assert run.result == "passed"
    assert await stage.changes() == ["create services/web"]


@case(16)
@pytest.mark.parametrize("object_option", ["Prune=true", "Prune=yes"])
async def test_the_prune_option_of_an_object_overrides_that_of_its_unit(
    stage: ArgoStage, object_option: str
) -> None:
    await deploy(stage, with_options(object_option, OLD))

    run = await stage.sync(prunes=True, options=("Prune=false",))

    assert (run.result, named(run, EventType.OBJECT_PRUNED)) == ("passed", ["old"])


@case(17)
@pytest.mark.parametrize(
    ("object_option", "options"),
    [
        ("Prune=confirm", ()),
        ("Prune=confirm", ("Prune=true",)),
        ("Prune=confirm", ("Prune=false",)),
        ("Validate=true", ("Prune=confirm",)),
    ],
)
async def test_prune_confirm_holds_a_wave_until_the_confirmation(
    stage: ArgoStage, object_option: str, options: tuple[str, ...]
) -> None:
    await deploy(stage, with_options(object_option, OLD))
    syncing = await stage.begin_sync(a_service(), prunes=True, options=options)

    waiting = await syncing.waits("Unconfirmed")
    await stage.passes(Ms(10 * MINUTE))
    untouched = await stage.changes()
    await syncing.stops()
    run = await stage.sync(a_service(), prunes=True, options=options, consents=True)

    assert waiting.ref is not None
    assert (waiting.ref.name, untouched) == ("old", [])
    assert (
        named(
            syncing.run, EventType.OBJECT_PRUNED, EventType.OBJECT_WRITTEN, EventType.OBJECT_SKIPPED
        )
        == []
    )
    assert run.result == "passed"
    assert await stage.changes("create", "delete") == ["delete pods/old", "create services/web"]


@case(17)
async def test_prune_confirm_ends_when_the_object_is_gone(stage: ArgoStage) -> None:
    await deploy(stage, with_options("Prune=confirm", OLD))
    syncing = await stage.begin_sync(a_service(), prunes=True)
    await syncing.waits("Unconfirmed")

    await stage.client.delete(await stage.ref(OLD))
    run = await syncing.ends()

    assert (run.result, named(run, EventType.OBJECT_WRITTEN)) == ("passed", ["web"])


@case(18)
async def test_waves_are_pruned_from_the_last_to_the_first(each_stage: ArgoStage) -> None:
    stage = each_stage
    await deploy(stage, *things(0, 1, 2, 3, 4))

    run = await stage.sync(prunes=True, semantics=AT_ONCE)

    assert run.result == "passed"
    pruned = await stage.changes("delete")
    assert pruned == [f"delete configmaps/w{wave}" for wave in (4, 3, 2, 1, 0)]


@case(19, 20)
@pytest.mark.parametrize(
    ("stays", "goes", "order"),
    [
        ((0, 2, 4), (0, 4), "w4 kept0 w0 kept2 kept4"),
        ((0, 2), (0, 1, 2), "w2 kept0 w1 w0 kept2"),
        ((0, 2), (1, 3, 4), "kept0 w4 w3 w1 kept2"),
        ((-1, 3, 5), (1, 3, 3, 4, 5), "kept-1 w5 w4 w3 w3b w1 kept3 kept5"),
    ],
)
async def test_the_waves_of_what_is_left_to_prune_are_reversed_again_after_each_deletion(
    stage: ArgoStage, stays: tuple[int, ...], goes: tuple[int, ...], order: str
) -> None:
    await deploy(stage, *things(*goes))

    run = await stage.sync(*kept(*stays), prunes=True)

    assert (run.result, await order_of(stage)) == ("passed", order.split())


@case(19)
async def test_an_object_that_is_never_pruned_keeps_the_waves_of_the_others_reversed(
    stage: ArgoStage,
) -> None:
    await deploy(stage, *things(0, 2), *things(4, options="Prune=false"))

    run = await stage.sync(*kept(1), prunes=True)

    assert await order_of(stage) == ["kept1", "w2", "w0"]
    assert waves_of(run) == {"w2": 2, "w0": 4}


@case(19)
async def test_with_tidegate_semantics_pruned_objects_swap_waves_once(stage: ArgoStage) -> None:
    await deploy(stage, *things(0, 4))

    await stage.sync(*kept(0, 2, 4), prunes=True, semantics=TIDEGATE)

    assert await order_of(stage) == ["w4", "kept0", "kept2", "w0", "kept4"]


@case(21)
@pytest.mark.parametrize(
    ("stays", "goes", "last"), [(0, (1, 2, 3, 4), 5), (0, (0,), 1), (2, (1, 7), 8)]
)
async def test_prune_last_of_a_unit_prunes_in_one_wave_after_all_others(
    stage: ArgoStage, stays: int, goes: tuple[int, ...], last: int
) -> None:
    await deploy(stage, *things(*goes))

    run = await stage.sync(*kept(stays), prunes=True, options=("PruneLast=true",))

    assert run.result == "passed"
    assert waves_of(run) == {f"w{wave}": last for wave in goes}


@case(22)
async def test_prune_last_of_an_object_does_not_move_other_objects(
    stage: ArgoStage,
) -> None:
    last = things(3, options="PruneLast=true")
    await deploy(stage, *things(1, 2, 4), *last)

    await stage.sync(*kept(0), prunes=True)

    assert await order_of(stage) == ["kept0", "w4", "w2", "w1", "w3"]


@case(23)
async def test_a_wave_is_pruned_after_the_previously_pruned_objects_are_gone(
    each_stage: ArgoStage,
) -> None:
    stage = each_stage
    first, second, third = things(1, 2, 3)
    await deploy(stage, first, held(second), third)

    syncing = await stage.begin_sync(prunes=True)
    waiting = await syncing.waits("Deleting")
    while_held = await stage.changes("delete")
    freed: JsonObject = {"metadata": {"finalizers": None}}
    await stage.client.patch(await stage.ref(second), freed)
    run = await syncing.ends()

    assert waiting.ref == await stage.ref(second)
    assert while_held == ["delete configmaps/w3", "delete configmaps/w2"]
    assert run.result == "passed"
    assert await stage.changes("delete") == [*while_held, "delete configmaps/w1"]


@case(24)
async def test_a_rejected_deletion_fails_the_sync() -> None:
    refused = CallFault(
        Rejection(Forbidden("not today")), FaultSelector(verbs=("delete",), name="old")
    )
    stage = await open_stage(Sandbox(faults=(refused,)))
    await deploy(stage, OLD)

    run = await stage.sync(a_service(), prunes=True)

    assert run.result == "failed"
    assert "not today" in failure(run)
    assert named(run, EventType.OBJECT_REFUSED) == ["old"]
    assert await stage.changes() == []

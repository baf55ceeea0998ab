"""Deletions that are interrupted, that fail, or that come once more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.deletions import (
    JOB,
    SETTINGS,
    a_directory,
    a_hook,
    a_setting,
    delete,
    deletion_of,
    deploy,
    names,
    remembered_of,
    run,
)
from tests.support.sessions import a_session
from tests.support.unit_trees import make_unit_manifests
from tidegate.actions.delete import finish_deletion, plan_deletion
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.engine.driver import Driver, drive
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.units.unit import Unit
from tidegate.rollout.run import RolloutOptions, build_driver
from tidegate.sandbox.world import Sandbox
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.protocol import World

FAILING = "behaviours:\n- {effect: fails, when: {image: 'busybox:1'}}\n"


async def stopped_at(world: World, chosen: Unit, at: Callable[[Event], bool]) -> list[Event]:
    """A deletion that is stopped at an event."""
    session = a_session(world)
    plan = (await plan_deletion(await make_unit_manifests(chosen, session), session)).plan
    events: list[Event] = []
    driver: Driver

    def on_event(event: Event) -> None:
        events.append(event)
        if at(event):
            driver.stop("somebody wants it so")

    driver = build_driver(plan, session, RolloutOptions(holder="stopped"), on_event)
    assert await drive(driver) == "stopped"
    return events


def passes(step: str) -> Callable[[Event], bool]:
    return lambda event: (event.type, event.step) == (EventType.STEP_PASSED, f"default/shop/{step}")


def ran(events: list[Event]) -> list[str]:
    """The hooks that were written."""
    written = (event for event in events if event.type is EventType.OBJECT_WRITTEN)
    return [event.ref.name for event in written if event.ref is not None]


def a_failing(folder: Path) -> World:
    """A cluster in which hooks fail until they are fixed."""
    scenario = folder / "scenario.yaml"
    scenario.write_text(FAILING)
    return build_sandbox(SimulationConfig(scenario=scenario))


def fix(path: Path) -> None:
    path.write_text(path.read_text().replace("busybox:1", "busybox:2"))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("hook", ["goodbye", "goodbye-"])
@pytest.mark.parametrize("step", ["predelete", "delete/7", "delete/0"])
async def test_finished_hooks_do_not_run_again_when_a_deletion_continues(
    shop: Path, step: str, hook: str
) -> None:
    world = build_sandbox(SimulationConfig())
    farewell = a_hook(hook, "PreDelete")
    chosen = a_directory(shop, a_setting("low", -3), a_setting("a"), a_setting("b", 7), farewell)
    await deploy(world, chosen)

    begun = await stopped_at(world, chosen, passes(step))
    resumed = await delete(world, chosen)

    assert (len(ran(begun)), ran(resumed)) == (1, [])
    assert (await names(world, SETTINGS), await names(world, JOB)) == ([], [])
    assert (await remembered_of(world, chosen)).secrets == ()


async def test_a_hook_that_is_another_one_now_runs(shop: Path) -> None:
    world = build_sandbox(SimulationConfig())
    chosen = a_directory(shop, a_setting("one"), a_hook("goodbye", "PreDelete"))
    await deploy(world, chosen)
    await stopped_at(world, chosen, passes("predelete"))
    fix(shop / "1.yaml")

    assert ran(await delete(world, chosen)) == ["goodbye"]


async def test_the_last_hooks_run_when_a_deletion_is_resumed(
    shop: Path,
) -> None:
    world = build_sandbox(SimulationConfig())
    chosen = a_directory(shop, a_setting("one"), a_hook("sweep", "PostDelete"))
    await deploy(world, chosen)
    await stopped_at(world, chosen, passes("delete/0"))

    deletion = await deletion_of(chosen, world)
    events = await delete(world, chosen)

    assert (deletion.deleted, deletion.is_needed) == ((), True)
    assert ran(events) == ["sweep"]
    assert await names(world, JOB) == ["sweep"]


async def test_a_deletion_that_is_done_has_nothing_more_to_do(shop: Path) -> None:
    world = build_sandbox(SimulationConfig())
    assert isinstance(world, Sandbox)
    hooks = a_hook("goodbye", "PreDelete"), a_hook("sweep", "PostDelete")
    chosen = a_directory(shop, a_setting("one"), *hooks)
    await deploy(world, chosen)
    await delete(world, chosen)
    store = world.clusters[""].server.store
    before = store.version

    deletion = await deletion_of(chosen, world)
    await finish_deletion(deletion, Dispatcher(world))

    assert (deletion.deleted, deletion.is_needed) == ((), False)
    assert store.version == before


async def test_an_already_deleted_object_causes_no_lease_and_no_write(shop: Path) -> None:
    world = build_sandbox(SimulationConfig())
    assert isinstance(world, Sandbox)
    chosen = a_directory(shop, a_setting("one"))
    await deploy(world, chosen)
    deletion = await deletion_of(chosen, world)
    await delete(world, chosen)
    store = world.clusters[""].server.store
    before = store.version

    events = await run(world, deletion.plan)

    assert events[-1].reason == "passed"
    assert store.version == before


async def test_a_hook_that_fails_keeps_everything_and_runs_again_the_next_time(
    shop: Path,
) -> None:
    world = a_failing(shop.parent)
    chosen = a_directory(shop, a_setting("one"), a_hook("goodbye", "PreDelete"))
    await deploy(world, chosen)

    tries = [await run(world, (await deletion_of(chosen, world)).plan) for _ in range(2)]
    kept = await names(world, SETTINGS)
    fix(shop / "1.yaml")
    events = await delete(world, chosen)

    assert [(item[-1].reason, ran(item)) for item in tries] == [("failed", ["goodbye"])] * 2
    assert kept == ["one"]
    assert ran(events) == ["goodbye"]
    assert await names(world, SETTINGS) == []


async def test_hooks_with_generated_names_of_earlier_syncs_are_deleted(shop: Path) -> None:
    world = build_sandbox(SimulationConfig())
    chosen = a_directory(shop, a_setting("one"), a_hook("check-", "PostSync"))
    await deploy(world, chosen)
    (shop / "0.yaml").write_text(a_setting("one", 1))
    await deploy(world, chosen)
    created = await names(world, JOB)

    await delete(world, chosen)

    assert len(created) == 2
    assert await names(world, JOB) == []

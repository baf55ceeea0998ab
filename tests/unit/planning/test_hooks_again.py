"""Hooks of rollouts that failed: they run again when it is tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.deletions import a_directory, a_hook, a_setting, run
from tests.support.sessions import a_session, ruled
from tests.support.unit_trees import make_unit_tree
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.units.semantics import ARGOCD, TIDEGATE, Semantics
from tidegate.model.units.unit import Unit
from tidegate.planning.preparation import prepare_plan
from tidegate.world.protocol import World

NO_SETTINGS = "faults: [{effect: error, when: {verb: apply, name: one}, times: %s}]\n"
OFTEN = 6
"""Errors of a server that are retried are not reported."""
FAILING = "behaviours: [{effect: fails, when: {kind: Job, name: check}}]\n"


def a_cluster(folder: Path, scenario: str) -> World:
    path = folder / "scenario.yaml"
    path.write_text(scenario)
    return build_sandbox(SimulationConfig(scenario=path))


async def sync(world: World, chosen: Unit, rules: Semantics = TIDEGATE) -> list[Event]:
    session = a_session(world)
    family = await make_unit_tree(ruled(chosen, semantics=rules), session)
    planned = await prepare_plan([family], session)
    return await run(world, planned.plan)


def ran(events: list[Event]) -> list[str]:
    """The hooks that were written, each time."""
    written = [event.ref for event in events if event.type is EventType.OBJECT_WRITTEN]
    return [ref.name for ref in written if ref is not None and ref.kind.name == "Job"]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


async def test_a_hook_that_failed_runs_again_with_the_next_rollout(shop: Path) -> None:
    world = a_cluster(shop.parent, FAILING)
    chosen = a_directory(shop, a_setting("one"), a_hook("check", "PreSync"))

    tries = [await sync(world, chosen) for _ in range(2)]

    assert [(item[-1].reason, ran(item)) for item in tries] == [("failed", ["check"])] * 2


async def test_syncfail_hooks_run_again_for_the_next_failure(shop: Path) -> None:
    world = a_cluster(shop.parent, NO_SETTINGS % 100)
    chosen = a_directory(shop, a_setting("one"), a_hook("sorry", "SyncFail"))

    tries = [await sync(world, chosen) for _ in range(2)]

    assert [(item[-1].reason, ran(item)) for item in tries] == [("failed", ["sorry"])] * 2


@pytest.mark.parametrize(("rules", "times"), [(TIDEGATE, 1), (ARGOCD, 2)], ids=["ours", "argocd"])
async def test_a_retry_runs_hooks_again_where_everything_starts_over(
    shop: Path, rules: Semantics, times: int
) -> None:
    world = a_cluster(shop.parent, NO_SETTINGS % OFTEN)
    chosen = a_directory(shop, a_setting("one"), a_hook("check", "PreSync"))

    events = await sync(world, chosen, rules)

    assert (events[-1].reason, ran(events)) == ("passed", ["check"] * times)

"""Two directories do not share a name, unless the user says that one has moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.deletions import SETTINGS, a_setting, deploy, names, run
from tests.support.sessions import a_session
from tests.support.unit_trees import make_unit_tree
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.errors import PlanError
from tidegate.model.units.policy import Policy
from tidegate.model.units.unit import Unit
from tidegate.planning.preparation import prepare_plan
from tidegate.workspace.request import unit_for_path

PRUNES = Policy(prune=True)


def a_repository(root: Path) -> Path:
    """Two apps, each with an overlay of the same name."""
    (root / ".git").mkdir()
    for app in ("web", "api"):
        folder = root / app / "overlays" / "prod"
        folder.mkdir(parents=True)
        (folder / "settings.yaml").write_text(a_setting(app))
    return root


def a_unit(root: Path, app: str, policy: Policy = PRUNES, name: str = "") -> Unit:
    return unit_for_path(str(root / app / "overlays" / "prod"), policy, name=name)


async def test_overlays_with_the_same_name_do_not_affect_each_other(tmp_path: Path) -> None:
    root, world = a_repository(tmp_path), build_sandbox(SimulationConfig())

    for app in ("web", "api", "web"):
        await deploy(world, a_unit(root, app))

    assert await names(world, SETTINGS) == ["api", "web"]


async def test_a_name_that_another_directory_has_is_refused_before_the_first_write(
    tmp_path: Path,
) -> None:
    root, world = a_repository(tmp_path), build_sandbox(SimulationConfig())
    await deploy(world, a_unit(root, "web", name="shop"))

    session = a_session(world)
    family = await make_unit_tree(a_unit(root, "api", name="shop"), session)
    plan = (await prepare_plan([family], session)).plan
    with pytest.raises(PlanError) as caught:
        await run(world, plan)

    assert caught.value.code == "plan.name"
    assert "`web/overlays/prod`" in caught.value.problem
    assert "`api/overlays/prod`" in caught.value.problem
    assert await names(world, SETTINGS) == ["web"]


async def test_a_directory_that_has_moved_keeps_its_name_and_its_objects(tmp_path: Path) -> None:
    root, world = a_repository(tmp_path), build_sandbox(SimulationConfig())
    await deploy(world, a_unit(root, "web", name="shop"))

    moved = Policy(prune=True, adopt_name=True)
    await deploy(world, a_unit(root, "api", moved, name="shop"))
    await deploy(world, a_unit(root, "api", name="shop"))

    assert await names(world, SETTINGS) == ["api"]

"""What a plan shows of objects that are replaced, after they were."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.support.deletions import SETTINGS, a_directory, a_setting, deploy, preview_of
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.model.k8s.objects import ClusterRef, Ref
from tidegate.model.plans.change import DiffAction
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import is_error
from tidegate.world.one_shot import send_requests
from tidegate.world.protocol import World
from tidegate.world.requests import Verb, Write

ONE = Ref(SETTINGS, "default", "one")


async def add(world: World, manager: str) -> None:
    """Another client adds a field to the object."""
    body = msgspec.json.encode({"data": {manager: "here"}})
    (outcome,) = await send_requests(
        Dispatcher(world), Write(verb=Verb.PATCH, ref=ONE, body=body, manager=manager)
    )
    assert not is_error(outcome)


async def test_only_fields_added_by_users_cause_a_replacement(tmp_path: Path) -> None:
    world = build_sandbox(SimulationConfig())
    chosen = a_directory(tmp_path, a_setting("one"), options=("Replace=true",))
    await deploy(world, chosen)

    await add(world, "some-controller")
    kept = (await preview_of(chosen, world)).differences[ClusterRef("", ONE)]
    await add(world, "kubectl-edit")
    result = (await preview_of(chosen, world)).differences[ClusterRef("", ONE)]

    assert kept.action is DiffAction.KEEP
    assert result.action is DiffAction.REPLACE
    assert [field.path for field in result.fields] == ["data.kubectl-edit"]

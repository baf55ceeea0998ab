"""A unit is created and deleted again, on one cluster."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from tests.support.builders import make_object
from tests.support.deletions import (
    JOB,
    SECRET,
    SETTINGS,
    a_directory,
    a_hook,
    a_setting,
    delete,
    deletion_of,
    deploy,
    names,
    remembered_of,
    waves_of,
)
from tests.support.sessions import a_session
from tests.support.unit_trees import make_unit_manifests
from tidegate.actions.delete import plan_deletion
from tidegate.clusters.journal import delete_record
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.engine.driver import drive
from tidegate.engine.records.heartbeat import lease_ref
from tidegate.engine.records.storage import TIDEGATE_NAMESPACE, build_secret_write, read_head
from tidegate.model.k8s.kinds import LEASE
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.policy import Policy
from tidegate.plan.build.build import plan_unit
from tidegate.rollout.run import RolloutOptions, build_driver
from tidegate.workspace.request import unit_for_path
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import Success, is_error
from tidegate.world.one_shot import send_requests
from tidegate.world.protocol import World
from tidegate.world.requests import Get, Verb, Write

FIRST = Path(__file__).parents[3] / "examples" / "first"


async def test_created_objects_are_deleted_in_reverse_order_and_nothing_is_left() -> None:
    world = build_sandbox(SimulationConfig())
    chosen = unit_for_path(str(FIRST), namespace="default")
    await deploy(world, chosen)

    events = await delete(world, chosen)

    pruned = {event.ref for event in events if event.type is EventType.OBJECT_PRUNED}
    assert waves_of(events) == [1, 0, -1, -2, -3]
    assert len(pruned) == 10
    again = await deletion_of(chosen, world)
    assert (again.deleted, again.remaining) == ((), ())
    assert await names(world, JOB) == []


async def test_a_wave_is_deleted_after_the_previous_one_is_gone(tmp_path: Path) -> None:
    world = build_sandbox(SimulationConfig())
    chosen = a_directory(tmp_path, a_setting("early", -1), a_setting("late", 5))
    await deploy(world, chosen)

    events = await delete(world, chosen)

    steps = [(event.type, event.step) for event in events]
    last_passed = steps.index((EventType.STEP_PASSED, "default/shop/delete/5"))
    first_begins = steps.index((EventType.STEP_APPLYING, "default/shop/delete/-1"))
    assert last_passed < first_begins


async def test_journal_and_lease_are_deleted_with_their_unit(tmp_path: Path) -> None:
    world = build_sandbox(SimulationConfig())
    chosen = a_directory(tmp_path, a_setting("one"))
    await deploy(world, chosen)
    before = await remembered_of(world, chosen)

    await delete(world, chosen)

    after = await remembered_of(world, chosen)
    assert len(before.secrets) == 1
    assert after.secrets == ()
    assert await names(world, SECRET, TIDEGATE_NAMESPACE) == []
    assert await names(world, LEASE, TIDEGATE_NAMESPACE) == []


async def test_delete_hooks_run_before_and_after(tmp_path: Path) -> None:
    world = build_sandbox(SimulationConfig())
    chosen = a_directory(
        tmp_path,
        a_setting("one"),
        a_hook("goodbye", "PreDelete"),
        a_hook("sweep", "PostDelete", "HookSucceeded"),
    )
    await deploy(world, chosen)
    created = await names(world, JOB)

    events = await delete(world, chosen)

    passed = [event.step for event in events if event.type is EventType.STEP_PASSED]
    assert created == []
    assert passed == [f"default/shop/{step}" for step in ("predelete", "delete/0", "postdelete")]
    assert await names(world, JOB) == []


async def test_hooks_of_earlier_syncs_are_deleted(tmp_path: Path) -> None:
    world = build_sandbox(SimulationConfig())
    chosen = a_directory(tmp_path, a_setting("one"), a_hook("check", "PostSync"))
    await deploy(world, chosen)
    created = await names(world, JOB)

    await delete(world, chosen)

    assert created == ["check"]
    assert await names(world, JOB) == []


async def test_objects_removed_from_the_directory_are_deleted(tmp_path: Path) -> None:
    world = build_sandbox(SimulationConfig())
    chosen = a_directory(tmp_path, a_setting("one"), a_setting("two"))
    await deploy(world, chosen)
    (tmp_path / "1.yaml").unlink()

    await delete(world, chosen)

    assert await names(world, SETTINGS) == []


async def test_objects_with_delete_false_are_kept(tmp_path: Path) -> None:
    world = build_sandbox(SimulationConfig())
    kept = a_setting("kept", sync_options="Delete=false")
    chosen = a_directory(tmp_path, a_setting("one"), kept)
    await deploy(world, chosen)

    deletion = await deletion_of(chosen, world)
    await delete(world, chosen)

    assert [ref.name for ref in deletion.remaining] == ["kept"]
    assert deletion.unconfirmed == ()
    assert await names(world, SETTINGS) == ["kept"]


@pytest.mark.parametrize(("confirmed", "left"), [(False, ["precious"]), (True, [])])
async def test_an_object_that_needs_a_confirmation_is_deleted_only_with_it(
    tmp_path: Path,
    confirmed: bool,  # noqa: FBT001 - a parameter of the test
    left: list[str],
) -> None:
    world = build_sandbox(SimulationConfig())
    asks = a_setting("precious", sync_options="Delete=confirm")
    chosen = a_directory(tmp_path, a_setting("one"), asks)
    await deploy(world, chosen)

    await delete(world, chosen, confirmed=confirmed)

    journal = (await remembered_of(world, chosen)).journal
    assert await names(world, SETTINGS) == left
    assert [ref.name for ref in journal.entries] == left, "it can still be deleted"


async def test_objects_of_another_unit_are_kept(tmp_path: Path) -> None:
    world = build_sandbox(SimulationConfig())
    chosen = a_directory(tmp_path, a_setting("one"))
    other = unit_for_path(str(tmp_path), name="other", namespace="default")
    await deploy(world, chosen)
    await deploy(world, other)

    deletion = await deletion_of(chosen, world)

    assert deletion.deleted == ()


@pytest.mark.parametrize("is_alive", [True, False])
async def test_the_record_of_a_held_unit_stays_while_its_holder_is_alive(
    tmp_path: Path, *, is_alive: bool
) -> None:
    world = build_sandbox(SimulationConfig())
    chosen = a_directory(tmp_path, a_setting("one"))
    await deploy(world, chosen)
    (record,) = (await remembered_of(world, chosen)).secrets
    await hold(world, record, "another")
    if is_alive:
        ref = lease_ref("another")
        body = make_object("coordination.k8s.io/v1 Lease", ref.name, namespace=ref.namespace)
        write = Write(verb=Verb.CREATE, ref=ref, body=msgspec.json.encode(body))
        (made,) = await send_requests(Dispatcher(world), write)
        assert not is_error(made)

    gone = await delete_record(plan_unit(chosen), Dispatcher(world))

    assert gone is not is_alive
    assert len((await remembered_of(world, chosen)).secrets) == int(is_alive)


async def hold(world: World, record: Ref, holder: str) -> None:
    """Set the holder of a unit in its record."""
    (send_request,) = await send_requests(Dispatcher(world), Get(record))
    assert isinstance(send_request, Success)
    assert send_request.live is not None
    head = read_head(send_request.live)
    held = build_secret_write(
        record, "", structs.replace(head, holder=holder), send_request.live.resource_version
    )
    (outcome,) = await send_requests(Dispatcher(world), held)
    assert not is_error(outcome)


async def test_a_stopped_deletion_continues(tmp_path: Path) -> None:
    world = build_sandbox(SimulationConfig())
    held = a_setting("held", 1).replace('"name"', '"finalizers":["example.com/held"],"name"')
    chosen = a_directory(tmp_path, a_setting("early"), held, a_setting("late", 2))
    await deploy(world, chosen)
    session = a_session(world)
    plan = (await plan_deletion(await make_unit_manifests(chosen, session), session)).plan
    stopped = build_driver(plan, session, RolloutOptions(holder="stopped"), lambda _: None)
    result = await drive(stopped, until=Ms(world.now() + 5 * SECOND))
    left = await names(world, SETTINGS)
    freed = b'{"metadata":{"finalizers":null}}'
    ref = Ref(SETTINGS, "default", "held")
    (outcome,) = await send_requests(Dispatcher(world), Write(verb=Verb.PATCH, ref=ref, body=freed))

    events = await delete(world, chosen)

    assert (result, left) == ("stopped", ["early", "held"])
    assert not is_error(outcome)
    assert waves_of(events) == [0]
    assert await names(world, SETTINGS) == []
    assert (await remembered_of(world, chosen)).secrets == ()


async def test_a_namespace_that_was_created_stays(tmp_path: Path) -> None:
    world = build_sandbox(SimulationConfig())
    a_directory(tmp_path, a_setting("one"))
    policy = Policy(create_namespace=True)
    chosen = unit_for_path(str(tmp_path), policy, name="shop", namespace="web")
    await deploy(world, chosen)

    await delete(world, chosen)

    assert await names(world, SETTINGS, "web") == []
    assert "web" in await names(world, Kind("", "v1", "Namespace"), "")


async def test_a_sync_of_a_part_forgets_nothing_of_the_rest(tmp_path: Path) -> None:
    world = build_sandbox(SimulationConfig())
    chosen = a_directory(tmp_path, a_setting("one"), a_setting("two"))
    await deploy(world, chosen)
    (tmp_path / "0.yaml").write_text(a_setting("one", 3))

    await deploy(world, chosen, ":ConfigMap:one")

    deletion = await deletion_of(chosen, world)
    assert [ref.name for ref in deletion.deleted] == ["one", "two"]
    journal = (await remembered_of(world, chosen)).journal
    assert sorted(ref.name for ref in journal.entries) == ["one", "two"]

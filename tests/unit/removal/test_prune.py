"""What has left a directory is pruned, left alone, or asked about, on one cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import pytest

from tests.support.deletions import (
    SETTINGS,
    a_directory,
    a_hook,
    a_setting,
    deploy,
    names,
    remembered_of,
    run,
)
from tests.support.rollout_runs import PolicyChanges
from tests.support.sessions import a_session, ruled
from tests.support.unit_trees import make_unit_tree
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.errors import PlanError
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.units.semantics import ARGOCD, TIDEGATE, Semantics
from tidegate.model.units.unit import Unit
from tidegate.planning.preparation import prepare_plan
from tidegate.sandbox.world import Sandbox
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import is_error
from tidegate.world.one_shot import send_requests
from tidegate.world.protocol import World
from tidegate.world.requests import Verb, Write

REPLICA_SET = Kind("apps", "v1", "ReplicaSet")
POD = Kind("", "v1", "Pod")
GADGET = Kind("example.org", "v1", "Gadget")
GADGETS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: %s, storage: false, schema: {openAPIV3Schema: {type: object}}}
"""
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "busybox:1"}]}
"""


async def prune(world: World, unit: Unit, **changes: Unpack[PolicyChanges]) -> list[Event]:
    pruning = ruled(ruled(unit, prune=True), **changes)
    session = a_session(world)
    plan = (await prepare_plan([await make_unit_tree(pruning, session)], session)).plan
    events = await run(world, plan)
    assert events[-1].reason == "passed"
    return events


def list_messages(events: list[Event], kind: EventType) -> list[str]:
    return [event.ref.name for event in events if event.type is kind and event.ref is not None]


async def synced_world(
    folder: Path, leaving: str, *more: str, options: tuple[str, ...] = ()
) -> World:
    """A cluster with a unit of which something has just left its directory."""
    world = build_sandbox(SimulationConfig())
    await deploy(world, a_directory(folder, a_setting("stays"), *more, leaving, options=options))
    (folder / f"{1 + len(more)}.yaml").unlink()
    return world


async def remembered(world: World, chosen: Unit) -> list[str]:
    return sorted(ref.name for ref in (await remembered_of(world, chosen)).journal.entries)


async def test_an_object_that_requires_confirmation_is_kept_without_writes(tmp_path: Path) -> None:
    asking = a_setting("precious", sync_options="Prune=confirm")
    world = await synced_world(tmp_path, asking, a_hook("check", "PreSync"))
    assert isinstance(world, Sandbox)
    store, chosen = world.clusters[""].server.store, a_directory(tmp_path)
    first = await prune(world, chosen)
    before = store.version

    again = await prune(world, chosen)

    assert [list_messages(item, EventType.OBJECT_SKIPPED) for item in (first, again)] == [
        ["precious"]
    ] * 2
    assert list_messages(first, EventType.OBJECT_PRUNED) == []
    assert store.version == before, "there was nothing to do, and no hook to run"


async def test_an_object_that_needs_a_confirmation_is_pruned_only_with_it(tmp_path: Path) -> None:
    world = await synced_world(tmp_path, a_setting("precious", sync_options="Prune=confirm"))

    events = await prune(world, a_directory(tmp_path), confirmed=True)

    assert list_messages(events, EventType.OBJECT_PRUNED) == ["precious"]
    assert await names(world, SETTINGS) == ["stays"]


async def test_a_kept_object_does_not_keep_others_of_its_wave(tmp_path: Path) -> None:
    asking = a_setting("precious", sync_options="Prune=confirm")
    world = await synced_world(tmp_path, asking, a_setting("old"))
    (tmp_path / "1.yaml").write_text(a_setting("new"))

    events = await prune(world, a_directory(tmp_path))

    assert list_messages(events, EventType.OBJECT_PRUNED) == ["old"]
    assert await names(world, SETTINGS) == ["new", "precious", "stays"]


@pytest.mark.parametrize("how", ["foreground", "background"])
async def test_dependents_of_a_pruned_object_are_deleted(tmp_path: Path, how: str) -> None:
    options = (f"PrunePropagationPolicy={how}",)
    world = await synced_world(tmp_path, WEB, options=options)

    events = await prune(world, a_directory(tmp_path, options=options))

    assert list_messages(events, EventType.OBJECT_PRUNED) == ["web"]
    assert (await names(world, POD) == []) is (how == "foreground"), "it may still be ending"


async def test_orphan_propagation_keeps_dependents_of_a_pruned_object(tmp_path: Path) -> None:
    options = ("PrunePropagationPolicy=orphan",)
    world = await synced_world(tmp_path, WEB, options=options)

    events = await prune(world, a_directory(tmp_path, options=options))

    assert list_messages(events, EventType.OBJECT_PRUNED) == ["web"]
    assert len(await names(world, REPLICA_SET)) == 1


@pytest.mark.parametrize("semantics", [TIDEGATE, ARGOCD], ids=lambda rules: rules.name)
async def test_a_pruned_object_is_removed_from_the_journal(
    tmp_path: Path, semantics: Semantics
) -> None:
    world = await synced_world(tmp_path, a_setting("old"))
    chosen = a_directory(tmp_path)

    events = await prune(world, chosen, semantics=semantics)

    assert list_messages(events, EventType.OBJECT_PRUNED) == ["old"]
    assert await remembered(world, chosen) == ["stays"]


async def test_an_object_deleted_by_another_client_leaves_the_record_with_the_next_write(
    tmp_path: Path,
) -> None:
    world = await synced_world(tmp_path, a_setting("old"))
    chosen = a_directory(tmp_path, a_setting("stays", 2))
    ref = Ref(SETTINGS, "default", "old")
    (outcome,) = await send_requests(Dispatcher(world), Write(verb=Verb.DELETE, ref=ref))

    events = await prune(world, chosen)

    assert not is_error(outcome)
    assert list_messages(events, EventType.OBJECT_PRUNED) == []
    assert await remembered(world, chosen) == ["stays"]


async def test_an_object_of_a_removed_version_is_pruned_in_another_version(
    tmp_path: Path,
) -> None:
    world = build_sandbox(SimulationConfig())
    gadget = "apiVersion: example.org/v1beta1\nkind: Gadget\nmetadata: {name: old}\n"
    await deploy(world, a_directory(tmp_path, GADGETS % "true", gadget))
    (tmp_path / "1.yaml").unlink()
    options = ("PrunePropagationPolicy=background",)
    chosen = a_directory(tmp_path, GADGETS % "false", options=options)
    await deploy(world, chosen)

    events = await prune(world, chosen)

    assert list_messages(events, EventType.OBJECT_PRUNED) == ["old"]
    assert await names(world, GADGET) == []
    assert await remembered(world, chosen) == ["gadgets.example.org"]


async def test_a_part_of_a_unit_is_not_pruned(tmp_path: Path) -> None:
    pruning = ruled(a_directory(tmp_path), prune=True)

    session = a_session(build_sandbox(SimulationConfig()))
    family = await make_unit_tree(pruning, session)
    with pytest.raises(PlanError) as caught:
        await prepare_plan([family], session, (":ConfigMap:one",))

    assert caught.value.code == "plan.partial"

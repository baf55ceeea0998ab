"""Deletion of units: the order, the objects that stay, and the hooks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.argocd.stage import ONCE, case
from tests.support.deletions import (
    JOB,
    SETTINGS,
    a_directory,
    a_hook,
    a_setting,
    delete,
    deploy,
    names,
    run,
)
from tests.support.repositories import three_levels
from tests.support.sessions import a_session, ruled
from tests.support.unit_trees import make_unit_manifests
from tidegate.actions.delete import plan_deletion, plan_deletions
from tidegate.actions.rollout_plan import prepare_rollout
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.clusters.session import ClusterTargets
from tidegate.model.k8s.objects import Kind
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import Event, EventType, RolloutOutcome
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import Ms
from tidegate.rollout.run import RolloutOptions, roll_out
from tidegate.workspace.rendering.context import user_render_settings
from tidegate.workspace.request import LoadRequest
from tidegate.workspace.workspace import open_workspace

DEFINITIONS = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
FAILING = "behaviours:\n- {effect: fails, when: {image: 'busybox:1'}}\n"
KEPT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: kept-by-helm, annotations: {helm.sh/resource-policy: keep}}
"""
GADGETS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""


def pruned(events: list[Event]) -> list[str]:
    messages = (event for event in events if event.type is EventType.OBJECT_PRUNED)
    return [event.ref.name for event in messages if event.ref is not None]


@case(63)
async def test_waves_are_deleted_from_the_highest_to_the_lowest_each_at_once(
    tmp_path: Path,
) -> None:
    world = build_sandbox(SimulationConfig())
    waves = {"a": 1, "b": 5, "c": 7, "d": 7, "e": 4}
    chosen = a_directory(tmp_path, *(a_setting(name, wave) for name, wave in waves.items()))
    await deploy(world, chosen)

    events = await delete(world, ruled(chosen, semantics=ONCE))

    first, second, *others = pruned(events)
    assert (sorted([first, second]), others) == (["c", "d"], ["b", "e", "a"])


@case(63)
async def test_objects_with_delete_false_and_crds_are_kept(tmp_path: Path) -> None:
    world = build_sandbox(SimulationConfig())
    kept = a_setting("kept", sync_options="Delete=false")
    chosen = a_directory(tmp_path, a_setting("one"), kept, KEPT, GADGETS)
    await deploy(world, chosen)

    await delete(world, ruled(chosen, semantics=ONCE))

    assert await names(world, SETTINGS) == ["kept", "kept-by-helm"]
    assert "gadgets.example.org" in await names(world, DEFINITIONS, "")


@case(63)
async def test_the_delete_option_of_an_object_overrides_that_of_its_unit(tmp_path: Path) -> None:
    world = build_sandbox(SimulationConfig())
    setting = a_setting("own", sync_options="Delete=foo")
    chosen = a_directory(tmp_path, a_setting("one"), setting, options=("Delete=false",))
    await deploy(world, chosen)

    await delete(world, ruled(chosen, semantics=ONCE))

    assert await names(world, SETTINGS) == ["one"]


@case(64)
async def test_a_failed_pre_delete_hook_blocks_the_deletion_until_it_is_fixed(
    tmp_path: Path,
) -> None:
    scenario, shop = tmp_path / "scenario.yaml", tmp_path / "shop"
    scenario.write_text(FAILING)
    shop.mkdir()
    world = build_sandbox(SimulationConfig(scenario=scenario))
    chosen = a_directory(shop, a_setting("one"), a_hook("goodbye", "PreDelete"))
    await deploy(world, chosen)

    session = a_session(world)
    ending = await plan_deletion(
        await make_unit_manifests(ruled(chosen, semantics=ONCE), session), session
    )
    failed = await run(world, ending.plan)
    kept = await names(world, SETTINGS)
    hook = shop / "1.yaml"
    hook.write_text(hook.read_text().replace("busybox:1", "busybox:2"))
    await delete(world, ruled(chosen, semantics=ONCE))

    assert (failed[-1].reason, pruned(failed), kept) == ("failed", [], ["one"])
    assert (await names(world, SETTINGS), await names(world, JOB)) == ([], [])


@case(64)
@pytest.mark.parametrize(
    ("policy", "left"), [("BeforeHookCreation", ["sweep"]), ("HookSucceeded", [])]
)
async def test_a_post_delete_hook_is_kept_unless_its_policy_deletes_it(
    tmp_path: Path, policy: str, left: list[str]
) -> None:
    world = build_sandbox(SimulationConfig())
    chosen = a_directory(tmp_path, a_setting("one"), a_hook("sweep", "PostDelete", policy))
    await deploy(world, chosen)

    await delete(world, ruled(chosen, semantics=ONCE))

    assert (await names(world, SETTINGS), await names(world, JOB)) == ([], left)


class _EventRecorder:
    """Records the events of a rollout."""

    def __init__(self) -> None:
        self.progress = RolloutProgress(Ms(0))
        self.events: list[Event] = []

    def start(self, plan: Plan, *, clock: Callable[[], Ms], stop: Callable[[str], None]) -> None:
        del clock, stop
        self.progress.add_plan(plan)

    def replace_plan(self, plan: Plan) -> None:
        self.progress.add_plan(plan)

    def emit(self, event: Event) -> None:
        self.events.append(event)
        self.progress.add_event(event)


@case(63)
async def test_child_applications_are_deleted_before_their_parent_in_reverse_wave_order(
    tmp_path: Path,
) -> None:
    pointed = LoadRequest(path_or_url=str(three_levels(tmp_path, finalizer=True).root))
    target, rolling = ClusterTargets(simulation=SimulationConfig()), RolloutOptions(holder="test")
    async with open_workspace(pointed, target, user_render_settings()) as (session, result):
        prepared = await prepare_rollout(result, session, (), keep_going=False)
        deployed = await roll_out(prepared.plan_result.plan, session, rolling, _EventRecorder())
        going, onlooker = await plan_deletions(session, result), _EventRecorder()
        gone = await roll_out(going.plan, session, rolling, onlooker)

    assert (deployed.outcome, gone.outcome) == (RolloutOutcome.PASSED, RolloutOutcome.PASSED)
    order = pruned(onlooker.events)
    for first, then in (
        ("end", "blue-web"),
        ("blue-web", "blue-early"),
        ("blue-early", "red-late"),
        ("red-late", "red-web"),
        ("red-web", "base-late"),
        ("base-late", "base-web"),
        ("base-web", "start"),
        ("start", "shop"),
    ):
        assert order.index(first) < order.index(then), (first, then)

"""Units that are deployed and deleted again, and what remains of them in the cluster."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from tests.support.sessions import a_session, ruled
from tests.support.unit_trees import make_unit_manifests, make_unit_tree
from tidegate.actions.delete import Deletion, finish_deletion, plan_deletion
from tidegate.clusters.journal import StoredJournal, read_journal
from tidegate.dialect.argo.options import with_sync_options
from tidegate.engine.driver import drive
from tidegate.inspection.diff import Preview, preview
from tidegate.model.k8s.objects import Kind
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.units.policy import Policy
from tidegate.model.units.unit import Unit
from tidegate.plan.build.build import plan_unit
from tidegate.planning.preparation import prepare_plan
from tidegate.rollout.run import RolloutOptions, build_driver
from tidegate.workspace.request import unit_for_path
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import ListPage
from tidegate.world.one_shot import send_requests
from tidegate.world.protocol import World
from tidegate.world.requests import List, Selection

SECRET = Kind("", "v1", "Secret")
SETTINGS = Kind("", "v1", "ConfigMap")
JOB = Kind("batch", "v1", "Job")
HOOK = """\
apiVersion: batch/v1
kind: Job
metadata:
  {named}: {name}
  annotations:
    argocd.argoproj.io/hook: {hook}
    argocd.argoproj.io/hook-delete-policy: {policy}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: main, image: "busybox:1"}}]
"""


def a_setting(name: str, wave: int = 0, sync_options: str = "") -> str:
    notes = {"argocd.argoproj.io/sync-wave": str(wave)}
    if sync_options:
        notes["argocd.argoproj.io/sync-options"] = sync_options
    metadata = {"name": name, "annotations": notes}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    return msgspec.json.encode(body).decode()


def a_hook(name: str, hook: str, policy: str = "BeforeHookCreation") -> str:
    """A Job; a name that ends in a dash is the beginning of one."""
    named = "generateName" if name.endswith("-") else "name"
    return HOOK.format(named=named, name=name, hook=hook, policy=policy)


def a_directory(folder: Path, *texts: str, options: tuple[str, ...] = ()) -> Unit:
    for number, text in enumerate(texts):
        (folder / f"{number}.yaml").write_text(text)
    policy = with_sync_options(Policy(), options)
    return unit_for_path(str(folder), policy, name="shop", namespace="default")


OPTIONS = RolloutOptions(holder="other-client")


async def run(world: World, plan: Plan, rolling: RolloutOptions = OPTIONS) -> list[Event]:
    """All events of a rollout; the last one is its result."""
    events: list[Event] = []
    await drive(build_driver(plan, a_session(world), rolling, events.append))
    return events


async def deploy(world: World, unit: Unit, *resources: str) -> None:
    session = a_session(world)
    family = await make_unit_tree(unit, session)
    events = await run(world, (await prepare_plan([family], session, resources)).plan)
    assert events[-1].reason == "passed"


async def deletion_of(unit: Unit, world: World) -> Deletion:
    session = a_session(world)
    return await plan_deletion(await make_unit_manifests(unit, session), session)


async def preview_of(unit: Unit, world: World) -> Preview:
    session = a_session(world)
    return await preview([await make_unit_tree(unit, session)], session)


async def delete(world: World, unit: Unit, *, confirmed: bool = False) -> list[Event]:
    """Delete a unit to its end."""
    deletion = await deletion_of(ruled(unit, confirmed=confirmed), world)
    events = await run(world, deletion.plan)
    assert events[-1].reason == "passed"
    await finish_deletion(deletion, Dispatcher(world))
    return events


async def remembered_of(world: World, unit: Unit) -> StoredJournal:
    return await read_journal(plan_unit(unit), Dispatcher(world))


async def names(world: World, kind: Kind, namespace: str = "default") -> list[str]:
    (page,) = await send_requests(Dispatcher(world), List(Selection(kind, namespace)))
    assert isinstance(page, ListPage)
    matches = [live.ref.name for live in page.items]
    return sorted(name for name in matches if name != "kube-root-ca.crt")


def waves_of(events: Iterable[Event]) -> list[int]:
    """The waves in which something went, each once, in their order."""
    pruned = (event for event in events if event.type is EventType.OBJECT_PRUNED)
    return list(dict.fromkeys(int(event.step.rpartition("/")[2]) for event in pruned))

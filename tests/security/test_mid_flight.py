"""What others do to a cluster while a rollout is under way: it ends, says why, and lets go."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.sessions import a_session
from tests.support.unit_trees import make_unit_tree
from tidegate.clusters.journal import read_journal
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.clusters.session import Session
from tidegate.engine.driver import drive
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.times import SECOND, Ms
from tidegate.plan.build.build import plan_unit
from tidegate.planning.preparation import prepare_plan
from tidegate.rollout.run import RolloutOptions, build_driver
from tidegate.workspace.request import unit_for_path
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import Selection, Verb, Write

DEFINITION = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
LEASE = Kind("coordination.k8s.io", "v1", "Lease")
CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
THING = """apiVersion: example.org/v1
kind: Thing
metadata: {{name: {name}, annotations: {{argocd.argoproj.io/sync-wave: "{wave}"}}}}
"""
SLOW = """apiVersion: batch/v1
kind: Job
metadata: {name: slow, annotations: {argocd.argoproj.io/sync-wave: "2"}}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: a, image: a, command: [sleep, "60"]}]}
"""


async def deleted_at(session: Session, moment: Ms, ref: Ref) -> None:
    client = session.world.client()
    while session.world.now() < moment:
        await client.wait(moment)
    await send_requests(session.world, Write(verb=Verb.DELETE, ref=ref))


@pytest.mark.parametrize("after", [0, 1, 2, 5, 15], ids=lambda after: f"after {after} s")
async def test_a_definition_that_is_deleted_fails_what_needs_it(after: int, tmp_path: Path) -> None:
    unit_folder = tmp_path / "unit"
    unit_folder.mkdir()
    files = {
        "crd": CRD,
        "first": THING.format(name="first", wave=1),
        "slow": SLOW,
        "last": THING.format(name="last", wave=3),
    }
    for name, text in files.items():
        (unit_folder / f"{name}.yaml").write_text(text)
    session = a_session(build_sandbox(SimulationConfig()))
    unit = unit_for_path(str(unit_folder), namespace="default")
    plan = (await prepare_plan([await make_unit_tree(unit, session)], session)).plan
    result: list[Event] = []
    driver = build_driver(plan, session, RolloutOptions(holder="me"), result.append)
    moment = Ms(session.world.now() + after * SECOND)

    async with asyncio.TaskGroup() as group:
        ended = group.create_task(drive(driver))
        group.create_task(deleted_at(session, moment, Ref(DEFINITION, "", "things.example.org")))

    remembered = await read_journal(plan_unit(unit), session.world)
    assert ended.result() == ("passed" if after == 0 else "failed")
    assert remembered.holder == ""
    assert await session.reader().list_all([Selection(LEASE, "tidegate-system")]) == []
    if after:
        failed = [event for event in result if event.type is EventType.STEP_FAILED]
        assert failed
        assert all(event.message for event in failed)

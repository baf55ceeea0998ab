"""Rollouts on every World: a test that uses `stage` runs on each of them.

A `stage` has only an API server: the test writes every status itself. A `living_stage` has
controllers and a kubelet.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest

from plane import ControlPlane
from tests.engine.hooks import HookServer, an_answering_port, an_answering_service
from tests.support.cluster_client import require_live
from tests.support.objects import ACCOUNT, a_namespace
from tests.support.rollout_stage import Stage
from tests.support.rollout_worlds import WORLDS, a_still_world
from tests.support.worlds import real_world
from tests.support.write_records import AuditRecord, Record, StoreRecord
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.model.k8s.objects import Ref
from tidegate.sandbox.world import Sandbox
from tidegate.world.protocol import World

_numbers = itertools.count(1)


@pytest.fixture(params=WORLDS)
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with a_still_world(request) as world:
        yield world


@pytest.fixture
async def stage(world: World) -> Stage:
    return await _set_up(world)


@pytest.fixture(params=WORLDS)
async def living_world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param == "sandbox":
        yield build_sandbox(SimulationConfig())
        return
    plane = request.getfixturevalue("plane")
    assert isinstance(plane, ControlPlane)
    async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
        yield world


@pytest.fixture
async def living_stage(living_world: World) -> Stage:
    stage = await _set_up(living_world)
    account = Ref(ACCOUNT, stage.namespace, "default")
    await stage.client.settled(account, lambda live: live is not None)
    return stage


@pytest.fixture
def record(living_world: World, living_stage: Stage, request: pytest.FixtureRequest) -> Record:
    """What is written to the cluster, as the cluster itself knows it."""
    if isinstance(living_world, Sandbox):
        return StoreRecord(living_world)
    plane = request.getfixturevalue("plane")
    assert isinstance(plane, ControlPlane)
    return AuditRecord(plane.audit_log, living_stage.client)


@pytest.fixture
async def answering(
    world: World, stage: Stage, request: pytest.FixtureRequest
) -> AsyncIterator[HookServer]:
    """The server of a webhook, which does not answer until the test allows it."""
    if isinstance(world, Sandbox):
        yield await an_answering_service(stage.client)
        return
    plane = request.getfixturevalue("plane")
    assert isinstance(plane, ControlPlane)
    async with an_answering_port(plane) as answering:
        yield answering


async def _set_up(world: World) -> Stage:
    stage = Stage(world, f"fences-{next(_numbers)}")
    require_live(await stage.client.create(a_namespace(stage.namespace)))
    return stage

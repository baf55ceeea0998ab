"""Stages for Argo CD's cases."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.conformance.argocd.stage import ArgoStage, open_stage
from tests.support.cluster_client import ClusterClient
from tests.support.rolling_appset import Ladder
from tests.support.rollout_worlds import RUNNERS, WORLDS, a_still_world
from tests.support.worlds import sandbox_world
from tests.support.write_records import AuditRecord, Record
from tidegate.sandbox.world import Sandbox
from tidegate.world.protocol import World


@pytest.fixture
def ladder(tmp_path: Path) -> Ladder:
    return Ladder(tmp_path)


@pytest.fixture
async def stage() -> ArgoStage:
    return await open_stage(sandbox_world())


@pytest.fixture(params=WORLDS)
async def each_stage(request: pytest.FixtureRequest) -> AsyncIterator[ArgoStage]:
    """A stage in a sandbox, and one on a real server with its audit log."""
    async with a_still_world(request, RUNNERS) as world:
        stage = await open_stage(world, audit_of(request, world))
        with closing(stage.jq):
            yield stage


def audit_of(
    request: pytest.FixtureRequest, world: World
) -> Callable[[ClusterClient], Record] | None:
    if isinstance(world, Sandbox):
        return None
    plane = request.getfixturevalue("plane")
    assert isinstance(plane, ControlPlane)
    log = plane.audit_log
    return lambda client: AuditRecord(log, client)

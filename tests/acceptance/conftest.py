"""Stages for Argo CD's cases, and the mark that says which cases a test covers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from plane import ControlPlane
from tests.acceptance.stage import ArgoStage, open_stage
from tests.rollouts.records import AuditRecord
from tests.rollouts.worlds import RUNNERS, WORLDS, a_still_world
from tidegate.sandbox.world import Sandbox
from tidegate.testing import sandbox_world


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "case(*numbers): the cases of Argo CD that a test covers")


@pytest.fixture
async def stage() -> ArgoStage:
    return await open_stage(sandbox_world())


@pytest.fixture(params=WORLDS)
async def each_stage(request: pytest.FixtureRequest) -> AsyncIterator[ArgoStage]:
    """A stage in a sandbox, and one on a real server with its audit log."""
    async with a_still_world(request, RUNNERS) as world:
        if isinstance(world, Sandbox):
            yield await open_stage(world)
            return
        plane = request.getfixturevalue("plane")
        assert isinstance(plane, ControlPlane)
        log = plane.audit_log
        yield await open_stage(world, lambda desk: AuditRecord(log, desk))

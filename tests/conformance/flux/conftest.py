"""Stages for Flux's cases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from tests.conformance.argocd.conftest import audit_of
from tests.conformance.flux.stage import FluxStage, open_flux
from tests.support.rollout_worlds import RUNNERS, WORLDS, a_still_world
from tests.support.worlds import sandbox_world


@pytest.fixture
async def flux() -> FluxStage:
    return await open_flux(sandbox_world())


@pytest.fixture(params=WORLDS)
async def each_flux(request: pytest.FixtureRequest) -> AsyncIterator[FluxStage]:
    """A stage in a sandbox, and one on a real server with its audit log."""
    async with a_still_world(request, RUNNERS) as world:
        stage = await open_flux(world, audit_of(request, world))
        with closing(stage.jq):
            yield stage

"""Worlds in which little lives but an API server: a test writes the statuses itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from plane import ControlPlane
from plane.parts.site import Part
from tests.support.worlds import real_world, sandbox_world
from tidegate.world.protocol import World

WORLDS = ["sandbox", pytest.param("kube", marks=pytest.mark.kube)]
RUNNERS: tuple[Part, ...] = ("scheduler", "kwok")
"""Without them no pod is ever run."""
ALL: tuple[Part, ...] = ("controller-manager", *RUNNERS)


@contextmanager
def _stopped(plane: ControlPlane, parts: tuple[Part, ...]) -> Iterator[None]:
    for part in parts:
        plane.pause(part)
    try:
        yield
    finally:
        for part in parts:
            plane.resume(part)


@asynccontextmanager
async def a_still_world(
    request: pytest.FixtureRequest, stopped: tuple[Part, ...] = ALL
) -> AsyncIterator[World]:
    """The world that a fixture with `WORLDS` as its parameters is asked for.

    `stopped`: parts of a real control plane that do nothing meanwhile.
    """
    if request.param == "sandbox":
        yield sandbox_world()
        return
    plane = request.getfixturevalue("plane")
    assert isinstance(plane, ControlPlane)
    with _stopped(plane, stopped):
        async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
            yield world

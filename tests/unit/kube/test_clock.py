"""The clock of real clusters."""

from __future__ import annotations

import time

import pytest

from tidegate.kube.world import KubeWorld
from tidegate.model.times import HOUR, Ms


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system cannot tell")
async def test_the_clock_continues_while_the_machine_is_suspended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = KubeWorld({}, watch_timeout=Ms(1_000))
    before, awake = world.now(), time.clock_gettime_ns

    def slept(clock: int) -> int:
        return awake(clock) + (HOUR * 1_000_000 if clock == time.CLOCK_BOOTTIME else 0)

    monkeypatch.setattr(time, "clock_gettime_ns", slept)

    assert world.now() >= before + HOUR

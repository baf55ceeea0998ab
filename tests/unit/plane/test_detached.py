"""Whether a plane that was left running still runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest

from plane.detached import Remembered, is_running
from plane.parts.site import PARTS

STATE = "/state/of/a/test"


@pytest.fixture
def pid() -> Iterator[int]:
    """A program that names the state directory on its command line, and waits."""
    script = "print(flush=True); input()"
    child = subprocess.Popen(  # our own interpreter
        [sys.executable, "-c", script, STATE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child.pid
        child.kill()


def remembered(pids: Mapping[str, int]) -> Remembered:
    return Remembered(STATE, "kubeconfig", pids)


def test_a_plane_runs_when_all_its_parts_do(pid: int) -> None:
    assert is_running(remembered({str(part): pid for part in PARTS}))


def test_a_plane_that_lost_a_part_does_not_run(pid: int) -> None:
    others = {str(part): pid for part in PARTS[1:]}

    assert not is_running(remembered(others))


def test_a_pid_that_now_belongs_to_another_program_does_not_count(pid: int) -> None:
    plane = Remembered("/state/before/the/reboot", "kubeconfig", {str(part): pid for part in PARTS})

    assert not is_running(plane)

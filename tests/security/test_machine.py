"""A machine that has nothing left of something: told as that, and never as a bug."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tidegate_runs import ROOT
from tidegate.cli.os_errors import resource_errors
from tidegate.errors import PlanError, SystemResourceError

SPENT = 7
LIMITS = {
    "files": (resource.RLIMIT_NOFILE, 12, "error[system.exhausted]: Too many open files"),
    "disk": (resource.RLIMIT_FSIZE, 0, "error[system.exhausted]: there is no directory for temp"),
}


@pytest.mark.parametrize("what", LIMITS)
def test_what_is_used_up_is_told(what: str, tmp_path: Path) -> None:
    limit, most, result = LIMITS[what]

    ran = subprocess.run(
        [sys.executable, "-m", "tidegate", "graph", "examples/platform", "--critical-path"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(limit, (most, most)),
        check=False,
    )

    assert ran.returncode == SPENT, ran.stderr
    assert result in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_command_needs_no_standard_error(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tidegate", "graph", "examples/first"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        preexec_fn=lambda: os.close(2),
        check=False,
    )

    assert ran.returncode == 0
    assert ran.stdout


def test_among_several_each_is_told_once() -> None:
    files = OSError(errno.EMFILE, "Too many open files")
    ours = PlanError("plan.empty", "it is empty")
    group = ExceptionGroup("work", [files, ExceptionGroup("deeper", [files, ours])])

    assert [type(resource_error) for resource_error in resource_errors(group)] == [
        SystemResourceError,
        PlanError,
    ]


def test_what_nobody_lets_us_read_is_told_with_its_place() -> None:
    """Whoever runs the tests may be allowed to read everything."""
    denied = PermissionError(errno.EACCES, "Permission denied", "/srv/repo/.git")

    (resource_error,) = resource_errors(ExceptionGroup("work", [denied]))

    assert (resource_error.code, resource_error.exit_code, str(resource_error.location)) == (
        "file.unreadable",
        3,
        "/srv/repo/.git",
    )


@pytest.mark.parametrize("bug", [KeyError("x"), OSError(errno.ENOENT, "no such file"), TypeError()])
def test_anything_else_among_it_is_a_bug(bug: Exception) -> None:
    assert resource_errors(ExceptionGroup("work", [MemoryError(), bug])) == []

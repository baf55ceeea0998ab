"""A machine whose resources are exhausted: reported as that, and never as a bug."""

from __future__ import annotations

import errno
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import ROOT
from tidegate.cli.os_errors import resource_errors
from tidegate.errors import PlanError, SystemResourceError

SPENT = 7
LIMITS = {
    "files": (resource.RLIMIT_NOFILE, 12),
    "disk": (resource.RLIMIT_FSIZE, 0),
}


@pytest.mark.parametrize("what", LIMITS)
def test_an_exhausted_resource_is_reported(
    what: str, tmp_path: Path, wording: RecordedWording
) -> None:
    limit, most = LIMITS[what]

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
    assert "error[system.exhausted]" in ran.stderr
    assert "Traceback" not in ran.stderr
    wording(re.sub(r"(?<=open files): .*", "", ran.stderr))


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


def test_among_several_errors_each_is_reported_once() -> None:
    files = OSError(errno.EMFILE, "Too many open files")
    ours = PlanError("plan.empty", "it is empty")
    group = ExceptionGroup("work", [files, ExceptionGroup("deeper", [files, ours])])

    assert [type(resource_error) for resource_error in resource_errors(group)] == [
        SystemResourceError,
        PlanError,
    ]


def test_an_unreadable_file_is_reported_with_its_location() -> None:
    """The error is constructed, because the user of the tests may be root."""
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

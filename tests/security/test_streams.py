"""Standard output that is closed, full, or was never open: no traceback, and no exit code 0."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tidegate_runs import FIRST, ROOT

UNHEARD = 7
VERBS = (
    ("version",),
    ("--help",),
    ("sync", "--help"),
    ("completion", "bash"),
    ("render", FIRST),
    ("plan", FIRST, "-o", "json"),
    ("simulate", FIRST),
    ("sync", FIRST, "--sandbox"),
    ("sync", FIRST, "--sandbox", "-o", "json"),
)


def run(args: tuple[str, ...], stdout: int | None, user_home: Path) -> tuple[int, str]:
    def close() -> None:
        os.close(1)

    ran = subprocess.run(
        [sys.executable, "-m", "tidegate", *args],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(user_home)},
        stdout=stdout,
        stderr=subprocess.PIPE,
        preexec_fn=close if stdout is None else None,
        check=False,
    )
    return ran.returncode, ran.stderr.decode()


@pytest.mark.parametrize("args", VERBS, ids=" ".join)
def test_a_full_disk_is_reported(args: tuple[str, ...], tmp_path: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        code, text = run(args, full, tmp_path)
    finally:
        os.close(full)

    assert code == UNHEARD
    if "json" in args:
        finding = json.loads(text)
        text = f"{finding['severity']}[{finding['code']}]: {finding['message']}"
    assert text.startswith("error[output.refused]: ")
    assert os.strerror(errno.ENOSPC) in text.splitlines()[0]
    assert "Traceback" not in text


@pytest.mark.parametrize("args", VERBS, ids=" ".join)
def test_a_closed_pipe_ends_in_silence_with_an_error_code(
    args: tuple[str, ...], tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        code, text = run(args, writing, tmp_path)
    finally:
        os.close(writing)

    assert code == UNHEARD
    assert "Traceback" not in text
    assert "Exception ignored" not in text


@pytest.mark.parametrize("args", [VERBS[0], VERBS[4], VERBS[6]], ids=" ".join)
def test_an_output_that_was_never_open_is_reported(args: tuple[str, ...], tmp_path: Path) -> None:
    code, text = run(args, None, tmp_path)

    assert code == UNHEARD
    assert "error[output.refused]" in text

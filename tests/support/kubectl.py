"""Runs kubectl against the control plane of the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*words: str | Path, environment: dict[str, str] | None = None, text: str = "") -> str:
    """What a program says on stdout; one that ends badly is an assertion with its stderr."""
    ended = subprocess.run(  # kubectl or our own interpreter
        list(map(str, words)),
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        input=text,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def kubectl(kubeconfig: Path, *words: str, text: str = "") -> str:
    installed = Path(sys.executable).with_name("kubectl")
    program = installed if installed.exists() else shutil.which("kubectl")
    assert program, "kubectl is in the group `dev`"
    return run(program, "--kubeconfig", kubeconfig, *words, text=text)

"""The guide to a simulated cluster that stays, typed line by line in a directory outside of Git."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "sandbox-up.md"
BLOCK = re.compile(r"(?<=```shell-session\n)(.*?)(?=```)", re.DOTALL)
VARYING = (
    (re.compile(r"^.* waits for .*\n", re.MULTILINE), ""),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:40123"),
    (re.compile(r"/\S*/state/"), "/home/ann/.local/state/"),
    (re.compile(r"(?<=[a-z]-)[a-z0-9]{10}-[a-z0-9]{5}\b"), "6c9f8d7b54-x2k4q"),
    (re.compile(r"(?<=migrate[-.])[a-z0-9]+\b"), "x2k4q"),
    (re.compile(r"\b\d+(\.\d)?s\b|\b\d+m(\d+s)?\b"), "1s"),
    (re.compile(r"198\.18\.\d+\.\d+"), "198.18.0.1"),
    (re.compile(r" {2,}"), "  "),
    (re.compile(r" +$", re.MULTILINE), ""),
)
"""What is another in each run: what took a moment, ports, homes, names, times; and their width."""


def alike(text: str) -> str:
    for pattern, word in VARYING:
        text = pattern.sub(word, text)
    return text


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a new user, whose directory contains the example."""
    shutil.copytree(ROOT / "examples" / "first", tmp_path / "examples" / "first")
    hidden = ("XDG_", "TIDEGATE_", "KUBECONFIG", "PYTHON")
    environ = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    state = tmp_path / "state"
    environ |= {
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(state),
        "KUBECONFIG": str(state / "tidegate" / "sandbox" / "kubeconfig"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "NO_COLOR": "1",
        "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))),
    }
    yield environ
    subprocess.run(["tidegate", "sandbox", "down"], env=environ, check=False, capture_output=True)  # noqa: S607


def typed(command: str, environ: dict[str, str]) -> str:
    ran = subprocess.run(
        command.split(),
        cwd=environ["HOME"],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return ran.stdout if not ran.stdout or ran.stdout.endswith("\n") else f"{ran.stdout}\n"


def replayed(block: str, environ: dict[str, str]) -> str:
    """The commands of a block, with what they say now."""
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{typed(command, environ)}" for command in commands)


@pytest.mark.timeout(400)
def test_the_guide_shows_what_happens(shell: dict[str, str], pytestconfig: pytest.Config) -> None:
    text = GUIDE.read_text()
    shown = [replayed(block, shell) for block in BLOCK.findall(text)]
    if pytestconfig.getoption("--golden"):
        fresh = iter(shown)
        user_home = re.compile(r"/\S*/state/")
        text = BLOCK.sub(lambda _: user_home.sub("/home/ann/.local/state/", next(fresh)), text)
        GUIDE.write_text(text)

    assert [alike(item) for item in shown] == [alike(item) for item in BLOCK.findall(text)]

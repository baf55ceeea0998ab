"""`make demo`: lint finds a deadlock, a simulation shows it, and a repaired shop is rolled out.

Everything runs on a simulated cluster. On a terminal the rollout is slowed down so that people can
follow; in a pipe nothing waits.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SPEED = ("--speed", "8")
"""Two simulated minutes take a quarter of a real one."""
READING_TIME = 2.5
"""Seconds to read the text of a scene on a terminal."""
INPUT_ERROR, GATE_CLOSED = 3, 4
"""Exit codes that scenes expect."""
BROKEN = "examples/broken/hook-before-secret"


@dataclass(frozen=True, slots=True)
class Scene:
    """A short text, and a command that shows what it says."""

    text: str
    command: tuple[str, ...]
    code: int = 0
    is_rollout: bool = False
    """Whether the output changes over time, so that it can be slowed down."""


SCENES = (
    Scene(
        "1. A migration runs as a PreSync hook, before its Secret exists. lint finds the deadlock:",
        ("lint", BROKEN, "--severity", "warning"),
        code=INPUT_ERROR,
    ),
    Scene(
        "2. A simulated cluster shows what Argo CD would do with it:",
        ("simulate", BROKEN),
        code=GATE_CLOSED,
    ),
    Scene(
        "3. A shop with correct waves. Each wave starts when the previous one is healthy:",
        ("sync", "examples/first", "--sandbox"),
        is_rollout=True,
    ),
    Scene(
        "4. When each gate opens, with Tidegate's and with Argo CD's semantics:",
        ("simulate", "examples/first", "--engine", "tidegate,argocd"),
    ),
)
LAST_TEXT = """\
No cluster was needed. Next:
  tidegate lint PATH          check your own repository
  tidegate simulate PATH      preview it
  docs/getting-started.md     the tutorial, and how to roll out to a real cluster"""


def show(scene: Scene, *, watched: bool) -> int:
    """Print the text of a scene, run its command and return its exit code."""
    command = [*scene.command, *(SPEED if watched and scene.is_rollout else ())]
    print(scene.text)
    print()
    print("$ tidegate", *command, flush=True)
    if watched:
        time.sleep(READING_TIME)  # noqa: TID251  # real time for people, not simulated time
    with _ignore_interrupts():
        code = subprocess.run(
            [sys.executable, "-m", "tidegate", *command], cwd=ROOT, check=False
        ).returncode
    print(flush=True)
    return code


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Leave Ctrl-C to the command, which restores the terminal."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def main() -> int:
    watched = sys.stdout.isatty() and os.environ.get("TERM", "") not in {"", "dumb"}
    for scene in SCENES:
        code = show(scene, watched=watched)
        if code != scene.code:
            return code or 1
    print(LAST_TEXT)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

"""What works today, shown: `make demo`.

One small shop is rolled out twice on a simulated cluster: in its waves, and all at once. Then the
same waves by other rules, and a whole platform. On a terminal it is played so that one can follow;
in a pipe nothing waits.
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
PACE = ("--speed", "8")
"""Two minutes of the simulated cluster in a quarter of one."""
TO_READ = 2.5
"""Seconds for a few words, where somebody is watching."""
GATE_STAYED_SHUT = 4
FIRST_DAY = "examples/homelab/scenarios/first-day.yaml"


@dataclass(frozen=True, slots=True)
class Scene:
    """A few words, and the command that shows what they say."""

    words: str
    command: tuple[str, ...]
    code: int = 0
    moves: bool = False
    """It is a picture that changes, so its time can be played slower."""


SCENES = (
    Scene(
        "A shop: a slow database, a migration that dials it, an app.\n"
        "Its waves say in which order. A gate opens when what was applied is healthy.",
        ("sync", "examples/first", "--sandbox"),
        moves=True,
    ),
    Scene(
        "The same without its waves: the migration meets a database that is not ready.",
        ("sync", "examples/first", "--sandbox", "--ignore-waves"),
        code=GATE_STAYED_SHUT,
        moves=True,
    ),
    Scene(
        "When would each gate open, by our rules and by Argo CD's?",
        ("simulate", "examples/first", "--engine", "tidegate,argocd"),
    ),
    Scene(
        "A whole platform, written for Argo CD: one root, nine Applications in waves, and three\n"
        "ApplicationSets behind them. Two secrets and a network were there before.",
        ("sync", "examples/homelab", "--sandbox", "--scenario", FIRST_DAY),
        moves=True,
    ),
    Scene(
        "By Argo CD's rules a set is healthy as soon as its Applications are generated: look when\n"
        "loki-stack (wave 5) begins, and when gateway (wave 4) is done.",
        ("simulate", "examples/homelab", "--engine", "tidegate,argocd", "--scenario", FIRST_DAY),
    ),
)
LAST_WORDS = """\
No cluster was needed. On a real one: `tidegate sync DIR --context NAME`.
How: docs/getting-started.md"""


def show(scene: Scene, *, watched: bool) -> int:
    """Tell it, run it, and hand on its exit code."""
    command = [*scene.command, *(PACE if watched and scene.moves else ())]
    print(scene.words)
    print()
    print("$ tidegate", *command, flush=True)
    if watched:
        time.sleep(TO_READ)  # noqa: TID251  # people's own time, not a world's
    with _interruptions_left_to_the_command():
        code = subprocess.run(
            [sys.executable, "-m", "tidegate", *command], cwd=ROOT, check=False
        ).returncode
    print(flush=True)
    return code


@contextmanager
def _interruptions_left_to_the_command() -> Iterator[None]:
    """Ctrl-C reaches both of us; the command must be able to put the terminal in order."""
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
    print(LAST_WORDS)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

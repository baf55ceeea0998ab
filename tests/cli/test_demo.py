"""`make demo`, as newcomers see it."""

from __future__ import annotations

import subprocess
import sys

from examples.demo import ROOT, SCENES
from tests.support.on_terminal import on_terminal

DEMO = "examples.demo"


def test_the_demo_tells_its_stories_as_lines_where_nobody_watches() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", DEMO], cwd=ROOT, capture_output=True, text=True, check=True
    )

    commands = [line for line in ran.stdout.splitlines() if line.startswith("$ ")]
    assert commands == [" ".join(["$ tidegate", *scene.command]) for scene in SCENES]
    assert "rollout  passed in" in ran.stdout
    assert "wave 0 failed after" in ran.stdout
    assert "argocd: passed after" in ran.stdout
    assert "\x1b" not in ran.stdout
    assert "error" not in ran.stderr


def test_an_interruption_ends_the_demo_and_leaves_the_terminal_in_order() -> None:
    with on_terminal(DEMO) as program:
        program.read_until(lambda vt: "waits for" in vt.text)

        program.type("\x03")
        code = program.finish()

        assert code == 130
        assert program.echoes()
        assert program.vt.shows_cursor
        assert SCENES[1].words not in program.vt.text

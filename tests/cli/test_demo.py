"""`make demo`, as newcomers see it."""

from __future__ import annotations

import subprocess
import sys

from examples.demo import LAST_TEXT, ROOT, SCENES
from tests.support.recorded_wording import RecordedWording
from tests.support.terminal_program import on_terminal

DEMO = "examples.demo"


def test_without_a_terminal_the_demo_prints_lines(wording: RecordedWording) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", DEMO], cwd=ROOT, capture_output=True, text=True, check=True
    )

    commands = [line for line in ran.stdout.splitlines() if line.startswith("$ ")]
    assert commands == [" ".join(["$ tidegate", *scene.command]) for scene in SCENES]
    wording(
        line
        for line in ran.stdout.splitlines()
        if line.startswith(("✗ ", "tidegate: ", "argocd: ")) or "s  rollout " in line
    )
    assert "\x1b" not in ran.stdout
    assert "error" not in ran.stderr


def test_the_demo_fits_on_a_few_screens() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", DEMO],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )

    lines = ran.stdout.splitlines()
    assert len(lines) <= 80
    assert max(map(len, lines)) <= 120


def test_an_interruption_ends_the_demo_and_leaves_the_terminal_in_order() -> None:
    with on_terminal(DEMO) as program:
        program.read_until(lambda vt: "StatefulSet default/db" in vt.text)

        program.type("\x03")
        code = program.finish()

        assert code == 130
        assert program.echoes()
        assert program.vt.shows_cursor
        assert LAST_TEXT not in program.vt.text

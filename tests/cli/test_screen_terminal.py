"""The picture on a real terminal: what it shows, when it is resized, and when it is left."""

from __future__ import annotations

import re

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.terminal_program import TerminalProgram, on_terminal
from tests.support.virtual_terminal import VirtualTerminal

PROGRAM = "tests.support.screen_program"
CTRL_C, CTRL_Z = "\x03", "\x1a"


def waits(vt: VirtualTerminal) -> bool:
    return "Deployment default/web  0 " in vt.text


def fills(vt: VirtualTerminal, columns: int) -> bool:
    """Whether the picture is as wide as it may be."""
    return any(row.startswith("✓ wave 0") and len(row) == columns - 1 for row in vt.screen)


def drawn_again(program: TerminalProgram, pictures: int = 3) -> None:
    """Wait until this number of frames has been drawn."""
    until = program.vt.frames + pictures
    program.read_until(lambda vt: vt.frames >= until)


def test_the_live_view_shows_running_steps_and_their_waits(wording: RecordedWording) -> None:
    with on_terminal(PROGRAM, "stops") as program:
        program.read_until(waits)

        done, head, held, coming, progress = program.vt.screen
    assert done.startswith("✓ wave 0    1 object")
    wording(re.split(" {3,}", head[2:])[:2])
    wording(re.split(" {3,}", held.strip())[0])
    wording(coming)
    assert progress.endswith("shop")


def test_pictures_take_the_place_of_the_one_before() -> None:
    with on_terminal(PROGRAM, "stops") as program:
        program.read_until(waits)
        drawn_again(program, 10)

        rows = program.vt.history
    assert sum("wave 1    " in row for row in rows) == 1


def test_the_cursor_is_hidden_and_typing_unseen_while_a_picture_is_there() -> None:
    with on_terminal(PROGRAM, "stops") as program:
        program.read_until(waits)
        program.type("words\n")
        drawn_again(program)

        assert not program.vt.shows_cursor
        assert not program.echoes()
        assert "words" not in program.vt.text


def test_a_clean_stop_restores_the_terminal_and_prints_how_to_resume(
    wording: RecordedWording,
) -> None:
    with on_terminal(PROGRAM, "stops") as program:
        program.read_until(waits)
        program.type(CTRL_C)
        code = program.finish()

        assert code == 0
        assert program.vt.shows_cursor
        wording(program.vt.screen[-3:])


def test_a_second_interruption_stops_at_once() -> None:
    with on_terminal(PROGRAM, "goes-on") as program:
        program.read_until(waits)
        program.type(CTRL_C)
        program.read_until(lambda vt: "Ctrl-C" in vt.text)
        program.type(CTRL_C)
        code = program.finish()

        assert code == 130
        assert program.vt.shows_cursor


def test_a_killed_rollout_prints_how_to_resume_in_one_line(
    wording: RecordedWording,
) -> None:
    """At this speed, releasing the lease takes a second."""
    command = ("tidegate", "sync", "examples/first", "--sandbox", "--speed", "0.008")
    with on_terminal(*command, columns=160) as program:
        program.read_until(lambda vt: " 1 of 5 " in vt.text)
        program.type(CTRL_C)
        program.read_until(lambda vt: "Ctrl-C" in vt.text)
        program.type(CTRL_C)
        code = program.finish()

        assert code == 130
        wording(program.vt.screen[-1])


@pytest.mark.parametrize(("columns", "lines"), [(50, 24), (160, 50), (80, 6)])
def test_a_picture_fits_the_window_when_that_changes(columns: int, lines: int) -> None:
    with on_terminal(PROGRAM, "stops", columns=120) as program:
        program.read_until(waits)
        drawn_again(program, 1)  # the next one is a while away: none is under way
        program.resize(columns, lines)
        program.read_until(lambda vt: fills(vt, columns))
        drawn_again(program)

        screen = program.vt.screen
    assert sum("wave 1" in row for row in screen) == 1
    assert len(screen) <= lines
    assert max(map(len, screen)) < columns


def test_a_pause_gives_the_terminal_back_until_it_is_over() -> None:
    with on_terminal(PROGRAM, "stops") as program:
        program.read_until(waits)
        program.type(CTRL_Z)
        program.read_until(lambda vt: vt.shows_cursor)
        assert program.is_stopped()
        assert program.echoes()

        program.send_continue()
        program.read_until(lambda vt: not vt.shows_cursor)
        drawn_again(program)
        assert not program.echoes()


@pytest.mark.parametrize("kind", ["dumb", ""])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(
    wording: RecordedWording, kind: str
) -> None:
    with on_terminal(PROGRAM, "stops", TERM=kind) as program:
        program.read_until(lambda vt: "wave 1   " in vt.text)
        program.type(CTRL_C)
        program.finish()

        assert program.vt.frames == 0
        wording(line for line in program.vt.text.splitlines() if "  rollout  " in line)


def test_without_a_unicode_locale_symbols_are_ascii() -> None:
    with on_terminal(PROGRAM, "stops", LANG="C") as program:
        program.read_until(waits)

        assert program.vt.text.isascii()
        assert program.vt.screen[0].startswith("+ wave 0")


def test_a_whole_rollout_ends_with_every_step_and_a_summary(wording: RecordedWording) -> None:
    command = ("tidegate", "sync", "examples/first", "--sandbox", "--speed", "400")
    with on_terminal(*command) as program:
        code = program.finish()

        assert code == 0
        wording(row.split("  ")[0] for row in program.vt.screen)
        assert program.vt.shows_cursor
        assert program.vt.frames > 1

"""What a terminal can do, and how little is written to it."""

from __future__ import annotations

import io
import os

import pytest

from tests.support.virtual_terminal import VirtualTerminal
from tidegate.cli.output import terminal_size
from tidegate.cli.screen.terminal import (
    SafeStream,
    Terminal,
    TerminalCapabilities,
    detect_capabilities,
    format_row,
)
from tidegate.report.styled_text import ASCII_SYMBOLS, UNICODE_SYMBOLS, Row, Span, Style

GREEN: Row = (Span("ok", Style.GOOD), Span(" done"))


class Tty(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self) -> bool:
        return True


class RecordedStream(io.StringIO):
    """Remembers what was written since it was last looked at."""

    def taken(self) -> str:
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text


def rows(*texts: str) -> list[Row]:
    return [(Span(text),) for text in texts]


def test_a_terminal_gets_pictures_and_colours() -> None:
    assert detect_capabilities(
        Tty(), {"TERM": "xterm", "LANG": "en_US.UTF-8"}
    ) == TerminalCapabilities(is_interactive=True, has_colors=True, symbols=UNICODE_SYMBOLS)


def test_a_pipe_gets_neither() -> None:
    ability = detect_capabilities(
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), {"TERM": "xterm"}
    )

    assert (ability.is_interactive, ability.has_colors) == (False, False)


def test_no_color_removes_colors_only() -> None:
    ability = detect_capabilities(Tty(), {"TERM": "xterm", "NO_COLOR": "1"})

    assert (ability.is_interactive, ability.has_colors) == (True, False)


@pytest.mark.parametrize(
    ("environ", "marks"),
    [
        ({}, UNICODE_SYMBOLS),
        ({"LANG": "de_DE.utf8"}, UNICODE_SYMBOLS),
        ({"LANG": "C"}, ASCII_SYMBOLS),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, ASCII_SYMBOLS),
        ({"LANG": "C", "LC_CTYPE": "en_US.UTF-8"}, UNICODE_SYMBOLS),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "POSIX"}, ASCII_SYMBOLS),
    ],
)
def test_the_locale_decides_on_the_marks(environ: dict[str, str], marks: object) -> None:
    assert detect_capabilities(Tty(), {"TERM": "xterm", **environ}).symbols is marks


def test_a_stream_that_cannot_write_unicode_gets_plain_marks() -> None:
    assert detect_capabilities(Tty("latin-1"), {"LANG": "en_US.UTF-8"}).symbols is ASCII_SYMBOLS


def test_colours_are_left_out_where_they_are_switched_off() -> None:
    assert format_row(GREEN, with_colors=True) == "\x1b[32mok\x1b[0m done"
    assert format_row(GREEN, with_colors=False) == "ok done"


def test_a_stream_without_a_size_has_a_usual_one() -> None:
    assert terminal_size(io.StringIO()) == (80, 24)


def test_only_rows_that_changed_are_written() -> None:
    sheet = RecordedStream()
    terminal = Terminal(
        SafeStream(sheet), TerminalCapabilities(is_interactive=True), lambda: (80, 24)
    )
    terminal.draw(rows("one", "two", "three"))
    sheet.taken()

    terminal.draw(rows("one", "TWO", "three"))

    written = sheet.taken()
    assert "TWO" in written
    assert "one" not in written
    assert "three" not in written


def test_a_picture_that_is_the_same_is_not_written() -> None:
    sheet = RecordedStream()
    terminal = Terminal(
        SafeStream(sheet), TerminalCapabilities(is_interactive=True), lambda: (80, 24)
    )
    terminal.draw(rows("one"))
    sheet.taken()

    terminal.draw(rows("one"))

    assert sheet.taken() == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["one", "two"], ["one", "two", "three"]),
        (["one", "two", "three"], ["one"]),
        (["a longer row"], ["short"]),
        (["one", "two"], []),
        ([], ["one"]),
    ],
)
def test_a_picture_takes_the_place_of_another(before: list[str], after: list[str]) -> None:
    sheet, vt = RecordedStream(), VirtualTerminal()
    vt.feed("$ tidegate\r\n")
    terminal = Terminal(
        SafeStream(sheet), TerminalCapabilities(is_interactive=True), lambda: (80, 24)
    )

    terminal.draw(rows(*before))
    vt.feed(sheet.taken())
    terminal.draw(rows(*after))
    vt.feed(sheet.taken())

    assert vt.screen == ["$ tidegate", *after]


def test_a_picture_at_the_bottom_of_a_full_screen_scrolls_once() -> None:
    sheet, vt = RecordedStream(), VirtualTerminal(lines=5)
    vt.feed("".join(f"line {number}\r\n" for number in range(5)))
    terminal = Terminal(
        SafeStream(sheet), TerminalCapabilities(is_interactive=True), lambda: (80, 5)
    )

    for beat in range(4):
        terminal.draw(rows("top", f"beat {beat}", "bottom"))
        vt.feed(sheet.taken())

    assert vt.history[-5:] == ["line 4", "top", "beat 3", "bottom", ""]
    assert sum(row == "top" for row in vt.history) == 1


def test_a_rollout_continues_after_its_output_is_closed() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        outlet = SafeStream(stream)

        outlet.write("told\n")
        outlet.write("told to nobody\n")

        assert outlet.is_closed


def test_unencodable_characters_are_replaced() -> None:
    stream = Tty("ascii")

    SafeStream(stream).write("✓ wave 0\n")

    stream.seek(0)
    assert stream.read() == "? wave 0\n"

"""Output of text: lines for people, documents for programs, errors and notes.

Names, messages and paths come from files and clusters. Control characters, line breaks and CI
commands in them are escaped. Nothing heavy is imported here: the first output of a command must
not wait for imports.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TextIO

import click

from tidegate.errors import (
    OutputError,
    TidegateError,
    escape_line,
    escape_lines,
    redact_urls,
    sanitize_document,
)
from tidegate.model.display_paths import display_error

OUTPUT_CLOSED = "output.closed"
_ERROR_FORMAT = {"json": False}


def print_line(line: str, *, err: bool = False) -> None:
    """Print a line for people."""
    _write(f"{escape_line(redact_urls(line))}\n", err=err)


def print_lines(text: str, *, err: bool = False) -> None:
    """Print lines of Tidegate itself, such as an error with its location and hint."""
    _write(f"{escape_lines(redact_urls(text))}\n", err=err)


def print_document(document: str, *, end: str = "\n") -> None:
    """Print a JSON or YAML document."""
    _write(f"{sanitize_document(document)}{end}", err=False)


def set_json_errors(enabled: bool) -> None:  # noqa: FBT001 - it is all that is said
    """Set whether errors and notes are printed as JSON lines."""
    _ERROR_FORMAT["json"] = enabled


def has_json_errors() -> bool:
    return _ERROR_FORMAT["json"]


def print_error(error: TidegateError) -> None:
    """Print an error to standard error."""
    shown = display_error(error)
    if not has_json_errors():
        print_lines(str(shown), err=True)
        return
    location = str(shown.location) if shown.location else None
    document = {"code": shown.code, "severity": "error", "message": shown.problem}
    print_error_document({**document, "location": location, "why": "", "fix": shown.hint})


def note(message: str, *, severity: str = "note") -> None:
    """Print a note to standard error."""
    if has_json_errors():
        document = {"code": "", "severity": severity, "message": message}
        print_error_document({**document, "location": None, "why": "", "fix": ""})
    else:
        print_line(f"{severity}: {message}", err=True)


def print_error_document(document: Mapping[str, object]) -> None:
    """Print a JSON document to standard error, on its own line."""
    import json  # noqa: PLC0415 - only where a program reads

    _write(
        f"{sanitize_document(redact_urls(json.dumps(document, ensure_ascii=False)))}\n", err=True
    )


def _write(text: str, *, err: bool) -> None:
    stream = sys.stderr if err else sys.stdout
    if stream is None:
        if err:
            return  # there is no stream for it
        raise output_error(errno.EBADF)
    try:
        click.echo(text, nl=False, err=err)
    except OSError as error:
        redirect_to_devnull(stream)
        if not err:
            raise output_error(error.errno) from None


def close_output() -> None:
    """Close standard output while the command keeps running."""
    sys.stdout.flush()
    redirect_to_devnull(sys.stdout)


def output_error(error_number: int | None) -> OutputError:
    """Return the error for a standard output that cannot be written."""
    if error_number == errno.EPIPE:
        return OutputError("output.closed", "standard output was closed")
    reason = os.strerror(error_number) if error_number else "unknown reason"
    return OutputError("output.refused", f"cannot write to standard output: {reason}")


def redirect_to_devnull(stream: TextIO) -> None:
    """Redirect a stream to /dev/null, so that Python does not fail to flush it at exit."""
    with suppress(OSError, ValueError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, stream.fileno())
        os.close(devnull)


DEFAULT_SIZE = (80, 24)
SizeFunction = Callable[[], tuple[int, int]]


def is_interactive(stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Return whether a stream is a terminal with a movable cursor. The stream may be None."""
    return stream is not None and stream.isatty() and environ.get("TERM", "") not in {"", "dumb"}


def max_line_width(stream: TextIO) -> int | None:
    """Return the width of lines; None if the stream is no terminal."""
    return terminal_size(stream)[0] if stream.isatty() else None


def terminal_size(stream: TextIO) -> tuple[int, int]:
    """Return columns and lines; a default if the terminal does not report them."""
    with suppress(OSError, ValueError):
        columns, lines = os.get_terminal_size(stream.fileno())
        if columns > 0 and lines > 0:
            return columns, lines
    return DEFAULT_SIZE

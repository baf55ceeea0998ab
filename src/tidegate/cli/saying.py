"""The one way out for text: lines for people, documents for programs.

Names, messages and paths come from files and clusters of strangers. Nothing in them moves a cursor,
makes a line of its own, or commands a CI server; and what cannot be written is told by an error.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import TextIO

import click

from tidegate.errors import OutputError, escaped, escaped_lines, harmless, without_user

CLOSED = "output.closed"


def say(line: str, *, err: bool = False) -> None:
    """One line for people."""
    _write(f"{escaped(without_user(line))}\n", err=err)


def say_lines(text: str, *, err: bool = False) -> None:
    """Lines that are all ours, such as an error with its place and its hint."""
    _write(f"{escaped_lines(without_user(text))}\n", err=err)


def hand_out(document: str, *, end: str = "\n") -> None:
    """A document for programs, which read in it what was meant: JSON, or YAML."""
    _write(f"{harmless(document)}{end}", err=False)


def _write(text: str, *, err: bool) -> None:
    stream = sys.stderr if err else sys.stdout
    if stream is None:
        if err:
            return  # nobody can be told
        raise unheard(errno.EBADF)
    try:
        click.echo(text, nl=False, err=err)
    except OSError as error:
        forget(stream)
        if not err:
            raise unheard(error.errno) from None


def close_output() -> None:
    """Say on standard output that this was all, while the command goes on."""
    sys.stdout.flush()
    forget(sys.stdout)


def unheard(number: int | None) -> OutputError:
    """What is said where standard output takes no more."""
    if number == errno.EPIPE:
        return OutputError("output.closed", "nobody reads standard output any more")
    reason = os.strerror(number) if number else "no reason was given"
    return OutputError("output.refused", f"standard output cannot be written: {reason}")


def forget(stream: TextIO) -> None:
    """Python writes what is left over when it ends, and would complain."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)

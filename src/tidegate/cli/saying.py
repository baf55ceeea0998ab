"""The one way out for text: lines for people, documents for programs.

Names, messages and paths come from files and clusters of strangers. Nothing in them moves a cursor,
makes a line of its own, or commands a CI server; and what cannot be written is told by an error.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TextIO

import click

from tidegate.errors import (
    OutputError,
    TidegateError,
    escaped,
    escaped_lines,
    harmless,
    without_user,
)
from tidegate.report.places import seen_error

CLOSED = "output.closed"
_SPEECH = {"json": False}


def say(line: str, *, err: bool = False) -> None:
    """One line for people."""
    _write(f"{escaped(without_user(line))}\n", err=err)


def say_lines(text: str, *, err: bool = False) -> None:
    """Lines that are all ours, such as an error with its place and its hint."""
    _write(f"{escaped_lines(without_user(text))}\n", err=err)


def hand_out(document: str, *, end: str = "\n") -> None:
    """A document for programs, which read in it what was meant: JSON, or YAML."""
    _write(f"{harmless(document)}{end}", err=False)


def speak_json(is_wanted: bool) -> None:  # noqa: FBT001 - it is all that is said
    """Whether what goes wrong is told as JSON, each on a line; programs read it."""
    _SPEECH["json"] = is_wanted


def speaks_json() -> bool:
    return _SPEECH["json"]


def say_error(error: TidegateError) -> None:
    """The one place where errors are told."""
    told = seen_error(error)
    if not speaks_json():
        say_lines(str(told), err=True)
        return
    where = str(told.where) if told.where else None
    document = {"code": told.code, "severity": "error", "sentence": told.problem}
    say_document({**document, "where": where, "why": "", "fix": told.hint})


def note(sentence: str, *, severity: str = "note") -> None:
    """A sentence beside the output."""
    if speaks_json():
        document = {"code": "", "severity": severity, "sentence": sentence}
        say_document({**document, "where": None, "why": "", "fix": ""})
    else:
        say(f"{severity}: {sentence}", err=True)


def say_document(document: Mapping[str, object]) -> None:
    """What went wrong, or might, for programs: beside the output, on a line of its own."""
    import json  # noqa: PLC0415 - only where a program reads

    _write(f"{harmless(without_user(json.dumps(document, ensure_ascii=False)))}\n", err=True)


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

"""The worker's side of its line: requests in, answers out, each behind its length.

It imports little, so that a worker is there soon.
"""

from __future__ import annotations

import os
from collections.abc import Callable

HEADER = 8
STDIN, STDOUT, STDERR = 0, 1, 2


def framed(text: bytes) -> bytes:
    """A request or an answer as it goes over the line."""
    return len(text).to_bytes(HEADER, "big") + text


def serve(answer: Callable[[bytes], bytes]) -> None:
    """The worker's side: answer requests until there are no more. Never returns early."""
    line = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)  # a library that prints must not break the line
    _write(line, b"")
    while (request := _read(STDIN)) is not None:
        _write(line, answer(request))


def _read(source: int) -> bytes | None:
    header = _read_exactly(source, HEADER)
    return None if header is None else _read_exactly(source, int.from_bytes(header, "big"))


def _read_exactly(source: int, size: int) -> bytes | None:
    text = bytearray()
    while len(text) < size:
        piece = os.read(source, size - len(text))
        if not piece:
            return None
        text += piece
    return bytes(text)


def _write(target: int, answer: bytes) -> None:
    rest = memoryview(framed(answer))
    while rest:
        rest = rest[os.write(target, rest) :]

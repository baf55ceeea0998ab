"""Runs jq: where path expressions lead in objects. The program of a worker that can be killed.

Nothing but that worker loads jq. Before it does, it gives away its environment, and with its
libraries loaded it can open no file any more: an expression is a stranger's. What jq says of an
expression goes back; what it says of an object does not, for it quotes what is in there.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module
from math import ceil, floor
from typing import Protocol

import msgspec

from tidegate.external.serving import serve
from tidegate.model.ignoring import Path
from tidegate.model.objects import Json

KEPT = 256
DESCRIPTORS = 4
"""The three streams and the line that `serve` makes of one: there is none left for a file."""
NO_PATH = "Invalid path expression"
"""How jq begins to say that an expression makes values instead of naming places."""
NOT_A_PATH = "it makes values, and names no place where one stands"
CHOOSES = re.compile(r"//|\b(?:if|catch)\b")
"""What makes a value in one object may name a place in another."""


class Check(msgspec.Struct, frozen=True, tag="check"):
    """Is it an expression? The answer is a text: what is wrong with it, or nothing."""

    expression: str


class Find(msgspec.Struct, frozen=True, tag="find"):
    """Where do expressions lead? The answer is a list of paths for each of the bodies."""

    expressions: tuple[str, ...]
    bodies: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"Find({len(self.bodies)} bodies)"


class _Program(Protocol):
    def input_text(self, text: str, /) -> _Program: ...
    def all(self) -> list[Json]: ...


_read: Callable[[bytes], Check | Find] = msgspec.msgpack.Decoder(Check | Find).decode
_write = msgspec.msgpack.Encoder().encode


def answer(request: bytes) -> bytes:
    """One request of the worker's line."""
    match _read(request):
        case Check(expression):
            return _write(_mistake(expression))
        case Find(expressions, bodies):
            return _write([list(_places(expressions, body)) for body in bodies])


def _mistake(expression: str) -> str:
    try:
        _compile(expression)
        program = _paths_of(expression)
    except ValueError as error:
        first, *_ = str(error).splitlines()
        return first.removeprefix("jq: error: ").removesuffix(":").replace(" at <top-level>", "")
    try:
        program.input_text("{}").all()
    except ValueError as error:
        if str(error).startswith(NO_PATH) and not CHOOSES.search(expression):
            return NOT_A_PATH
    return ""


def _places(expressions: tuple[str, ...], body: bytes) -> Iterator[Path]:
    """Where something stands. An expression that ends with an error leads nowhere at all."""
    text = body.decode()
    value: Json = msgspec.json.decode(body)
    for expression in expressions:
        try:
            (found,) = _paths_of(expression).input_text(text).all()
        except ValueError:
            continue
        for path in found if isinstance(found, list) else ():
            if isinstance(path, list):
                yield from _resolve(path, value)


def _resolve(path: list[Json], value: Json) -> Iterator[Path]:
    """A path of jq's as names and numbers from zero on; none where nothing stands."""
    if not path:
        yield ()
        return
    step, rest = path[0], path[1:]
    if isinstance(value, dict) and isinstance(step, str) and step in value:
        yield from ((step, *way) for way in _resolve(rest, value[step]))
    elif isinstance(value, list) and isinstance(step, dict):
        yield from _in_slice(step, rest, value)
    elif isinstance(value, list) and isinstance(step, int | float):
        place = floor(step) + (len(value) if step < 0 else 0)
        if 0 <= place < len(value):
            yield from ((place, *way) for way in _resolve(rest, value[place]))


def _in_slice(step: dict[str, Json], rest: list[Json], value: list[Json]) -> Iterator[Path]:
    start, end = _whole(step.get("start"), floor), _whole(step.get("end"), ceil)
    chosen = range(len(value))[start:end]
    if not rest:
        yield from ((place,) for place in chosen)
        return
    for first, *way in _resolve(rest, value[start:end]):
        yield (chosen[int(first)], *way)


def _whole(bound: Json, rounded: Callable[[float], int]) -> int | None:
    return rounded(bound) if isinstance(bound, int | float) else None


@lru_cache(maxsize=KEPT)
def _paths_of(expression: str) -> _Program:
    return _compile(f"[path({expression})]")


def _compile(text: str) -> _Program:
    program: _Program = import_module("jq").compile(text)
    return program


def main() -> None:
    """Serve, with nothing in reach that an expression could tell."""
    os.environ.clear()
    import_module("jq")
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    serve(answer)


if __name__ == "__main__":
    main()

"""Runs jq: where path expressions lead in objects. The program of a worker that can be killed.

Nothing but that worker loads jq. Before it does, it gives away its environment, and with its
libraries loaded it can open no file any more: an expression is a stranger's. What jq says of an
expression goes back; what it says of an object does not, for it quotes what is in there.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Protocol

import msgspec

from tidegate.external.serving import serve
from tidegate.model.ignoring import Path, Paths
from tidegate.model.objects import Json
from tidegate.model.patterns import late

KEPT = 256
DESCRIPTORS = 4
"""The three streams and the line that `serve` makes of one: there is none left for a file."""
NO_PATH = "Invalid path expression"
"""How jq begins to say that an expression makes values instead of naming places."""
NOT_A_PATH = "it makes values, and names no place where one stands"
CHOOSES = late(r"//|\b(?:if|catch)\b")
"""What makes a value in one object may name a place in another."""


class JqQuestion(msgspec.Struct, frozen=True):
    expressions: tuple[str, ...]
    bodies: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"Question({len(self.bodies)} bodies)"


class JqReply(msgspec.Struct, frozen=True):
    """The places in each of the bodies; `mistake`: what is wrong with an expression, if anything.

    An expression that ends with an error leads nowhere at all.
    """

    paths: tuple[Paths, ...]
    mistake: str


class _Program(Protocol):
    def input_text(self, text: str, /) -> _Program: ...
    def all(self) -> list[list[list[Json]]]: ...


_read = msgspec.msgpack.Decoder(JqQuestion).decode


def answer(request: bytes) -> bytes:
    """One request of the worker's line."""
    question, mistake = _read(request), ""
    sides: list[Paths] = []
    for body in question.bodies:
        found: list[Path] = []
        for expression in question.expressions:
            try:
                found += _places(_program(expression), body)
            except SyntaxError as error:
                mistake = str(error)
            except ValueError as error:
                if str(error).startswith(NO_PATH) and not CHOOSES.search(expression):
                    mistake = NOT_A_PATH
        sides.append(tuple(found))
    return msgspec.msgpack.encode(JqReply(tuple(sides), mistake))


@lru_cache(maxsize=KEPT)
def _program(expression: str) -> _Program:
    """It must also be a program by itself, with no bracket that reaches beyond it."""
    compile_text = import_module("jq").compile
    try:
        compile_text(expression)
        program: _Program = compile_text(f"[path({expression})]")
    except ValueError as error:
        said = str(error).splitlines()[0].removeprefix("jq: error: ").removesuffix(":")
        raise SyntaxError(said.replace(" at <top-level>", "")) from None
    return program


def _places(program: _Program, body: bytes) -> list[Path]:
    (paths,) = program.input_text(body.decode()).all()
    value: Json = msgspec.json.decode(body)
    return [place for path in paths for place in _resolve(path, value)]


def _resolve(path: list[Json], value: Json) -> Iterator[Path]:
    """A path of jq's as names and numbers from zero on; none where nothing stands."""
    match path, value:
        case [], _:
            yield ()
        case [str(step), *rest], dict() if step in value:
            yield from ((step, *way) for way in _resolve(rest, value[step]))
        case [int() | float() as step, *rest], list():
            place = int(step // 1) + (len(value) if step < 0 else 0)
            if 0 <= place < len(value):
                yield from ((place, *way) for way in _resolve(rest, value[place]))
        case [{"start": start, "end": end}, *rest], list():
            part = slice(_bound(start), _bound(end))
            chosen = range(len(value))[part]
            ways = _resolve(rest, value[part]) if rest else zip(range(len(chosen)))
            yield from ((chosen[int(first)], *way) for first, *way in ways)
        case _:
            pass


def _bound(number: Json) -> int | None:
    return int(number) if isinstance(number, int | float) else None


if __name__ == "__main__":
    os.environ.clear()
    import_module("jq")
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    serve(answer)

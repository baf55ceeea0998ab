"""Worker program that evaluates jq path expressions and can be killed.

Only this worker loads jq. It clears its environment before that, and with its libraries loaded
it can open no file any more, as expressions are untrusted. Errors of jq about an expression are
returned; errors about an object are not, as they quote its contents.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Protocol

import msgspec

from tidegate.external.worker_main import serve
from tidegate.model.k8s.objects import Json
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.ignore_differences import DifferencePath, DifferencePaths

CACHE_SIZE = 256
MAX_DESCRIPTORS = 4
"""The three standard streams and the channel of `serve`: none is left for a file."""
NO_PATH_PREFIX = "Invalid path expression"
"""How jq's message starts for an expression that computes values instead of paths."""
NOT_A_PATH_MESSAGE = "it computes values instead of selecting fields"
CONDITIONAL = lazy_regex(r"//|\b(?:if|catch)\b")
"""Operators of expressions that compute a value for one object and a path in another."""


class JqQuery(msgspec.Struct, frozen=True):
    """A request: expressions, and the objects to evaluate them on."""

    expressions: tuple[str, ...]
    """jq path expressions."""
    bodies: tuple[bytes, ...]
    """Objects as JSON."""

    def __repr__(self) -> str:
        return f"Question({len(self.bodies)} bodies)"


class JqReply(msgspec.Struct, frozen=True):
    """The paths in each of the bodies. An expression that ends with an error has none."""

    paths: tuple[DifferencePaths, ...]
    """The paths in each body."""
    error: str
    """What is wrong with an expression; empty if nothing is."""


class _Program(Protocol):
    def input_text(self, text: str, /) -> _Program: ...
    def all(self) -> list[list[list[Json]]]: ...


_decode_query = msgspec.msgpack.Decoder(JqQuery).decode


def evaluate(payload: bytes) -> bytes:
    """Evaluate one request of the worker protocol."""
    query, problem = _decode_query(payload), ""
    paths_by_body: list[DifferencePaths] = []
    for body in query.bodies:
        paths: list[DifferencePath] = []
        for expression in query.expressions:
            try:
                paths += _find_paths(_compile(expression), body)
            except SyntaxError as error:
                problem = str(error)
            except ValueError as error:
                if str(error).startswith(NO_PATH_PREFIX) and not CONDITIONAL.search(expression):
                    problem = NOT_A_PATH_MESSAGE
        paths_by_body.append(tuple(paths))
    return msgspec.msgpack.encode(JqReply(tuple(paths_by_body), problem))


@lru_cache(maxsize=CACHE_SIZE)
def _compile(expression: str) -> _Program:
    """Compile an expression. It must also compile alone, with no bracket that ends beyond it."""
    compile_text = import_module("jq").compile
    try:
        compile_text(expression)
        program: _Program = compile_text(f"[path({expression})]")
    except ValueError as error:
        message = str(error).splitlines()[0].removeprefix("jq: error: ").removesuffix(":")
        raise SyntaxError(message.replace(" at <top-level>", "")) from None
    return program


def _find_paths(program: _Program, body: bytes) -> list[DifferencePath]:
    (paths,) = program.input_text(body.decode()).all()
    value: Json = msgspec.json.decode(body)
    return [resolved for path in paths for resolved in _resolve(path, value)]


def _resolve(path: list[Json], value: Json) -> Iterator[DifferencePath]:
    """Yield a jq path as keys and indexes from zero on; nothing where it does not exist."""
    match path, value:
        case [], _:
            yield ()
        case [str(step), *remaining], dict() if step in value:
            yield from ((step, *tail) for tail in _resolve(remaining, value[step]))
        case [int() | float() as step, *remaining], list():
            index = int(step // 1) + (len(value) if step < 0 else 0)
            if 0 <= index < len(value):
                yield from ((index, *tail) for tail in _resolve(remaining, value[index]))
        case [{"start": start, "end": end}, *remaining], list():
            bounds = slice(_bound(start), _bound(end))
            indexes = range(len(value))[bounds]
            tails = _resolve(remaining, value[bounds]) if remaining else zip(range(len(indexes)))
            yield from ((indexes[int(first)], *tail) for first, *tail in tails)
        case _:
            pass


def _bound(number: Json) -> int | None:
    return int(number) if isinstance(number, int | float) else None


if __name__ == "__main__":
    os.environ.clear()
    import_module("jq")
    resource.setrlimit(resource.RLIMIT_NOFILE, (MAX_DESCRIPTORS, MAX_DESCRIPTORS))
    serve(evaluate)

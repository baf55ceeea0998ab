"""Runs scripts: one after the other, each in an environment of its own, within limits.

Made for a worker that can be killed. A step limit and a memory limit end nearly every script that
does not end by itself. What Lua's own C code does in one step, such as matching a bad pattern, only
the one who started the worker can end.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import msgspec

from tidegate.health.lua import messages
from tidegate.model.k8s.objects import Json

KINDS_OF_LUA = ("lupa.luajit21", "lupa.lua51")
"""LuaJIT speaks Lua 5.1 and, like Argo CD's own Lua, knows `goto`. Not every system has it."""
MIB = 1024 * 1024
STEPS = 10_000_000
MEMORY = 64 * MIB
LITTERED = 8 * MIB
"""A state that holds more than this is thrown away: Lua fails before it collects what it could."""
SCRIPTS_KEPT = 256
LONGEST_TEXT = 4096
WORD = 63
BYTES = "latin-1"
"""A character for each byte, both ways: texts may hold bytes that are no UTF-8."""


class _Run(Protocol):
    def __call__(
        self, script: str, body: object, now: int, open_libs: object, /
    ) -> tuple[str, str, str]: ...


class _Runtime(Protocol):
    def execute(self, code: str, /, *arguments: int) -> _Run: ...
    def table_from(self, source: Json, /, *, recursive: bool) -> object: ...
    def get_memory_used(self, *, total: bool) -> int: ...


class Machine:
    """One Lua state at a time, kept warm with the scripts that it has compiled."""

    def __init__(self, *, steps: int = STEPS, lua: str = "") -> None:
        self._steps = steps
        self._lua = lua or find_lua() or KINDS_OF_LUA[0]
        self._runtime, self._run = self._start()

    def answer(self, request: bytes) -> bytes:
        """One request of a worker's line."""
        return messages.write_answer(self.evaluate(messages.read_question(request)))

    def evaluate(self, question: messages.Question) -> messages.ScriptAnswer:
        table = self._table(_read_body(question.body))
        script = question.script.encode().decode(BYTES)
        how, *texts = self._run(script, table, question.now, question.open_libs)
        del table
        if self._runtime.get_memory_used(total=True) > LITTERED:
            self._runtime, self._run = self._start()
        first, second = (text.encode(BYTES).decode(errors="replace") for text in texts)
        match how:
            case "said":
                return messages.Returned(first, second)
            case "nothing":
                return messages.Silent()
            case _:
                return messages.Broke(first)

    def _table(self, body: Json) -> object:
        try:
            return self._runtime.table_from(body, recursive=True)
        except OverflowError:
            return self._runtime.table_from(_plain(body), recursive=True)

    def _start(self) -> tuple[_Runtime, _Run]:
        runtime: _Runtime = import_module(self._lua).LuaRuntime(
            encoding=BYTES,
            source_encoding=BYTES,
            register_eval=False,
            register_builtins=False,
            attribute_filter=_refuse,
            unpack_returned_tuples=True,
            max_memory=MEMORY,
        )
        prelude = Path(__file__).with_name("prelude.lua").read_text()
        return runtime, runtime.execute(prelude, self._steps, SCRIPTS_KEPT, LONGEST_TEXT)


def find_lua() -> str | None:
    """The best Lua that is installed."""
    if find_spec("lupa") is None:
        return None
    return next((name for name in KINDS_OF_LUA if find_spec(name) is not None), None)


def _refuse(_object: object, _name: object, _is_setting: object) -> None:
    """Nothing of Python is handed to a script; should it get hold of something, it is of no use."""
    raise AttributeError


def _read_body(body: bytes) -> Json:
    """The object, its texts byte by byte; without nulls, which Lua's tables cannot hold."""
    read: Json = msgspec.json.decode(body.decode(BYTES))
    return _plain(read) if b"null" in body else read


def _plain(value: Json) -> Json:
    """What Lua can hold: no null, and no whole number of more than 64 bits."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_plain(inner) for inner in value if inner is not None]
    if isinstance(value, int) and value.bit_length() > WORD:
        return float(value)
    return value

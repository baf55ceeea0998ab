"""A Lua interpreter for a worker process that can be killed. Each script has its own environment.

A step limit and a memory limit end nearly every script that does not end by itself. The C code of
Lua, such as the matching of a bad pattern, ends only when the parent kills the worker.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import msgspec

from tidegate.health.lua import messages
from tidegate.model.k8s.objects import Json

LUA_MODULES = ("lupa.luajit21", "lupa.lua51")
"""Lua libraries by preference.

LuaJIT has Lua 5.1 and `goto`, like the Lua of Argo CD (gopher-lua 1.1.2).
"""
MIB = 1024 * 1024
MAX_STEPS = 10_000_000
MAX_MEMORY = 64 * MIB
RESTART_MEMORY = 8 * MIB
"""A Lua state that uses more memory is replaced: Lua fails before it collects its garbage."""
MAX_CACHED_SCRIPTS = 256
MAX_TEXT_LENGTH = 4096
MAX_INTEGER_BITS = 63
BYTE_ENCODING = "latin-1"
"""One character for each byte, in both directions: texts may hold invalid UTF-8."""


class _Run(Protocol):
    def __call__(
        self, script: str, body: object, now: int, open_libs: object, /
    ) -> tuple[str, str, str]: ...


class _Runtime(Protocol):
    def execute(self, code: str, /, *arguments: int) -> _Run: ...
    def table_from(self, source: Json, /, *, recursive: bool) -> object: ...
    def get_memory_used(self, *, total: bool) -> int: ...


class LuaInterpreter:
    """A Lua state that is reused, with its compiled scripts."""

    def __init__(self, *, steps: int = MAX_STEPS, lua: str = "") -> None:
        self._steps = steps
        self._lua = lua or find_lua() or LUA_MODULES[0]
        self._runtime, self._run = self._start()

    def answer(self, request: bytes) -> bytes:
        """Answer an encoded request."""
        return messages.encode_lua_response(self.evaluate(messages.decode_lua_request(request)))

    def evaluate(self, request: messages.LuaRequest) -> messages.LuaResponse:
        """Run a script and return its result.

        Like `ExecuteHealthLua` in `util/lua/lua.go` of Argo CD 3.5.6.
        """
        table = self._table(_read_body(request.body))
        script = request.script.encode().decode(BYTE_ENCODING)
        outcome, *texts = self._run(script, table, request.now, request.open_libs)
        del table
        if self._runtime.get_memory_used(total=True) > RESTART_MEMORY:
            self._runtime, self._run = self._start()
        first, second = (text.encode(BYTE_ENCODING).decode(errors="replace") for text in texts)
        match outcome:
            case "said":
                return messages.ScriptResult(first, second)
            case "nothing":
                return messages.NoScriptResult()
            case _:
                return messages.ScriptFailed(first)

    def _table(self, body: Json) -> object:
        try:
            return self._runtime.table_from(body, recursive=True)
        except OverflowError:
            return self._runtime.table_from(_lua_value(body), recursive=True)

    def _start(self) -> tuple[_Runtime, _Run]:
        runtime: _Runtime = import_module(self._lua).LuaRuntime(
            encoding=BYTE_ENCODING,
            source_encoding=BYTE_ENCODING,
            register_eval=False,
            register_builtins=False,
            attribute_filter=_deny_attribute,
            unpack_returned_tuples=True,
            max_memory=MAX_MEMORY,
        )
        prelude = Path(__file__).with_name("prelude.lua").read_text()
        return runtime, runtime.execute(prelude, self._steps, MAX_CACHED_SCRIPTS, MAX_TEXT_LENGTH)


def find_lua() -> str | None:
    """Return the module of the best installed Lua library, or None."""
    if find_spec("lupa") is None:
        return None
    return next((name for name in LUA_MODULES if find_spec(name) is not None), None)


def _deny_attribute(_object: object, _name: object, _is_setting: object) -> None:
    """Deny every attribute of a Python object. Scripts never get one; this is a second barrier."""
    raise AttributeError


def _read_body(body: bytes) -> Json:
    """Return the object with byte texts and without nulls, which Lua tables cannot hold."""
    value: Json = msgspec.json.decode(body.decode(BYTE_ENCODING))
    return _lua_value(value) if b"null" in body else value


def _lua_value(value: Json) -> Json:
    """Return a value that Lua can hold: no null, no whole number of more than 64 bits."""
    if isinstance(value, dict):
        return {key: _lua_value(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_lua_value(inner) for inner in value if inner is not None]
    if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
        return float(value)
    return value

"""Requests to a Lua worker, its responses, and the verdict that a response means."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_int
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.verdict import Health, Verdict

HEALTH_STATUSES = frozenset(health.value for health in Health)
INVALID_STATUS = "Lua returned an invalid health status"
"""The message of Argo CD for an unknown status."""


class LuaRequest(msgspec.Struct, frozen=True, gc=False):
    """A script and the object to judge."""

    script: str
    """The script."""
    open_libs: bool
    """Whether the script may use the standard libraries of Lua."""
    now: int
    """The current time in seconds since the epoch."""
    body: bytes
    """The object as JSON."""

    def __repr__(self) -> str:
        return f"LuaRequest({len(self.body)} bytes)"


class ScriptResult(msgspec.Struct, frozen=True, tag="said", gc=False):
    """The table that a script returned. The status may be any text."""

    status: str
    """The field `status` of the table."""
    message: str
    """The field `message` of the table."""


class NoScriptResult(msgspec.Struct, frozen=True, tag="silent", gc=False):
    """The result of a script that returned nothing, or a table without a status."""


class ScriptFailed(msgspec.Struct, frozen=True, tag="broke", gc=False):
    """The result of a script that ended in an error, or was killed."""

    problem: str
    """The error message."""


LuaResponse: TypeAlias = ScriptResult | NoScriptResult | ScriptFailed
encode_lua_request = msgspec.msgpack.Encoder().encode
decode_lua_request = msgspec.msgpack.Decoder(LuaRequest).decode
encode_lua_response: Callable[[LuaResponse], bytes] = msgspec.msgpack.Encoder().encode
decode_lua_response: Callable[[bytes], LuaResponse] = msgspec.msgpack.Decoder(LuaResponse).decode


def read_lua_verdict(reply: bytes, body: dict[str, Json]) -> Verdict:
    """Return the verdict on an object from an encoded response.

    Like `ExecuteHealthLua` and `isValidHealthStatusCode` in `util/lua/lua.go` of Argo CD 3.5.6.
    """
    health, reason, message = _interpret_response(decode_lua_response(reply))
    observed = get_int(body, "status", "observedGeneration")
    return Verdict(health, reason, sanitize(message), observed_generation=observed)


def _interpret_response(answer: LuaResponse) -> tuple[Health, str, str]:
    match answer:
        case ScriptResult(status, message) if status in HEALTH_STATUSES:
            return Health(status), status, message or f"its health script returns {status}"
        case ScriptResult():
            return Health.UNKNOWN, "InvalidStatus", INVALID_STATUS
        case NoScriptResult():
            return Health.UNKNOWN, "NoStatus", "its health script returns no status"
        case ScriptFailed(problem):
            return Health.UNKNOWN, "LuaError", problem

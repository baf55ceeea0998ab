"""Health scripts by kind, and the requests to run them.

    rules = read_lua_rules(content, "argocd-cm.yaml")
    request = rules.make_request(body, now)   # None: there is no script for the object
    verdict = read_lua_verdict(reply, body)

As in Argo CD, an object that is being deleted needs no script, and scripts precede built-in rules.

Like `GetHealthScript` in `util/lua/lua.go` of Argo CD 3.5.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from tidegate.errors import Location
from tidegate.health.argo.verdicts import has_hook_finalizer
from tidegate.health.lua.messages import LuaRequest, encode_lua_request
from tidegate.health.lua.patterns import compile_pattern, count_literal_characters, is_pattern
from tidegate.model.k8s.json_fields import get_value, object_kind
from tidegate.model.k8s.objects import Json
from tidegate.model.times import SECOND, Ms
from tidegate.world.requests import RunWorker

LUA_WORKER = "lua"
"""The name of the Lua worker in `RunWorker`."""


class LuaScript(msgspec.Struct, frozen=True):
    """A health script."""

    text: str
    """The script."""
    open_libs: bool = False
    """Whether the script may use the standard libraries of Lua."""
    location: Location | None = None
    """Where the script was defined."""


class LuaRules(msgspec.Struct, frozen=True):
    """Scripts by group and kind (`apps/Deployment`, `Pod`), and by patterns of such keys."""

    named: dict[str, LuaScript]
    """Scripts by group and kind."""
    patterns: tuple[tuple[re.Pattern[str], LuaScript], ...] = ()
    """Scripts by pattern, the most specific pattern first."""

    @classmethod
    def from_scripts(cls, scripts: Iterable[tuple[str, LuaScript]]) -> LuaRules:
        """Return rules. The most specific pattern comes first, then the first given.

        Raises ValueError for an invalid pattern.
        """
        by_key = {key: script for key, script in dict(scripts).items() if script.text}
        patterns = sorted(filter(is_pattern, by_key), key=count_literal_characters, reverse=True)
        return cls(by_key, tuple((compile_pattern(key), by_key[key]) for key in patterns))

    def find(self, group: str, kind: str) -> LuaScript | None:
        """Return the script for a kind by name, else by pattern, or None."""
        key = f"{group}/{kind}" if group else kind
        script = self.named.get(key)
        if script is not None:
            return script
        matches = (script for pattern, script in self.patterns if pattern.fullmatch(key))
        return next(matches, None)

    def find_script(self, body: dict[str, Json]) -> LuaScript | None:
        """Return the script that judges an object. Returns None if it is being deleted."""
        if not self.named:
            return None
        if get_value(body, "metadata", "deletionTimestamp") is not None and not has_hook_finalizer(
            body
        ):
            return None
        kind = object_kind(body)
        return self.find(kind.group, kind.name)

    def make_request(self, body: dict[str, Json], now: Ms) -> RunWorker | None:
        """Return the request that runs the script for an object, or None if there is no script.

        `now` is the time that the script sees.
        """
        script = self.find_script(body)
        if script is None:
            return None
        encoded = msgspec.json.encode(body)
        request = LuaRequest(script.text, script.open_libs, now // SECOND, encoded)
        return RunWorker(LUA_WORKER, encode_lua_request(request))


NO_LUA_RULES = LuaRules({})

"""Rules of health as Lua scripts, the way Argo CD's users write them."""

from tidegate.health.lua.exchange import read_verdict
from tidegate.health.lua.rules import NO_RULES, LuaRules, Script
from tidegate.health.lua.settings import read_lua_rules

__all__ = ["NO_RULES", "LuaRules", "Script", "read_lua_rules", "read_verdict"]

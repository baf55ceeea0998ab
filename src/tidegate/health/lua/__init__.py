"""Health by Lua scripts, as Argo CD reads them from `argocd-cm`."""

from tidegate.health.lua.argocd_cm import read_lua_rules
from tidegate.health.lua.messages import read_lua_verdict
from tidegate.health.lua.rules import NO_LUA_RULES, LuaRules, LuaScript

__all__ = ["NO_LUA_RULES", "LuaRules", "LuaScript", "read_lua_rules", "read_lua_verdict"]

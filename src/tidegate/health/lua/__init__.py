"""Rules of health as Lua scripts, the way Argo CD's users write them."""

from tidegate.health.lua.argocd_cm import read_lua_rules
from tidegate.health.lua.messages import read_verdict
from tidegate.health.lua.rules import NO_RULES, LuaRules, Script

__all__ = ["NO_RULES", "LuaRules", "Script", "read_lua_rules", "read_verdict"]

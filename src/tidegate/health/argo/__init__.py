"""The health checks of Argo CD, built in and as data rows for its Lua scripts."""

from tidegate.health.argo.judge import builtin_rows, judge

__all__ = ["builtin_rows", "judge"]

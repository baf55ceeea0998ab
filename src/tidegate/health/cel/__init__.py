"""Health by CEL expressions, as in the `healthCheckExprs` of Flux."""

from tidegate.health.cel.messages import read_cel_verdict
from tidegate.health.cel.rules import NO_EXPRESSIONS, CelRules

__all__ = ["NO_EXPRESSIONS", "CelRules", "read_cel_verdict"]

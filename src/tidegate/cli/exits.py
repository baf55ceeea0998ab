"""How a rollout ended, as an exit code of the one table."""

from __future__ import annotations

from tidegate.model.event import Result

CODES = {
    Result.PASSED: 0,
    Result.INVALID: 3,
    Result.FAILED: 4,
    Result.FORBIDDEN: 5,
    Result.OVERTAKEN: 6,
    Result.LATE: 8,
    Result.STOPPED: 130,
}
CHANGES = 10
"""There is something to do, where somebody asked for that."""

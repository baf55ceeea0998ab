"""Exit codes and their meanings."""

from __future__ import annotations

from tidegate.model.rollouts.event import RolloutOutcome

OUTCOME_CODES = {
    RolloutOutcome.PASSED: 0,
    RolloutOutcome.INVALID: 3,
    RolloutOutcome.FAILED: 4,
    RolloutOutcome.FORBIDDEN: 5,
    RolloutOutcome.UNREACHABLE: 5,
    RolloutOutcome.SUPERSEDED: 6,
    RolloutOutcome.TIMED_OUT: 8,
    RolloutOutcome.STOPPED: 130,
}
HAS_CHANGES = 10
"""Exit code of `plan --exit-code` and `diff --exit-code` if something differs."""

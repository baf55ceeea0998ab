"""The user of a command that rolls out, as its action sees them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from tidegate.errors import TidegateError
from tidegate.model.finding import Finding
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.rollout.run import RolloutOptions


class RolloutUser(Protocol):
    """Sees what a rollout finds, changes and waits for."""

    def show_findings(self, findings: Iterable[Finding]) -> None:
        """Show the findings of a plan."""
        ...

    def warn(self, errors: Iterable[TidegateError]) -> None:
        """Show errors that stop nothing."""
        ...

    def note(self, messages: Iterable[str]) -> None:
        """Show what else was done, or left."""
        ...

    async def roll_out(self, plan: Plan, options: RolloutOptions) -> RolloutOutcome:
        """Roll out a plan, show its events, and return its outcome."""
        ...

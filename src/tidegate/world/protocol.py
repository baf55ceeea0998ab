"""The protocol for all access to clusters, real and simulated."""

from __future__ import annotations

from typing import Protocol

from tidegate.model.times import Ms
from tidegate.world.messages import Message
from tidegate.world.requests import Call, RequestId


class World(Protocol):
    """One or more clusters and one clock."""

    def now(self) -> Ms:
        """Return the time, in whole milliseconds since 1970."""
        ...

    def submit(self, call: Call) -> None:
        """Send a call once. Never blocks, never raises: a failure is the outcome of the call."""
        ...

    def cancel(self, request_id: RequestId) -> bool:
        """Cancel a call or a watch: no message about it follows.

        Returns True if it was certainly not sent.
        """
        ...

    async def wait(self, until: Ms | None) -> tuple[Message, ...]:
        """Return messages as soon as there are any, or `TimerFired` if `until` passes first.

        This is the only place where a caller waits.
        """
        ...

    def wake(self) -> None:
        """End a pending wait now, with the messages that have arrived."""
        ...

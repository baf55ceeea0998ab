"""The door: everything the engine knows of a cluster goes through these methods."""

from __future__ import annotations

from typing import Protocol

from tidegate.model.moment import Ms
from tidegate.world.calls import Call, Ticket
from tidegate.world.facts import Fact


class World(Protocol):
    """One or more clusters and one clock."""

    def now(self) -> Ms:
        """The time, in whole milliseconds since 1970."""
        ...

    def submit(self, call: Call) -> None:
        """Send a call, once. Never blocks, never raises: what goes wrong is its outcome."""
        ...

    def cancel(self, ticket: Ticket) -> bool:
        """Forget a call or end a watch: no fact of it follows. True: it was certainly not sent."""
        ...

    async def wait(self, until: Ms | None) -> tuple[Fact, ...]:
        """The only pause: facts as soon as there are any, `Due` when `until` comes first."""
        ...

    def wake(self) -> None:
        """Let a wait that is pending end now, with what there is."""
        ...

"""What is asked beside a rollout, as long as it goes on; no gate waits for the answers."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable

from tidegate.model.event import Event, Told
from tidegate.world.exchange import Exchange


class Beside(ABC):
    """Somebody who looks at a cluster while a rollout runs there."""

    def __init__(self, world: Exchange) -> None:
        self.world = world
        self.party = world.party()
        self.is_over = False

    def end(self) -> None:
        self.is_over = True
        self.party.wake()

    @abstractmethod
    def hear(self, event: Event) -> None:
        """Something has happened."""

    @abstractmethod
    async def go_on(self) -> None:
        """Ask until it `is_over`."""


class Company:
    """All who ask beside one rollout. That it has ended is told when they have told all."""

    def __init__(self, tell: Callable[[Event], None], members: Iterable[Beside]) -> None:
        self._tell = tell
        self._members = tuple(members)
        self._last: Event | None = None

    def hear(self, event: Event) -> None:
        if event.told is Told.ROLLOUT_ENDED and self._members:
            self._last = event
            return
        self._tell(event)
        for one in self._members:
            one.hear(event)

    async def beside(self, story: Awaitable[str]) -> str:
        """What comes of the rollout, with all of them going on meanwhile.

        They end together: who is left waits for a world in which nothing happens any more.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for one in self._members:
                    group.create_task(one.go_on())
                came = await story
                for one in self._members:
                    one.end()
        except BaseExceptionGroup as errors:
            if len(errors.exceptions) == 1:
                raise errors.exceptions[0] from None
            raise
        finally:
            if self._last is not None:
                self._tell(self._last)
        return came

"""Observers that query the cluster while a rollout runs. They never block a gate."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable

from tidegate.model.rollouts.event import Event, EventType
from tidegate.world.dispatcher import Dispatcher


class BackgroundObserver(ABC):
    """An observer that queries a cluster while a rollout runs there."""

    def __init__(self, world: Dispatcher) -> None:
        self.world = world
        self.client = world.client()
        self.is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True
        self.client.wake()

    @abstractmethod
    def on_event(self, event: Event) -> None:
        """Handle an event of the rollout."""

    @abstractmethod
    async def run(self) -> None:
        """Query the cluster until `is_stopped`."""


class ObserverGroup:
    """All observers of one rollout. The end of the rollout is emitted after their last events."""

    def __init__(
        self, emit: Callable[[Event], None], observers: Iterable[BackgroundObserver]
    ) -> None:
        self._emit = emit
        self._observers = tuple(observers)
        self._final_event: Event | None = None

    def on_event(self, event: Event) -> None:
        if event.type is EventType.ROLLOUT_FINISHED and self._observers:
            self._final_event = event
            return
        self._emit(event)
        for observer in self._observers:
            observer.on_event(event)

    async def run_with(self, rollout: Awaitable[str], is_cut_off: Callable[[], bool]) -> str:
        """Run the rollout with all observers, and return its result.

        All observers are stopped together: a remaining one would wait in a World without further
        events. If the rollout has ended without the answers of its cluster, so do they.
        """
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(observer.run()) for observer in self._observers]
                result = await rollout
                for observer, task in zip(self._observers, tasks, strict=True):
                    observer.stop()
                    if is_cut_off():
                        task.cancel()
        except BaseExceptionGroup as errors:
            if len(errors.exceptions) == 1:
                raise errors.exceptions[0] from None
            raise
        finally:
            if self._final_event is not None:
                self._emit(self._final_event)
        return result

"""States of units as lines and as JSON documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

import msgspec

from tidegate.model.display import join_limited
from tidegate.model.units.unit import UnitId
from tidegate.model.views.unit_states import UnitState

MAX_NAMED = 3


class UnitStateDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """JSON document of the state of a unit. Empty fields do not apply to it."""

    unit: str
    sync: str = ""
    """`Synced` or `OutOfSync`."""
    health: str = ""
    ready: str = ""
    """The condition `Ready` of a Flux unit."""
    operation: str = ""
    """Phase of the last operation of an Application."""
    retries: int = 0

    @classmethod
    def from_state(cls, state: UnitState) -> Self:
        return cls(
            unit=str(state.unit),
            sync=state.sync,
            health=state.health,
            ready=state.ready,
            operation=state.operation,
            retries=state.retries,
        )


def unit_state_lines(states: Iterable[UnitState]) -> Iterator[str]:
    """Yield a line for each state, with the units that are in it. Plain directories have none."""
    units: dict[str, list[UnitId]] = {}
    for state in states:
        if state.unit.kind:
            units.setdefault(_state_text(state), []).append(state.unit)
    for text, names in units.items():
        yield f"  {text}: {join_limited(names, MAX_NAMED)}"


def _state_text(state: UnitState) -> str:
    if state.ready:
        return f"Ready {state.ready}"
    operation = f"last sync {state.operation}" if state.operation else ""
    return ", ".join(filter(None, (state.sync, state.health, operation)))

"""How much of a repository a result rests on."""

from __future__ import annotations

import msgspec

MAX_COMMANDS = 3


class Gap(msgspec.Struct, frozen=True):
    """Units of which all or some objects are unknown, for the same reason."""

    problem: str
    units: tuple[str, ...]
    is_partial: bool = False
    """Whether some of their objects are known."""
    command: str = ""
    """The command that would help; empty if none is known."""


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """The units and objects that were looked at, and what was not."""

    unit_count: int = 0
    rendered_count: int = 0
    """Number of units that could be rendered, at least in part."""
    object_count: int = 0
    gaps: tuple[Gap, ...] = ()
    """The gaps, largest first."""

    @property
    def is_incomplete(self) -> bool:
        """Whether the result says little: no object, or less than half of the units, is known."""
        return not self.object_count or 2 * self.rendered_count < self.unit_count

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that would help most."""
        commands = dict.fromkeys(gap.command for gap in self.gaps if gap.command)
        return tuple(commands)[:MAX_COMMANDS]

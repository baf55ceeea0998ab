"""What settings say of one key, a kind or a pattern of kinds, while they are read."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.errors import OperatorsError, Place, foreign
from tidegate.health.lua.patterns import compile_pattern


@dataclass(slots=True)
class Override:
    """A script and its libraries; each may be given without the other, in any order."""

    script: str = ""
    open_libs: bool = False
    where: Place | None = None


def check_key(key: str, where: Place) -> None:
    """Raise for a key that can be neither a name nor a pattern."""
    try:
        compile_pattern(key)
    except ValueError as error:
        problem = f"`{foreign(key)}` is no pattern: {error}"
        raise OperatorsError("health.lua.key", problem, where=where) from None

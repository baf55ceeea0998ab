"""A value that does not print."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Secret:
    """Wraps what must not be shown; `reveal` is the one way to read it, and easy to search for."""

    _value: str = field(repr=False)

    def reveal(self) -> str:
        return self._value

"""Regular expressions that are compiled on first use.

A command uses only a part of a module's expressions, and compiling one takes as long as importing
a module.
"""

from __future__ import annotations

import re
from typing import AnyStr, cast


class _LazyPattern:
    """A placeholder that compiles its pattern on first use."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> object:
        """Return an attribute of the compiled pattern, and cache it on this object."""
        attribute: object = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, attribute)
        return attribute


def lazy_regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled on first use."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))

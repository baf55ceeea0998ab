"""Regular expressions that are compiled when somebody first matches with them.

A module has more of them than a run of a verb uses, and compiling one takes as long as importing
a module.
"""

from __future__ import annotations

import re
from typing import AnyStr, cast


class _Late:
    """Stands for a pattern, and becomes it."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> object:
        """Asked once for each name: what it gives is kept."""
        found: object = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found


def late(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The pattern of a module, which is compiled when it is needed."""
    return cast("re.Pattern[AnyStr]", _Late(text, flags))

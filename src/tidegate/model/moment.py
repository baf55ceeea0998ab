"""Time as whole milliseconds.

Floats lose a moment now and then, and a loop that waits for that moment never ends.
"""

from __future__ import annotations

from typing import NewType

Ms = NewType("Ms", int)

SECOND = Ms(1_000)
MINUTE = Ms(60_000)


def after(moment: Ms, pause: Ms) -> Ms:
    """The moment that lies `pause` behind `moment`."""
    return Ms(moment + pause)

"""How long to wait before asking again."""

from __future__ import annotations

import zlib

from tidegate.model.moment import SECOND, Ms

FIRST = 100
LONGEST = 10 * SECOND


def pause(attempt: int, *, seed: int, ticket: int, at_least: Ms | None = None) -> Ms:
    """Doubles with each attempt, spread by a hash so that many callers do not come back at once.

    The same seed, ticket and attempt give the same pause: a simulated run can be repeated.
    """
    spread = zlib.crc32(f"{seed}/{ticket}/{attempt}".encode()) / 0xFFFF_FFFF
    if at_least is not None:
        return Ms(at_least + round(at_least * spread / 5))
    longest = min(LONGEST, FIRST * 2 ** min(attempt, 16))
    return Ms(round(longest * (1 + spread) / 2))

"""Delays between retries."""

from __future__ import annotations

import zlib

from tidegate.model.times import SECOND, Ms

INITIAL_DELAY = 100
MAX_DELAY = 10 * SECOND


def backoff_delay(attempt: int, *, seed: int, target: str, minimum: Ms | None = None) -> Ms:
    """Return the delay before the next attempt: exponential, with jitter taken from a hash.

    The same seed, target and attempt give the same delay, however many requests were sent before,
    so that a simulated run can be repeated.
    """
    jitter = zlib.crc32(f"{seed}/{target}/{attempt}".encode()) / 0xFFFF_FFFF
    if minimum is not None:
        return Ms(minimum + round(minimum * jitter / 5))
    upper_bound = min(MAX_DELAY, INITIAL_DELAY * 2 ** min(attempt, 16))
    return Ms(round(upper_bound * (1 + jitter) / 2))

"""What was seen to happen, in order: the noun of a timeline."""

from __future__ import annotations

from typing import Literal

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import Live, Ref


class Happening(msgspec.Struct, frozen=True):
    """A change that was told `at` so many milliseconds after the start."""

    at: Ms
    change: Literal["added", "modified", "deleted", "refused"]
    ref: Ref
    live: Live | None = None
    why: str = ""

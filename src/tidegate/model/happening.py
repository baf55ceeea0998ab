"""Entries of a timeline."""

from __future__ import annotations

from typing import Literal

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import LiveObject, Ref


class TimelineEntry(msgspec.Struct, frozen=True):
    """One observed change, `at` milliseconds after the start."""

    at: Ms
    change: Literal["added", "modified", "deleted", "refused"]
    ref: Ref
    live: LiveObject | None = None
    reason: str = ""

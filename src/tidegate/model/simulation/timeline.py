"""Entries of a timeline."""

from __future__ import annotations

from typing import Literal

import msgspec

from tidegate.model.k8s.objects import LiveObject, Ref
from tidegate.model.times import Ms


class TimelineEntry(msgspec.Struct, frozen=True):
    """One observed change, `at` milliseconds after the start."""

    at: Ms
    change: Literal["added", "modified", "deleted", "refused"]
    ref: Ref
    live: LiveObject | None = None
    reason: str = ""

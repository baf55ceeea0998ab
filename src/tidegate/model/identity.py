"""Whose rights a call uses."""

from __future__ import annotations

import msgspec


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Whose rights a call uses, where they are not the caller's own."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()

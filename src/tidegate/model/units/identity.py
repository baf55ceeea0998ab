"""Impersonation of users in API requests."""

from __future__ import annotations

import msgspec


class ImpersonatedUser(msgspec.Struct, frozen=True, kw_only=True):
    """The user whose permissions a request uses instead of the caller's."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()

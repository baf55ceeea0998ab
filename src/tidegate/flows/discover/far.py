"""Error codes of sources that cannot be fetched."""

from __future__ import annotations

UNAVAILABLE_SOURCE_CODES = frozenset(
    {
        *(f"source.git.{why}" for why in ("credentials", "failed", "host-key", "unreachable")),
        *(f"source.git.{why}" for why in ("missing", "untrusted")),
        *(f"source.http.{why}" for why in ("credentials", "failed", "unreachable", "untrusted")),
        *("source.bucket.cloud", "source.bucket.credentials"),
        *("source.login", "source.object", "source.offline"),
    }
)
"""Codes of errors of sources that cannot be fetched, though the reference to them is valid."""

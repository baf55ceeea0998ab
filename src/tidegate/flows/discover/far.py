"""What lies elsewhere, and cannot be had from here."""

from __future__ import annotations

FAR = frozenset(
    {
        *(f"source.git.{why}" for why in ("credentials", "failed", "host-key", "unreachable")),
        *(f"source.git.{why}" for why in ("missing", "untrusted")),
        *(f"source.http.{why}" for why in ("credentials", "failed", "unreachable", "untrusted")),
        *("source.bucket.cloud", "source.bucket.credentials"),
        *("source.login", "source.object", "source.offline"),
    }
)
"""Why a text cannot be had, though nothing is wrong with who asks for it."""

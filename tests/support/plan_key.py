"""The key that encrypts saved plans in tests."""

from __future__ import annotations

KEY = b"a key of somebody's own"

"""Helpers that several folders of tests share."""

from __future__ import annotations

KEY = b"a key of somebody's own"

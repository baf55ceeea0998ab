"""A key of the user's own: what this machine keeps or hands out for later is sealed with it.

It is 32 random bytes in a file that only its user can read, made when it is first needed, or
whatever `TIDEGATE_KEY` says, so that several machines can share one. Without it nothing is lost:
what was sealed is made anew.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from tidegate.errors import ConfigError

VARIABLE = "TIDEGATE_KEY"
SIZE = 32
LEAST = 16
"""Characters of a key that somebody gives: fewer could be tried out."""


class LocalKey:
    """Found or made when it is asked for. Nothing is made in a home that is not there."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._given = environment.get(VARIABLE, "")
        base = environment.get("XDG_STATE_HOME", "")
        self._home = Path(environment.get("HOME") or Path.home())
        state = Path(base) if Path(base).is_absolute() else self._home / ".local" / "state"
        self._path = state / "tidegate" / "key"

    def peek(self) -> bytes | None:
        """The key, if there is one already."""
        return self._given_key or self._read()

    def take(self) -> bytes | None:
        """The key, made where there is none yet; None where it cannot be kept."""
        known = self.peek()
        if known is None:
            self._write(secrets.token_bytes(SIZE))
            known = self._read()
        return known

    @cached_property
    def _given_key(self) -> bytes | None:
        if not self._given:
            return None
        if len(self._given) < LEAST:
            problem = f"`{VARIABLE}` has fewer than {LEAST} characters, and could be guessed"
            hint = "take something random, such as what `openssl rand -hex 32` prints"
            raise ConfigError("config.key", problem, hint=hint)
        return hashlib.blake2b(self._given.encode(), digest_size=SIZE).digest()

    def _read(self) -> bytes | None:
        try:
            with self._path.open("rb") as file:
                found = file.read(SIZE)
        except OSError:
            return None
        return found if len(found) == SIZE else None

    def _write(self, key: bytes) -> None:
        """Whole or not at all; who comes second keeps what the first one wrote."""
        fresh = self._path.with_name(f".{secrets.token_hex(8)}")
        if not (self._home.is_dir() or self._path.parent.parent.is_dir()):
            return
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(key)
            with suppress(FileExistsError):
                os.link(fresh, self._path)
        fresh.unlink(missing_ok=True)

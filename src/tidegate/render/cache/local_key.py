"""The user's local key, which encrypts what is stored on this machine or saved for later.

It is 32 random bytes in a file that only the user can read, created on first use, or derived from
`TIDEGATE_KEY`, so that several machines can share one. If the key is lost, nothing is lost:
encrypted data is created again.
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
KEY_SIZE = 32
MIN_LENGTH = 16
"""Characters of `TIDEGATE_KEY`: fewer could be guessed."""


class LocalKey:
    """The local key, read or created on first use; not created without a home directory."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._variable = environment.get(VARIABLE, "")
        base = environment.get("XDG_STATE_HOME", "")
        self._user_home = Path(environment.get("HOME") or Path.home())
        state = Path(base) if Path(base).is_absolute() else self._user_home / ".local" / "state"
        self._path = state / "tidegate" / "key"

    def find(self) -> bytes | None:
        """Return the key; None without one."""
        return self._variable_key or self._read()

    def find_or_create(self) -> bytes | None:
        """Return the key, created if there is none; None if it cannot be stored."""
        key = self.find()
        if key is None:
            self._write(secrets.token_bytes(KEY_SIZE))
            key = self._read()
        return key

    @cached_property
    def _variable_key(self) -> bytes | None:
        if not self._variable:
            return None
        if len(self._variable) < MIN_LENGTH:
            problem = f"`{VARIABLE}` has fewer than {MIN_LENGTH} characters and could be guessed"
            hint = "use a random value, for example from `openssl rand -hex 32`"
            raise ConfigError("config.key", problem, hint=hint)
        return hashlib.blake2b(self._variable.encode(), digest_size=KEY_SIZE).digest()

    def _read(self) -> bytes | None:
        try:
            with self._path.open("rb") as file:
                key = file.read(KEY_SIZE)
        except OSError:
            return None
        return key if len(key) == KEY_SIZE else None

    def _write(self, key: bytes) -> None:
        """Write the key atomically; a key that another process wrote first stays."""
        temporary = self._path.with_name(f".{secrets.token_hex(8)}")
        if not (self._user_home.is_dir() or self._path.parent.parent.is_dir()):
            return
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(key)
            with suppress(FileExistsError):
                os.link(temporary, self._path)
        temporary.unlink(missing_ok=True)

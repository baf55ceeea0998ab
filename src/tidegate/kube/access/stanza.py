"""One named entry of a kubeconfig, its fields read with their types and their lines.

Absent, `null` and empty mean the same everywhere, as they do for kubectl. Unknown fields are no
error. Paths are relative to the file that names them.
"""

from __future__ import annotations

import binascii
from dataclasses import dataclass, field
from pathlib import Path

from tidegate.documents import Document, FieldPath, find_place
from tidegate.errors import ConfigError, Place
from tidegate.files import read_whole
from tidegate.model.objects import Json


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A kubeconfig file as it was read: its text is kept to find lines when something is wrong."""

    path: Path
    text: bytes = field(repr=False)
    document: Document | None

    def place(self, *path: str | int) -> Place:
        """Where a field stands, or the nearest thing above it."""
        if self.document is None:
            return Place(str(self.path))
        return find_place(self.text, self.document, path)


@dataclass(frozen=True, slots=True)
class Stanza:
    """A cluster, user or context: `title` is how people call it."""

    title: str
    file: ConfigFile
    path: FieldPath
    body: dict[str, Json] = field(repr=False)

    def place(self, key: str = "") -> Place:
        return self.file.place(*self.path, key) if key else self.file.place(*self.path)

    def has(self, *keys: str) -> bool:
        """Whether any of these fields says anything."""
        return any(self.body.get(key) not in (None, "", [], {}) for key in keys)

    def text(self, key: str) -> str:
        value = self.body.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self._wrong(key, "text", "put it in quotes")
        return value

    def flag(self, key: str) -> bool:
        value = self.body.get(key)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false", "write it without quotes")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._list(key)
        texts = [item for item in value if isinstance(item, str)]
        if len(texts) != len(value):
            raise self._wrong(key, "a list of texts", "put each entry in quotes")
        return tuple(texts)

    def stanzas(self, key: str) -> tuple[Stanza, ...]:
        """The entries of a list of mappings, as stanzas of the same title."""
        entries = enumerate(self._list(key))
        return tuple(self._inner(key, at, item=item) for at, item in entries if item is not None)

    def _list(self, key: str) -> list[Json]:
        value = self.body.get(key) or []
        if not isinstance(value, list):
            raise self._wrong(key, "a list", "write each entry on a line of its own, after a dash")
        return value

    def stanza(self, key: str) -> Stanza:
        """A mapping inside this one; empty when it is not there."""
        return self._inner(key, item=self.body.get(key) or {})

    def _inner(self, *path: str | int, item: Json) -> Stanza:
        if not isinstance(item, dict):
            raise self._wrong(str(path[0]), "made of names and values", "look at its indentation")
        return Stanza(self.title, self.file, (*self.path, *path), item)

    def file_path(self, key: str) -> Path | None:
        """The file that a field names."""
        name = self.text(key)
        return self.file.path.absolute().parent / name if name else None

    def content(self, key: str) -> bytes | None:
        """What `<key>-data` holds, or the file that `<key>` names."""
        inline = self.text(f"{key}-data")
        path = self.file_path(key)
        if inline and path:
            problem = f"{self.title} has both `{key}` and `{key}-data`"
            hint = "remove one of the two; kubectl takes no such file either"
            raise ConfigError("config.both", problem, where=self.place(key), hint=hint)
        if inline:
            return self._decoded(f"{key}-data", inline)
        return read_file(path, self.place(key)) if path else None

    def _decoded(self, key: str, text: str) -> bytes:
        try:
            packed = text.replace("\n", "").replace("\r", "").encode("ascii")
            return binascii.a2b_base64(packed, strict_mode=True)
        except ValueError:
            problem = f"`{key}` of {self.title} is not base64"
            hint = f"encode it with `base64 -w0`, or name a file with `{key.removesuffix('-data')}`"
            raise ConfigError(
                "config.encoding", problem, where=self.place(key), hint=hint
            ) from None

    def _wrong(self, key: str, wanted: str, hint: str) -> ConfigError:
        problem = f"`{key}` of {self.title} must be {wanted}"
        return ConfigError("config.field", problem, where=self.place(key), hint=hint)


def read_file(path: Path, place: Place) -> bytes:
    """The content of a file that the kubeconfig names at `place`."""
    try:
        return read_whole(path)
    except OSError as error:
        problem = f"file `{path}` cannot be read: {error.strerror}"
        hint = "paths in a kubeconfig are relative to the file they stand in"
        raise ConfigError("config.file", problem, where=place, hint=hint) from error

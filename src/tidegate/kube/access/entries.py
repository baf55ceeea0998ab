"""Kubeconfig entries: typed access to their fields, with locations for errors.

Absent, `null` and empty values are the same everywhere, as in kubectl. Unknown fields are ignored.
Paths are relative to the file that contains them.
"""

from __future__ import annotations

import binascii
from dataclasses import dataclass, field
from pathlib import Path

from tidegate.documents import Document, find_location
from tidegate.errors import ConfigError, Location
from tidegate.files import read_regular_file
from tidegate.model.k8s.objects import FieldPath, Json


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A kubeconfig file. Its text is kept to find the lines of errors."""

    path: Path
    """The path of the file."""
    text: bytes = field(repr=False)
    """The content."""
    document: Document | None
    """The parsed content; None if the file is empty."""

    def locate(self, *path: str | int) -> Location:
        """Return the location of a field, or of the nearest field above it."""
        if self.document is None:
            return Location(str(self.path))
        return find_location(self.text, self.document, path)


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A cluster, user or context of a kubeconfig."""

    title: str
    """How messages call the entry."""
    file: ConfigFile
    """The file with the entry."""
    path: FieldPath
    """The path of the entry in the file."""
    body: dict[str, Json] = field(repr=False)
    """The fields of the entry."""

    def locate(self, key: str = "") -> Location:
        """Return the location of a field, or of the entry."""
        return self.file.locate(*self.path, key) if key else self.file.locate(*self.path)

    def has(self, *keys: str) -> bool:
        """Return whether any of these fields has a value."""
        return any(self.body.get(key) not in (None, "", [], {}) for key in keys)

    def get_text(self, key: str) -> str:
        """Return a text. Returns "" if the field is empty. Raises ConfigError for another type."""
        value = self.body.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self._type_error(key, "text", "put it in quotes")
        return value

    def get_flag(self, key: str) -> bool:
        """Return a boolean. Returns False if the field is empty."""
        value = self.body.get(key)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self._type_error(key, "true or false", "write it without quotes")
        return value

    def get_texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts. Returns an empty tuple if the field is empty."""
        value = self._get_list(key)
        texts = [item for item in value if isinstance(item, str)]
        if len(texts) != len(value):
            raise self._type_error(key, "a list of texts", "put each entry in quotes")
        return tuple(texts)

    def get_entries(self, key: str) -> tuple[ConfigEntry, ...]:
        """Return the entries of a list of mappings, with the same title."""
        entries = enumerate(self._get_list(key))
        return tuple(
            self._nested_entry(key, index, item=item) for index, item in entries if item is not None
        )

    def _get_list(self, key: str) -> list[Json]:
        value = self.body.get(key) or []
        if not isinstance(value, list):
            raise self._type_error(
                key, "a list", "write each entry on a line of its own, after a dash"
            )
        return value

    def get_entry(self, key: str) -> ConfigEntry:
        """Return a nested mapping. Returns an empty one if there is none."""
        return self._nested_entry(key, item=self.body.get(key) or {})

    def _nested_entry(self, *path: str | int, item: Json) -> ConfigEntry:
        if not isinstance(item, dict):
            raise self._type_error(str(path[0]), "a mapping", "check its indentation")
        return ConfigEntry(self.title, self.file, (*self.path, *path), item)

    def resolve_path(self, key: str) -> Path | None:
        """Return the path of the file that a field names. Returns None if the field is empty."""
        name = self.get_text(key)
        return self.file.path.absolute().parent / name if name else None

    def read_content(self, key: str) -> bytes | None:
        """Return the content of `<key>-data`, or of the file that `<key>` names.

        Returns None if both are empty. Raises ConfigError if both are set.
        """
        inline = self.get_text(f"{key}-data")
        path = self.resolve_path(key)
        if inline and path:
            problem = f"{self.title} has both `{key}` and `{key}-data`"
            hint = "remove one of the two; kubectl rejects such a file, too"
            raise ConfigError("config.conflict", problem, location=self.locate(key), hint=hint)
        if inline:
            return self._decode_base64(f"{key}-data", inline)
        return read_file(path, self.locate(key)) if path else None

    def _decode_base64(self, key: str, text: str) -> bytes:
        try:
            packed = text.replace("\n", "").replace("\r", "").encode("ascii")
            return binascii.a2b_base64(packed, strict_mode=True)
        except ValueError:
            problem = f"`{key}` of {self.title} is not base64"
            hint = f"encode it with `base64 -w0`, or name a file with `{key.removesuffix('-data')}`"
            raise ConfigError(
                "config.encoding", problem, location=self.locate(key), hint=hint
            ) from None

    def _type_error(self, key: str, expected: str, hint: str) -> ConfigError:
        problem = f"`{key}` of {self.title} must be {expected}"
        return ConfigError("config.field", problem, location=self.locate(key), hint=hint)


def read_file(path: Path, location: Location) -> bytes:
    """Return the content of a file that the kubeconfig names at `location`."""
    try:
        return read_regular_file(path)
    except OSError as error:
        problem = f"cannot read file `{path}`: {error.strerror}"
        hint = "paths in a kubeconfig are relative to that kubeconfig"
        raise ConfigError("config.file", problem, location=location, hint=hint) from error

"""The difference between a live object and the desired one, and the action it leads to."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from tidegate.model.text.lazy_regex import lazy_regex

MASK = "***"
_ITEM = lazy_regex(r"\[[^\]]*\]")


class DiffAction(StrEnum):
    """The action that a difference leads to."""

    CREATE = "create"
    CHANGE = "change"
    REPLACE = "replace"
    """The live object is replaced as a whole."""
    RECREATE = "recreate"
    """Immutable fields differ: the object is deleted and created again."""
    KEEP = "keep"
    PRUNE = "prune"
    """The object is no longer in Git."""


class FieldChange(msgspec.Struct, frozen=True, order=True, gc=False):
    """A changed field: its path, and its shortened values. An empty value means absent."""

    path: str
    before: str
    after: str


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The action that an object needs, and the reasons."""

    action: DiffAction
    fields: tuple[FieldChange, ...] = ()
    immutable_fields: tuple[str, ...] = ()
    """Immutable fields that force the object to be recreated."""
    changes_ownership: bool = False
    """Whether the ownership of fields changes, even if their values stay."""
    other_owner: str = ""
    """The other unit or Helm release that loses the object; empty if none does."""


def mask_fields(difference: Difference, hidden: Iterable[tuple[str | int, ...]]) -> Difference:
    """Mask the values at the hidden paths, and above or below them.

    All items of a list are treated alike: it is better to mask too much than too little.
    """
    masked_paths = tuple(_without_indexes(path) for path in hidden)
    fields = tuple(
        _mask(field)
        if any(_overlap(_ITEM.sub("[]", field.path), masked_path) for masked_path in masked_paths)
        else field
        for field in difference.fields
    )
    return msgspec.structs.replace(difference, fields=fields)


def format_field_name(name: str) -> str:
    """Format a field name as part of a path; names with dots and slashes go into brackets."""
    return f"[{name}]" if "." in name or "/" in name or not name else f".{name}"


def _mask(field: FieldChange) -> FieldChange:
    return FieldChange(field.path, MASK if field.before else "", MASK if field.after else "")


def _without_indexes(path: tuple[str | int, ...]) -> str:
    text = "".join("[]" if isinstance(part, int) else format_field_name(part) for part in path)
    return _ITEM.sub("[]", text).removeprefix(".")


def _overlap(path: str, other: str) -> bool:
    short, long = sorted((path, other), key=len)
    return long.startswith(short) and long[len(short) : len(short) + 1] in {"", ".", "["}

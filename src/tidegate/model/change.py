"""How a live object differs from the wanted one, and what that asks for."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from tidegate.model.patterns import late

MASK = "***"
_ITEM = late(r"\[[^\]]*\]")


class Fate(StrEnum):
    """What becomes of an object."""

    CREATE = "create"
    CHANGE = "change"
    REPLACE = "replace"
    """All that is there makes room for what is wanted."""
    RECREATE = "recreate"
    """It differs in fields that cannot be changed: it is deleted and made again."""
    KEEP = "keep"
    PRUNE = "prune"
    """Git does not have it any more."""


class FieldChange(msgspec.Struct, frozen=True, order=True, gc=False):
    """One field: its path as people write it, and its values, shortened. Empty: not there."""

    path: str
    before: str
    after: str


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What an object needs, and why.

    `because`: the fields that force it to be made again. `claims`: fields change hands, even where
    their values stay.
    """

    deed: Fate
    fields: tuple[FieldChange, ...] = ()
    because: tuple[str, ...] = ()
    claims: bool = False


def mask_fields(difference: Difference, hidden: Iterable[tuple[str | int, ...]]) -> Difference:
    """The difference without the values at hidden places, above or below them.

    Items of a list are not told apart: rather too much is hidden than too little.
    """
    places = tuple(_loose_path(path) for path in hidden)
    fields = tuple(
        _mask(field)
        if any(_touch(_ITEM.sub("[]", field.path), place) for place in places)
        else field
        for field in difference.fields
    )
    return msgspec.structs.replace(difference, fields=fields)


def show_name(name: str) -> str:
    """A field's name as a part of a path; names with dots and slashes stand in brackets."""
    return f"[{name}]" if "." in name or "/" in name or not name else f".{name}"


def _mask(field: FieldChange) -> FieldChange:
    return FieldChange(field.path, MASK if field.before else "", MASK if field.after else "")


def _loose_path(path: tuple[str | int, ...]) -> str:
    shown = "".join("[]" if isinstance(part, int) else show_name(part) for part in path)
    return _ITEM.sub("[]", shown).removeprefix(".")


def _touch(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and long[len(short) : len(short) + 1] in {"", ".", "["}

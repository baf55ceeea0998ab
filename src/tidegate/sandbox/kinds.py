"""What a server knows of the kinds that it brings, beyond their shapes: read from `kinds.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec

from tidegate.documents import read
from tidegate.model.objects import Json, Kind

FILE = Path(__file__).with_suffix(".yaml")


class _Resets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    fields: tuple[str, ...]
    through: str = ""


class _Book(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    counted: dict[str, tuple[str, ...]]
    selectable: dict[str, frozenset[str]]
    first_statuses: dict[str, dict[str, object]]
    status_alone: tuple[str, ...]
    resets: tuple[_Resets, ...]


def _kind(written: str) -> Kind:
    version, _, name = written.rpartition("/")
    return Kind.of(version, name)


def _group_kind(written: str) -> tuple[str, str]:
    group, _, name = written.rpartition("/")
    return group, name


_BOOK = msgspec.convert(read(FILE.read_bytes(), FILE.name)[0].body, _Book)
COUNTED = frozenset((group, one) for group, plurals in _BOOK.counted.items() for one in plurals)
SELECTABLE = {_kind(one): fields for one, fields in _BOOK.selectable.items()}
FIRST_STATUSES = {
    _kind(one): cast("dict[str, Json]", status) for one, status in _BOOK.first_statuses.items()
}
STATUS_ALONE = frozenset(map(_group_kind, _BOOK.status_alone))
RESETS = {(*_group_kind(one.kind), one.through): one.fields for one in _BOOK.resets}

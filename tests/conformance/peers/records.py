"""What was recorded of the cases: the writes of a real engine, and the states it ended in."""

from __future__ import annotations

from pathlib import Path

import msgspec

RECORDS = Path(__file__).parents[2] / "data" / "peers" / "argocd"


class RecordedWrite(msgspec.Struct, frozen=True, omit_defaults=True):
    """A write of the engine. `at`: seconds after the first one of its sync."""

    at: float
    verb: str
    object: str
    code: int = 200


class RecordedUnit(msgspec.Struct, frozen=True, omit_defaults=True):
    """An Application at the end of a sync."""

    name: str
    sync: str
    health: str
    operation: str = ""
    retries: int = 0
    message: str = ""


class RecordedSync(msgspec.Struct, frozen=True):
    """What followed one commit."""

    writes: tuple[RecordedWrite, ...]
    units: tuple[RecordedUnit, ...]
    waits: tuple[str, ...]
    """`APPLICATION: MESSAGE` of operations that waited."""


class RecordedCase(msgspec.Struct, frozen=True):
    """The record of one case."""

    case: str
    engine: str
    kubernetes: str
    date: str
    syncs: tuple[RecordedSync, ...]


def read_record(name: str) -> RecordedCase:
    """Read the record of a case."""
    return msgspec.json.decode((RECORDS / f"{name}.json").read_bytes(), type=RecordedCase)

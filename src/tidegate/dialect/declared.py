"""What the custom resources of a dialect declare, before anything is rendered."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.model.finding import Finding
from tidegate.model.source import DeclaredSource
from tidegate.model.unit import Unit


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """Units, sources that go by the names of objects, and what is to be said of them."""

    units: tuple[Unit, ...] = ()
    sources: tuple[DeclaredSource, ...] = ()
    findings: tuple[Finding, ...] = ()

    @classmethod
    def together(cls, parts: Iterable[Declared]) -> Declared:
        parts = tuple(parts)
        return cls(
            units=tuple(one for part in parts for one in part.units),
            sources=tuple(one for part in parts for one in part.sources),
            findings=tuple(one for part in parts for one in part.findings),
        )

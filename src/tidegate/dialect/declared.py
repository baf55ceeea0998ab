"""What the custom resources of a dialect declare, before anything is rendered."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.errors import Place
from tidegate.model.finding import Finding
from tidegate.model.objects import Json
from tidegate.model.source import DeclaredSource
from tidegate.model.unit import Unit


class DeclaredSet(msgspec.Struct, frozen=True, kw_only=True):
    """An ApplicationSet; its units are not known before its generators have looked around."""

    namespace: str
    name: str
    where: Place
    body: dict[str, Json]

    @property
    def mark(self) -> str:
        """As its units name it."""
        return f"ApplicationSet/{self.namespace}/{self.name}"


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """Units, sets of them, sources that go by names of objects, and what is to be said of these."""

    units: tuple[Unit, ...] = ()
    sets: tuple[DeclaredSet, ...] = ()
    sources: tuple[DeclaredSource, ...] = ()
    findings: tuple[Finding, ...] = ()

    @classmethod
    def together(cls, parts: Iterable[Declared]) -> Declared:
        parts = tuple(parts)
        return cls(
            units=tuple(one for part in parts for one in part.units),
            sets=tuple(one for part in parts for one in part.sets),
            sources=tuple(one for part in parts for one in part.sources),
            findings=tuple(one for part in parts for one in part.findings),
        )

"""Units, ApplicationSets and sources that custom resources declare, before anything is rendered."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.errors import Location
from tidegate.model.finding import Finding
from tidegate.model.k8s.objects import Json
from tidegate.model.units.source import DeclaredSource
from tidegate.model.units.unit import Unit


class ApplicationSet(msgspec.Struct, frozen=True, kw_only=True):
    """ApplicationSet in a file; its units are unknown until its generators run."""

    namespace: str
    name: str
    location: Location
    body: dict[str, Json]

    @property
    def tracking_id(self) -> str:
        """Kind, namespace and name, as its units refer to it."""
        return f"ApplicationSet/{self.namespace}/{self.name}"


class Declarations(msgspec.Struct, frozen=True, kw_only=True):
    """Units, ApplicationSets and named sources, with the findings about them."""

    units: tuple[Unit, ...] = ()
    application_sets: tuple[ApplicationSet, ...] = ()
    sources: tuple[DeclaredSource, ...] = ()
    findings: tuple[Finding, ...] = ()

    @classmethod
    def merge(cls, all_declarations: Iterable[Declarations]) -> Declarations:
        all_declarations = tuple(all_declarations)
        return cls(
            units=tuple(unit for declarations in all_declarations for unit in declarations.units),
            application_sets=tuple(
                application_set
                for declarations in all_declarations
                for application_set in declarations.application_sets
            ),
            sources=tuple(
                source for declarations in all_declarations for source in declarations.sources
            ),
            findings=tuple(
                finding for declarations in all_declarations for finding in declarations.findings
            ),
        )

"""Findings about a repository."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.errors import Location, TidegateError
from tidegate.model.units.unit import Unit, UnitId


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    """The deployment cannot work."""
    WARNING = "warning"
    """The deployment may fail, or behave differently than expected."""
    NOTE = "note"
    """The deployment works; the user should know the fact."""


class Occurrence(msgspec.Struct, frozen=True):
    """Another occurrence of the cause of a finding."""

    message: str
    location: Location | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem or remark: code, severity, location, message, reason and fix."""

    code: str
    severity: Severity
    message: str
    location: Location | None = None
    reason: str = ""
    fix: str = ""
    semantics: tuple[str, ...] = ()
    """The semantics under which it applies. Empty for all."""
    sequence: tuple[str, ...] = ()
    """The sequence of events, step by step."""
    other_locations: tuple[Location, ...] = ()
    """Other locations that it is about."""
    snippet: str = ""
    """A text to paste into a file."""
    unit_names: tuple[str, ...] = ()
    """The units that it is about, by kind, namespace and name.

    Set only if several units may come from one location.
    """
    unit: UnitId | None = None
    """The unit that the message names."""
    unit_problem: str = ""
    """The message about it in the status of `unit`; empty if the status does not report it."""
    error_problem: str = ""
    """The problem of the error that it reports; empty if it reports none."""
    missing_dependency: UnitId | None = None
    """The unit that `unit` depends on and that does not exist."""
    is_uncertain: bool = False
    """Whether an input that could not be read may show that it is wrong."""
    cycle: tuple[UnitId, ...] = ()
    """The units that wait for each other, if it is about a dependency cycle."""
    cause: str = ""
    """What it has in common with other findings of the same code; empty if that is not known."""
    same_cause: tuple[Occurrence, ...] = ()
    """The other occurrences of the same cause."""

    @classmethod
    def from_error(
        cls, error: TidegateError, severity: Severity = Severity.ERROR, unit: Unit | None = None
    ) -> Finding:
        """Return a finding for an error that does not stop the command. It may be about a unit."""
        return cls(
            code=error.code,
            severity=severity,
            message=error.problem if unit is None else f"`{unit.id}`: {error.problem}",
            location=error.location or (None if unit is None else unit.location),
            fix=error.hint,
            unit=None if unit is None else unit.id,
            error_problem=error.problem,
        )


def warning_from_error(error: TidegateError) -> Finding:
    """Return a warning for an error that does not stop the command."""
    return Finding.from_error(error, Severity.WARNING)

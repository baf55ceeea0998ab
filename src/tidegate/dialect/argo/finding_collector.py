"""Findings about one object, each with the location of its field."""

from __future__ import annotations

from tidegate.documents.document import format_path
from tidegate.errors import Location
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.objects import FieldPath


class FindingCollector:
    """Collector of the findings about one object, in the order in which they are added."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._findings: list[Finding] = []

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._findings)

    def error(self, code: str, path: FieldPath, message: str, why: str = "", fix: str = "") -> None:
        self._add(Severity.ERROR, code, path, (message, why, fix))

    def warn(
        self,
        code: str,
        path: FieldPath,
        message: str,
        why: str = "",
        fix: str = "",
        *,
        cause: str = "",
    ) -> None:
        self._add(Severity.WARNING, code, path, (message, why, fix), cause)

    def note(self, code: str, path: FieldPath, message: str, why: str = "", fix: str = "") -> None:
        self._add(Severity.NOTE, code, path, (message, why, fix))

    def _add(
        self,
        severity: Severity,
        code: str,
        path: FieldPath,
        texts: tuple[str, str, str],
        cause: str = "",
    ) -> None:
        message, why, fix = texts
        location = self._location.with_field(format_path(path))
        self._findings.append(
            Finding(
                code=code,
                severity=severity,
                message=message,
                location=location,
                reason=why,
                fix=fix,
                cause=cause,
            )
        )

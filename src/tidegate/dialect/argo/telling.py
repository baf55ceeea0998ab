"""Findings about one object, each with the field that it speaks of."""

from __future__ import annotations

from tidegate.documents.document import FieldPath, path_text
from tidegate.errors import Place
from tidegate.model.finding import Finding, Severity


class Telling:
    """What there is to say of an object, in the order in which it was found."""

    def __init__(self, where: Place) -> None:
        self._where = where
        self._findings: list[Finding] = []

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._findings)

    def error(self, code: str, path: FieldPath, said: str, why: str = "", fix: str = "") -> None:
        self._add(Severity.ERROR, code, path, (said, why, fix))

    def warn(self, code: str, path: FieldPath, said: str, why: str = "", fix: str = "") -> None:
        self._add(Severity.WARNING, code, path, (said, why, fix))

    def note(self, code: str, path: FieldPath, said: str, why: str = "", fix: str = "") -> None:
        self._add(Severity.NOTE, code, path, (said, why, fix))

    def _add(
        self, severity: Severity, code: str, path: FieldPath, words: tuple[str, str, str]
    ) -> None:
        sentence, why, fix = words
        where = self._where.at(path_text(path))
        self._findings.append(
            Finding(code=code, severity=severity, sentence=sentence, where=where, why=why, fix=fix)
        )

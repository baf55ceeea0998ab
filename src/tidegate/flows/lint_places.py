"""Locations of fields in their files, with the lines around them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tidegate.documents import find_location
from tidegate.documents.document import format_path
from tidegate.errors import Location
from tidegate.flows.field_places import FieldLocator, SourceFile
from tidegate.lint.rule import FieldRef
from tidegate.model.finding import Finding
from tidegate.model.reading import get_text
from tidegate.report.lint.report import Excerpt

CONTEXT_LINES = 2
"""Number of lines shown above the reported line."""


class DiagnosticLocator(msgspec.Struct):
    """Finds locations in the files of one tree; documents from elsewhere keep their location."""

    files: FieldLocator

    @classmethod
    def from_root(cls, root: Path) -> DiagnosticLocator:
        return cls(FieldLocator(root))

    def __call__(self, field_ref: FieldRef) -> Location:
        document = field_ref.document
        file = self.files.file(document.location.name)
        matching = file.find_document(document)
        if matching is None and file.is_template:
            body = document.body
            return file.locate_in_template(
                get_text(body, "kind"), get_text(body, "metadata", "name"), field_ref.path
            )
        if matching is None:
            field = format_path(field_ref.path)
            return document.location.with_field(field) if field else document.location
        return find_location(file.content, matching, field_ref.path)

    def excerpts(self, findings: tuple[Finding, ...]) -> dict[Location, Excerpt]:
        """Return the reported line and the lines above it, by location; none for Secrets."""
        excerpts: dict[Location, Excerpt] = {}
        for location in dict.fromkeys(finding.location for finding in findings if finding.location):
            lines = self.files.file(location.name).lines if location.line else []
            if 0 < location.line <= len(lines) and not _is_in_secret(
                self.files.file(location.name), location
            ):
                first = max(1, location.line - CONTEXT_LINES)
                excerpts[location] = Excerpt(
                    first, tuple(lines[first - 1 : location.line]), location.column
                )
        return excerpts


def _is_in_secret(file: SourceFile, location: Location) -> bool:
    """Return whether the lines belong to a Secret, whose contents are never shown."""
    if not file.documents:
        return b"Secret" in file.content
    preceding = [document for document in file.documents if document.location.line <= location.line]
    return not preceding or any(
        get_text(document.body, "kind") == "Secret" for document in preceding[-1:]
    )

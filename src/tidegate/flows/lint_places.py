"""Where a field stands in its file, and the lines around it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tidegate.documents import find_place
from tidegate.documents.document import path_text
from tidegate.errors import Place
from tidegate.flows.field_places import SourceFile, SourceFiles
from tidegate.lint.rule import Mark
from tidegate.model.finding import Finding
from tidegate.model.reading import text
from tidegate.report.lint.report import Excerpt

BEFORE = 2
"""So many lines are shown above the one that is meant."""


class LintPlaces(msgspec.Struct):
    """Places in the files of one tree; what lies elsewhere keeps the place that it has."""

    files: SourceFiles

    @classmethod
    def of(cls, root: Path) -> LintPlaces:
        return cls(SourceFiles(root))

    def __call__(self, mark: Mark) -> Place:
        document = mark.document
        file = self.files.file(document.place.name)
        found = file.find(document)
        if found is None and file.is_template:
            body = document.body
            return file.in_template(text(body, "kind"), text(body, "metadata", "name"), mark.path)
        if found is None:
            said = path_text(mark.path)
            return document.place.at(said) if said else document.place
        return find_place(file.content, found, mark.path)

    def excerpts(self, findings: tuple[Finding, ...]) -> dict[Place, Excerpt]:
        """By place, the line that is meant with those above it."""
        found: dict[Place, Excerpt] = {}
        for place in dict.fromkeys(one.where for one in findings if one.where):
            lines = self.files.file(place.name).lines if place.line else []
            if 0 < place.line <= len(lines) and not _is_secret(self.files.file(place.name), place):
                first = max(1, place.line - BEFORE)
                found[place] = Excerpt(first, tuple(lines[first - 1 : place.line]), place.column)
        return found


def _is_secret(file: SourceFile, place: Place) -> bool:
    """Whether the lines are of a Secret: what stands in one is shown nowhere."""
    if not file.documents:
        return b"Secret" in file.content
    before = [one for one in file.documents if one.place.line <= place.line]
    return not before or any(text(one.body, "kind") == "Secret" for one in before[-1:])

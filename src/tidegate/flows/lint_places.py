"""Where a field stands in its file, and the lines around it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from msgspec import structs

from tidegate.documents import Document, find_place, read
from tidegate.documents.document import path_text
from tidegate.errors import DocumentError, Place
from tidegate.files import StrayPathError, follow
from tidegate.lint.rule import Mark
from tidegate.model.finding import Finding
from tidegate.model.paths import parse_path
from tidegate.model.reading import text
from tidegate.report.lint.report import Excerpt

LARGEST = 4_000_000
BEFORE = 2
NEAR = 12
"""So many lines behind its kind, an object has said its name."""
TEMPLATES = "/templates/"
"""So many lines are shown above the one that is meant."""


@dataclass(frozen=True)
class _SourceFile:
    """A file of the tree, as far as it can be read."""

    name: str
    content: bytes

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        try:
            return read(self.content, self.name)
        except (DocumentError, ValueError):
            return ()

    @cached_property
    def lines(self) -> list[str]:
        return self.content.decode(errors="replace").splitlines()

    def find(self, wanted: Document) -> Document | None:
        """The document as it stands here; one that was changed is known by its kind and name."""
        if wanted in self.documents:
            return wanted
        alike = [one for one in self.documents if _named(one) == _named(wanted)]
        same = [one for one in alike if one.place == wanted.place]
        return next(iter(same or alike), None)


def _named(document: Document) -> tuple[str, str]:
    return text(document.body, "kind"), text(document.body, "metadata", "name")


@dataclass(slots=True)
class LintPlaces:
    """Places in the files of one tree; what lies elsewhere keeps the place that it has."""

    root: Path
    _files: dict[str, _SourceFile] = field(default_factory=dict)

    def __call__(self, mark: Mark) -> Place:
        document = mark.document
        file = self._file(document.place.name)
        found = file.find(document)
        if found is None and TEMPLATES in f"/{file.name}" and file.content:
            return _in_template(file, mark)
        if found is None:
            said = path_text(mark.path)
            return replace(document.place, field=said) if said else document.place
        return find_place(file.content, found, mark.path)

    def refined(self, finding: Finding) -> Finding:
        """The finding at the line of its field, where its place is that of the whole object."""
        place = finding.where
        if place is None or not place.field or not place.line:
            return finding
        file = self._file(place.name)
        here = [one for one in file.documents if one.place.line == place.line]
        try:
            path = tuple(one for one in parse_path(place.field) if isinstance(one, str | int))
        except ValueError:
            return finding
        if len(here) != 1:
            return finding
        found = find_place(file.content, here[0], path)
        return structs.replace(finding, where=replace(found, field=place.field))

    def excerpts(self, findings: tuple[Finding, ...]) -> dict[Place, Excerpt]:
        """By place, the line that is meant with those above it."""
        found: dict[Place, Excerpt] = {}
        for place in dict.fromkeys(one.where for one in findings if one.where):
            lines = self._file(place.name).lines if place.line else []
            if 0 < place.line <= len(lines) and not _is_secret(self._file(place.name), place):
                first = max(1, place.line - BEFORE)
                found[place] = Excerpt(first, tuple(lines[first - 1 : place.line]), place.column)
        return found

    def _file(self, name: str) -> _SourceFile:
        if name not in self._files:
            self._files[name] = _SourceFile(name, self._content(name))
        return self._files[name]

    def _content(self, name: str) -> bytes:
        try:
            path = follow(self.root / name, self.root)
            return path.read_bytes()[:LARGEST] if path.is_file() else b""
        except (OSError, StrayPathError, ValueError):
            return b""


def _in_template(file: _SourceFile, mark: Mark) -> Place:
    """The nearest line of a template: its kind, and from there the keys that lead to the field."""
    kind = text(mark.document.body, "kind")
    starts = [at for at, line in enumerate(file.lines) if re.match(rf"kind:\s*{kind}\b", line)]
    name = text(mark.document.body, "metadata", "name")
    said = [at for at in starts if any(name in one for one in file.lines[at : at + NEAR])]
    at = next(iter(said or starts), 0)
    end = next((n for n in range(at + 1, len(file.lines)) if file.lines[n].startswith("---")), None)
    for key in (one for one in mark.path if isinstance(one, str)):
        pattern = re.compile(rf"\s*(?:-\s+)?[\"']?{re.escape(key)}[\"']?\s*:")
        rest = enumerate(file.lines[at:end], at)
        at = next((number for number, line in rest if pattern.match(line)), at)
    indent = len(file.lines[at]) - len(file.lines[at].lstrip())
    return Place(file.name, at + 1, indent + 1, path_text(mark.path))


def _is_secret(file: _SourceFile, place: Place) -> bool:
    """Whether the lines are of a Secret: what stands in one is shown nowhere."""
    if not file.documents:
        return b"Secret" in file.content
    before = [one for one in file.documents if one.place.line <= place.line]
    return not before or any(text(one.body, "kind") == "Secret" for one in before[-1:])

"""Where a field stands in the user's files, found again when somebody must be told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from tidegate.documents import Document, find_place, find_places, read
from tidegate.documents.document import path_text
from tidegate.errors import DocumentError, Place, TidegateError, parse_place
from tidegate.files import StrayPathError, follow
from tidegate.flows.patch_places import place_in_patch
from tidegate.model.event import Event
from tidegate.model.finding import Finding
from tidegate.model.objects import FieldPath
from tidegate.model.paths import path_in
from tidegate.model.patterns import late
from tidegate.model.reading import text

LARGEST = 4_000_000
NEAR = 12
"""So many lines behind its kind, an object has said its name."""
TEMPLATES = "/templates/"
PLAIN_KEY = late(r"[^.\[\]]+(?![^\[]*\])")
ACTION = late(r"\{\{.*?\}\}")
NAMED = late(r"""(?:^|[\s{,])name:\s*("[^"]*"|'[^']*'|(?:\{\{.*?\}\}|[^\s,{}#])+)""")


@dataclass(frozen=True)
class SourceFile:
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

    @property
    def is_template(self) -> bool:
        return TEMPLATES in f"/{self.name}" and bool(self.content)

    def find(self, wanted: Document) -> Document | None:
        """The document as it stands here; one that was changed is known by its kind and name."""
        if wanted in self.documents:
            return wanted
        alike = [one for one in self.documents if _named(one) == _named(wanted)]
        same = [one for one in alike if one.place == wanted.place]
        return next(iter(same or alike), None)

    def in_template(self, kind: str, name: str, path: FieldPath) -> Place:
        """The nearest line of a template: its kind, and from there the keys that lead there."""
        starts = [at for at, line in enumerate(self.lines) if re.match(rf"kind:\s*{kind}\b", line)]
        at = max(starts, key=lambda at: self._likeness(at, name), default=0)
        ends = (n for n in range(at + 1, len(self.lines)) if self.lines[n].startswith("---"))
        end = next(ends, None)
        for key in (one for one in path if isinstance(one, str)):
            pattern = re.compile(rf"\s*(?:-\s+)?[\"']?{re.escape(key)}[\"']?\s*:")
            rest = enumerate(self.lines[at:end], at)
            at = next((number for number, line in rest if pattern.match(line)), at)
        indent = len(self.lines[at]) - len(self.lines[at].lstrip())
        return Place(self.name, at + 1, indent + 1, path_text(path))

    def _likeness(self, start: int, name: str) -> int:
        """How well the first name behind a line fits: letters that stand there as they are."""
        near = self.lines[start : start + NEAR]
        found = next((one for line in near if (one := NAMED.search(line))), None)
        if found is None:
            return 0
        written = found[1].strip("\"'")
        literal = ACTION.split(written)
        fits = re.fullmatch(".*".join(map(re.escape, literal)), name)
        return 1 + len("".join(literal)) if fits else 0


def _with_names(finding: Finding, units: list[str]) -> Finding:
    """What is said of units that come of one place, with the name of the first of them."""
    names = tuple(dict.fromkeys(units))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    is_named = f"{names[0].rpartition('/')[2]}`" in finding.sentence
    sentence = finding.sentence if is_named else f"`{names[0]}`{more}: {finding.sentence}"
    return msgspec.structs.replace(finding, sentence=sentence, about=names)


def _moved(finding: Finding, place: Place) -> Finding:
    said = finding.where.field if finding.where else ""
    return msgspec.structs.replace(finding, where=place.at(said))


def _named(document: Document) -> tuple[str, str]:
    return text(document.body, "kind"), text(document.body, "metadata", "name")


class SourceFiles(msgspec.Struct):
    """The files of one tree, each read once. What lies elsewhere is empty."""

    root: Path
    _files: dict[str, SourceFile] = msgspec.field(default_factory=dict)

    def file(self, name: str) -> SourceFile:
        if name not in self._files:
            self._files[name] = SourceFile(name, self._content(name))
        return self._files[name]

    def at_field(self, place: Place, told: str) -> Place:
        """The line of a field, as servers name it, of the object that begins at a place."""
        told_place = place.at(told)
        found = self._field(told_place)
        if found is None:
            return told_place
        return find_place(self.file(place.name).content, *found).at(told)

    def of_event(self, event: Event) -> Event:
        """The event with the place of its field in the place of that of its object."""
        if not (event.where and event.field) or event.ref is None:
            return event
        place = parse_place(event.where)
        file = self.file(place.name)
        if file.is_template:
            path = tuple(PLAIN_KEY.findall(event.field))
            at = file.in_template(event.ref.kind.name, event.ref.name, path)
        else:
            at = self.at_field(place, event.field)
        return msgspec.structs.replace(event, where=str(at.at("")))

    def of_finding(self, finding: Finding, document: Document) -> Finding:
        """What is said of an object, at the line of its field."""
        place = finding.where
        if place is None or not place.field:
            return finding
        file = self.file(place.name)
        if file.is_template and not place.line:
            found = file.in_template(*_named(document), path_in(document.body, place.field))
        else:
            found = self.at_field(place, place.field)
        return msgspec.structs.replace(finding, where=found.at(place.field))

    def of_findings(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings, each at the line of its field; a file is looked through once for all."""
        told = [self._in_patch(one) for one in self._in_templates(findings)]
        wanted: dict[str, list[tuple[int, tuple[Document, FieldPath]]]] = {}
        for number, one in enumerate(told):
            found = self._field(one.where) if one.where else None
            if found:
                wanted.setdefault(found[0].place.name, []).append((number, found))
        for name, mine in wanted.items():
            places = find_places(self.file(name).content, [found for _, found in mine])
            for (number, _), place in zip(mine, places, strict=True):
                told[number] = _moved(told[number], place)
        return tuple(told)

    def _in_templates(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The findings; of units that a template makes, at the line of their field, and once."""
        told: dict[Finding, list[str]] = {}
        for one in findings:
            place = self._template_place(one)
            if place is None:
                told.setdefault(one, [])
            else:
                alike = msgspec.structs.replace(one, where=place, about=())
                told.setdefault(alike, []).extend(one.about)
        for one, units in told.items():
            yield _with_names(one, units) if units else one

    def _template_place(self, finding: Finding) -> Place | None:
        place = finding.where
        if place is None or place.line or not finding.about:
            return None
        file = self.file(place.name)
        kind, *_, name = finding.about[0].split("/")
        path = tuple(PLAIN_KEY.findall(place.field))
        return file.in_template(kind, name, path).at(place.field) if file.is_template else None

    def _in_patch(self, finding: Finding) -> Finding:
        """What is said of a template, at the line of the patch that brings the field."""
        place = finding.where
        if place is None or not place.line:
            return finding
        here = [one for one in self.file(place.name).documents if one.place.line == place.line]
        found = place_in_patch(here[0], place, self.file(place.name).content) if here else None
        return finding if found is None else msgspec.structs.replace(finding, where=found)

    def _field(self, place: Place) -> tuple[Document, FieldPath] | None:
        """The field of an object that begins at a place, as far as it is there."""
        if not place.field or not place.line:
            return None
        here = [one for one in self.file(place.name).documents if one.place.line == place.line]
        path = path_in(here[0].body, place.field) if len(here) == 1 else ()
        return (here[0], path) if path else None

    def placed(self, errors: Iterable[TidegateError]) -> Iterator[TidegateError]:
        """The errors, each at the line of its field where that is known."""
        for error in errors:
            if error.where is not None and error.where.field and error.where.line:
                error.where = self.at_field(error.where, error.where.field)
            yield error

    def _content(self, name: str) -> bytes:
        try:
            path = follow(self.root / name, self.root)
            return path.read_bytes()[:LARGEST] if path.is_file() else b""
        except (OSError, StrayPathError, ValueError):
            return b""

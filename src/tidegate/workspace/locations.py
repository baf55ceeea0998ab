"""Locations of fields in the files of the user."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidegate.documents import (
    Document,
    DocumentReader,
    FileLocations,
    find_location,
    read_documents,
)
from tidegate.documents.document import format_path
from tidegate.errors import DocumentError, Location, TidegateError, parse_location
from tidegate.files import PathEscapeError, resolve_within
from tidegate.model.display import join_quoted
from tidegate.model.finding import Finding
from tidegate.model.k8s.json_fields import get_text, get_value
from tidegate.model.k8s.objects import FieldPath
from tidegate.model.k8s.paths import resolve_server_path
from tidegate.model.rollouts.event import Event
from tidegate.model.text.lazy_regex import lazy_regex

TEMPLATE_FIELD_PREFIX, TEMPLATE_PATCH_PATH = "spec.template.", ("spec", "templatePatch")
_KEYS = lazy_regex(r"\[[^\]]*\]|[^.\[\]]+")
_DIRECTIVE = lazy_regex(r"\s*(?:\{\{.*\}\}\s*)?(?:#.*)?$")
"""Lines that set no field: blank lines, comments and template actions alone."""


class _KeyMatch(NamedTuple):
    """How many keys of a path were found, and the line of the last."""

    depth: int
    line: int


def locate_in_template_patch(
    document: Document, location: Location, content: bytes
) -> Location | None:
    """Return the line of a template field in the patch of an ApplicationSet.

    None if the patch does not set the field.
    """
    patch = get_value(document.body, *TEMPLATE_PATCH_PATH)
    if get_text(document.body, "kind") != "ApplicationSet" or not isinstance(patch, str):
        return None
    if not location.field.startswith(TEMPLATE_FIELD_PREFIX):
        return None
    field = location.field.removeprefix(TEMPLATE_FIELD_PREFIX)
    keys = [key for key in _KEYS.findall(field) if not key.startswith("[")]
    lines = patch.splitlines()
    key_match = _follow_keys(lines, keys)
    template_path = resolve_server_path(get_value(document.body, "spec", "template"), field)
    template_depth = len([step for step in template_path if isinstance(step, str)])
    if key_match.depth < len(keys) and key_match.depth <= template_depth:
        return None
    start = find_location(content, document, TEMPLATE_PATCH_PATH)
    patch_location = start.with_field(f"{'.'.join(TEMPLATE_PATCH_PATH)}: {field}")
    line_index, patch_line = start.line + key_match.line, lines[key_match.line]
    file_lines = content.decode(errors="replace").splitlines()
    if line_index >= len(file_lines) or file_lines[line_index].strip() != patch_line.strip():
        return patch_location  # the patch is not a block scalar
    column = len(file_lines[line_index]) - len(file_lines[line_index].lstrip()) + 1
    return Location(patch_location.name, line_index + 1, column, patch_location.field)


def _follow_keys(lines: Sequence[str], keys: Sequence[str]) -> _KeyMatch:
    """Follow keys from line to line, each deeper than the one before."""
    depth, line, indent, start = 0, 0, -1, 0
    for key in keys:
        number = _find_key(lines, key, start, indent)
        if number is None:
            break
        depth, line = depth + 1, number
        indent, start = _indent(lines[number]), number + 1
    return _KeyMatch(depth, line)


def _find_key(lines: Sequence[str], key: str, start: int, indent: int) -> int | None:
    """Return the line of a key directly below an indent, or in an item there; else None."""
    pattern = re.compile(rf"\s*(?:-\s+)?[\"']?{re.escape(key)}[\"']?\s*:")
    indents: set[int] = set()
    for number in range(start, len(lines)):
        line = lines[number]
        if _DIRECTIVE.fullmatch(line):
            continue
        if _indent(line) + line.lstrip().startswith("- ") <= indent:
            return None  # list items may have the indentation of their key
        indents = indents or {_indent(line), _indent(line.replace("-", " ", 1))}
        if pattern.match(line) and _indent(line) in indents:
            return number
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


MAX_FILE_SIZE = 4_000_000
NAME_DISTANCE = 12
"""Number of lines after its kind in which an object states its name."""
TEMPLATES_DIRECTORY = "/templates/"
PLAIN_KEY = lazy_regex(r"[^.\[\]]+(?![^\[]*\])")
TEMPLATE_ACTION = lazy_regex(r"\{\{.*?\}\}")
NAME_LINE = lazy_regex(r"""(?:^|[\s{,])name:\s*("[^"]*"|'[^']*'|(?:\{\{.*?\}\}|[^\s,{}#])+)""")


@dataclass(frozen=True)
class SourceFile:
    """A file of the tree; empty if it cannot be read."""

    name: str
    content: bytes
    read: DocumentReader = read_documents

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        try:
            return self.read(self.content, self.name)
        except (DocumentError, ValueError):
            return ()

    @cached_property
    def locations(self) -> FileLocations:
        """The locations of the fields."""
        return FileLocations(self.content, self.name)

    @cached_property
    def _documents_by_line(self) -> dict[int, list[Document]]:
        """By the line on which they start, the documents, in the order of the lines."""
        by_line: dict[int, list[Document]] = {}
        for document in sorted(self.documents, key=_first_line):
            by_line.setdefault(_first_line(document), []).append(document)
        return by_line

    @cached_property
    def _first_lines(self) -> list[int]:
        return list(self._documents_by_line)

    @cached_property
    def _documents_by_name(self) -> dict[tuple[str, str], list[Document]]:
        """The documents by kind and name."""
        by_name: dict[tuple[str, str], list[Document]] = {}
        for document in self.documents:
            by_name.setdefault(_kind_and_name(document), []).append(document)
        return by_name

    @cached_property
    def lines(self) -> list[str]:
        return self.content.decode(errors="replace").splitlines()

    @property
    def is_template(self) -> bool:
        return TEMPLATES_DIRECTORY in f"/{self.name}" and bool(self.content)

    def contains(self, document: Document) -> bool:
        """Return whether the file has a document as it is."""
        return document in self.documents_starting_at(_first_line(document))

    def find_document(self, document: Document) -> Document | None:
        """Return a document as the file has it; a changed one is found by its kind and name."""
        if self.contains(document):
            return document
        same_name = self._documents_by_name.get(_kind_and_name(document), [])
        same_location = (
            candidate for candidate in same_name if candidate.location == document.location
        )
        return next(same_location, same_name[0] if same_name else None)

    def documents_starting_at(self, line: int) -> list[Document]:
        """Return the documents that start on a line; items of a List may share one."""
        return self._documents_by_line.get(line, [])

    def document_at_line(self, line: int) -> Document | None:
        """Return the document that contains a line; None before the first one."""
        number = bisect_right(self._first_lines, line)
        return self._documents_by_line[self._first_lines[number - 1]][-1] if number else None

    def locate_in_template(self, kind: str, name: str, path: FieldPath) -> Location:
        """Return the closest line of a template: its kind, and from there the path's keys."""
        starts = [at for at, line in enumerate(self.lines) if re.match(rf"kind:\s*{kind}\b", line)]
        at = max(starts, key=lambda at: self._name_score(at, name), default=0)
        ends = (n for n in range(at + 1, len(self.lines)) if self.lines[n].startswith("---"))
        end = next(ends, None)
        for key in (step for step in path if isinstance(step, str)):
            pattern = re.compile(rf"\s*(?:-\s+)?[\"']?{re.escape(key)}[\"']?\s*:")
            following_lines = enumerate(self.lines[at:end], at)
            at = next((number for number, line in following_lines if pattern.match(line)), at)
        indent = len(self.lines[at]) - len(self.lines[at].lstrip())
        return Location(self.name, at + 1, indent + 1, format_path(path))

    def _name_score(self, start: int, name: str) -> int:
        """Return how closely the first name after a line matches, in literal letters."""
        following_lines = self.lines[start : start + NAME_DISTANCE]
        name_match = next(
            (candidate for line in following_lines if (candidate := NAME_LINE.search(line))), None
        )
        if name_match is None:
            return 0
        written = name_match[1].strip("\"'")
        literal = TEMPLATE_ACTION.split(written)
        is_match = re.fullmatch(".*".join(map(re.escape, literal)), name)
        return 1 + len("".join(literal)) if is_match else 0


def _with_unit_names(merged: Finding, findings: list[Finding]) -> Finding:
    """Return a finding about units of one template, with the name of the first of them."""
    names = tuple(dict.fromkeys(name for finding in findings for name in finding.unit_names))
    unit = findings[0].unit
    message = f"{join_quoted(names, 1)}: {merged.message}" if unit is None else merged.message
    return msgspec.structs.replace(merged, message=message, unit_names=names, unit=unit)


def _at_location(finding: Finding, location: Location) -> Finding:
    field = finding.location.field if finding.location else ""
    return msgspec.structs.replace(finding, location=location.with_field(field))


def _first_line(document: Document) -> int:
    return document.location.line


def _kind_and_name(document: Document) -> tuple[str, str]:
    return get_text(document.body, "kind"), get_text(document.body, "metadata", "name")


def _find_no_content(_name: str) -> bytes | None:
    return None


class FieldLocator(msgspec.Struct):
    """Locator of the lines of fields in the files of a tree; each file is read once.

    Files outside the tree count as empty.
    """

    root: Path
    find_content: Callable[[str], bytes | None] = _find_no_content
    """Returns the content of a file that is known already, or None."""
    read: DocumentReader = read_documents
    """Reads the objects of a file, some of which may be known."""
    _files: dict[str, SourceFile] = msgspec.field(default_factory=dict)

    def file(self, name: str) -> SourceFile:
        if name not in self._files:
            content = self.find_content(name)
            content = self._content(name) if content is None else content[:MAX_FILE_SIZE]
            self._files[name] = SourceFile(name, content, self.read)
        return self._files[name]

    def find_document(self, location: Location | None) -> Document | None:
        """Return the document that contains a location; None if its line is unknown."""
        if location is None or not location.line:
            return None
        return self.file(location.name).document_at_line(location.line)

    def locate_field(self, location: Location, field: str) -> Location:
        """Return the line of a field, as servers name it, of the object at a location."""
        object_location = location.with_field(field)
        document_field = self._find_field(object_location)
        if document_field is None:
            return object_location
        return self.file(location.name).locations.find(*document_field).with_field(field)

    def locate_event(self, event: Event) -> Event:
        """Return the event with the location of its field instead of that of its object."""
        if not (event.location and event.field) or event.ref is None:
            return event
        location = parse_location(event.location)
        file = self.file(location.name)
        if file.is_template:
            path = tuple(PLAIN_KEY.findall(event.field))
            field_location = file.locate_in_template(event.ref.kind.name, event.ref.name, path)
        else:
            field_location = self.locate_field(location, event.field)
        return msgspec.structs.replace(event, location=str(field_location.with_field("")))

    def locate_finding(self, finding: Finding, document: Document) -> Finding:
        """Return the finding about an object, at the line of its field."""
        location = finding.location
        if location is None or not location.field:
            return finding
        file = self.file(location.name)
        if file.is_template and not location.line:
            field_location = file.locate_in_template(
                *_kind_and_name(document), resolve_server_path(document.body, location.field)
            )
        else:
            field_location = self.locate_field(location, location.field)
        return msgspec.structs.replace(finding, location=field_location.with_field(location.field))

    def locate_findings(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return the findings, each at the line of its field. A file is parsed once for all."""
        located = map(self._locate_in_patch, self._merge_template_findings(findings))
        return tuple(map(self._locate_field_of, located))

    def _locate_field_of(self, finding: Finding) -> Finding:
        """Return a finding at the line of its field, if the object has the field."""
        document_field = self._find_field(finding.location) if finding.location else None
        if document_field is None:
            return finding
        document, path = document_field
        return _at_location(
            finding, self.file(document.location.name).locations.find(document, path)
        )

    def _merge_template_findings(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Yield the findings; those about units of one template once, at their field."""
        same: dict[Finding, list[Finding]] = {}
        for finding in findings:
            location = self._template_location(finding)
            if location is None:
                same.setdefault(finding, [])
            else:
                merged = msgspec.structs.replace(
                    finding, location=location, unit_names=(), unit=None
                )
                same.setdefault(merged, []).append(finding)
        for finding, template_findings in same.items():
            yield _with_unit_names(finding, template_findings) if template_findings else finding

    def _template_location(self, finding: Finding) -> Location | None:
        location = finding.location
        if location is None or location.line or not finding.unit_names:
            return None
        file = self.file(location.name)
        kind, *_, name = finding.unit_names[0].split("/")
        path = tuple(PLAIN_KEY.findall(location.field))
        return (
            file.locate_in_template(kind, name, path).with_field(location.field)
            if file.is_template
            else None
        )

    def _locate_in_patch(self, finding: Finding) -> Finding:
        """Return a finding about a template, at the line of the patch that sets the field."""
        location = finding.location
        if location is None or not location.line:
            return finding
        file = self.file(location.name)
        documents = file.documents_starting_at(location.line)
        field_location = (
            locate_in_template_patch(documents[0], location, file.content) if documents else None
        )
        return (
            finding
            if field_location is None
            else msgspec.structs.replace(finding, location=field_location)
        )

    def _find_field(self, location: Location) -> tuple[Document, FieldPath] | None:
        """Return the field of the object at a location, as far as it exists; else None."""
        if not location.field or not location.line:
            return None
        documents = self.file(location.name).documents_starting_at(location.line)
        path = resolve_server_path(documents[0].body, location.field) if len(documents) == 1 else ()
        return (documents[0], path) if path else None

    def locate_errors(self, errors: Iterable[TidegateError]) -> Iterator[TidegateError]:
        """Yield the errors, each at the line of its field if that is known."""
        for error in errors:
            if error.location is not None and error.location.field and error.location.line:
                error.location = self.locate_field(error.location, error.location.field)
            yield error

    def _content(self, name: str) -> bytes:
        try:
            path = resolve_within(self.root / name, self.root)
            return path.read_bytes()[:MAX_FILE_SIZE] if path.is_file() else b""
        except (OSError, PathEscapeError, ValueError):
            return b""

"""Checks of unit resources against their CRDs, and of all objects for typos and duplicate keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from tidegate.dialect.argo.typos import find_annotation_typos
from tidegate.documents import Document, duplicate_errors, find_locations, read_documents
from tidegate.documents.document import format_path
from tidegate.errors import DocumentError, Location, sanitize
from tidegate.files import read_regular_file
from tidegate.model.finding import Finding, Severity, warning_from_error
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.units.unit import UnitId
from tidegate.schema.custom_resources import SchemaProblem, check_custom_resource
from tidegate.workspace.discovery.unit_tree import RenderedUnit
from tidegate.workspace.locations import FieldLocator

ReadFile = Callable[[str], bytes]
"""Returns the content of a file that a location names. Raises OSError if there is none."""


def check_objects(
    documents: Iterable[Document], *, read_file: ReadFile = read_regular_file
) -> tuple[Finding, ...]:
    """Return what a server would reject in these objects, and which fields it would drop.

    A finding has the line of its field where its file contains the object as it is here; an object
    that was rendered has its own location.
    """
    load = cache(lambda name: _load_file(name, read_file))
    return tuple(
        finding
        for document in documents
        if (problems := check_custom_resource(document.body))
        for finding in _findings(document, problems, load)
    )


def _findings(
    document: Document, problems: tuple[SchemaProblem, ...], load: Callable[[str], _LoadedFile]
) -> Iterable[Finding]:
    content, written_documents = load(document.location.name)
    if document in written_documents:
        locations = find_locations(content, [(document, problem.path) for problem in problems])
    else:
        locations = tuple(
            document.location.with_field(format_path(problem.path)) for problem in problems
        )
    return map(_finding, [document] * len(problems), problems, locations)


def _finding(document: Document, problem: SchemaProblem, location: Location) -> Finding:
    unit = _defined_unit(document)
    name = sanitize(get_text(document.body, "metadata", "name"))
    field = f"`{sanitize(format_path(problem.path))}`" if problem.path else "a field"
    effect = (
        "is unknown; the API server drops it"
        if problem.is_dropped
        else f"is invalid: {sanitize(problem.problem)}"
    )
    return Finding(
        code="schema.unknown" if problem.is_dropped else "schema.refused",
        severity=Severity.WARNING if problem.is_dropped else Severity.ERROR,
        message=f"{field} of {get_text(document.body, 'kind')} `{name}` {effect}",
        location=location,
        reason=f"validated against the CRD in {problem.source}" if problem.source else "",
        fix=_fix(problem),
        unit_names=(unit.qualified_name,) if unit else (),
        unit=unit,
    )


def _defined_unit(document: Document) -> UnitId | None:
    """Return the unit that the object defines, where it states its full name."""
    kind, namespace, name = (
        get_text(document.body, *path)
        for path in (("kind",), ("metadata", "namespace"), ("metadata", "name"))
    )
    return UnitId(kind, "", namespace, name) if kind and namespace and name else None


def _fix(problem: SchemaProblem) -> str:
    if problem.suggestion:
        return f"did you mean `{problem.suggestion}`?"
    return "put the value in quotes" if problem.lacks_quotes else ""


_LoadedFile = tuple[bytes, tuple[Document, ...]]


def _load_file(name: str, read_file: ReadFile) -> _LoadedFile:
    """Return the content of a file and its documents; nothing if it cannot be read."""
    try:
        content = read_file(name)
        return content, read_documents(content, name)
    except (OSError, ValueError, DocumentError):
        return b"", ()


def find_typos(members: Iterable[RenderedUnit], root: Path) -> tuple[Finding, ...]:
    """Return the findings about typos and duplicate keys in objects, each once and at its line.

    A duplicate key in a unit of a repository is a warning, as its controller deploys the unit. In
    files that PATH names it is an error for commands that deploy them.
    """
    locator = FieldLocator(root)
    findings: list[Finding] = []
    for member in members:
        order = member.unit.policy.order
        for document in member.documents:
            findings += (
                locator.locate_finding(finding, document)
                for finding in find_annotation_typos(document, order)
            )
            if member.unit.id.kind:
                findings += map(warning_from_error, duplicate_errors(document))
    return tuple(dict.fromkeys(findings))

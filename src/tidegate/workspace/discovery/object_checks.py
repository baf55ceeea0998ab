"""Checks of unit resources against their CRDs, and of all objects for typos and duplicate keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidegate.dialect.argo.typos import find_annotation_typos
from tidegate.documents import Document, duplicate_errors
from tidegate.documents.document import format_path
from tidegate.errors import Location, sanitize
from tidegate.model.finding import Finding, Severity, warning_from_error
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.units.unit import UnitId
from tidegate.schema.custom_resources import SchemaProblem, check_custom_resource
from tidegate.workspace.discovery.unit_tree import RenderedUnit
from tidegate.workspace.locations import FieldLocator, SourceFile


def check_objects(
    documents: Iterable[Document], find_file: Callable[[str], SourceFile]
) -> tuple[Finding, ...]:
    """Return what a server would reject in these objects, and which fields it would drop.

    A finding has the line of its field where its file contains the object as it is here; an object
    that was rendered has its own location.
    """
    return tuple(
        finding
        for document in documents
        if (problems := _certain_problems(document))
        for finding in _findings(document, problems, find_file)
    )


def _certain_problems(document: Document) -> tuple[SchemaProblem, ...]:
    """Return the problems of the fields whose values are known."""
    problems = check_custom_resource(document.body)
    return tuple(problem for problem in problems if not document.is_unknown(problem.path))


def _findings(
    document: Document,
    problems: tuple[SchemaProblem, ...],
    find_file: Callable[[str], SourceFile],
) -> Iterable[Finding]:
    file = find_file(document.location.name)
    if file.contains(document):
        locations = tuple(file.locations.find(document, problem.path) for problem in problems)
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


def find_typos(members: Iterable[RenderedUnit], locator: FieldLocator) -> tuple[Finding, ...]:
    """Return the findings about typos and duplicate keys in objects, each once and at its line.

    A duplicate key in a unit of a repository is a warning, as its controller deploys the unit. In
    files that PATH names it is an error for commands that deploy them.
    """
    findings: list[Finding] = []
    for member in members:
        order = member.unit.policy.order
        for document in member.documents:
            findings += (
                locator.locate_finding(finding, document)
                for finding in find_annotation_typos(document, order)
            )
            if not member.unit.is_path:
                findings += map(warning_from_error, duplicate_errors(document))
    return tuple(dict.fromkeys(findings))

"""Typos and duplicate keys in objects, reported by every command."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tidegate.dialect.argo.misspelt import find_annotation_typos
from tidegate.documents import duplicate_errors
from tidegate.flows.discover import RenderedUnit
from tidegate.flows.field_places import FieldLocator
from tidegate.model.finding import Finding
from tidegate.report.findings import warning_from_error


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

"""Words in objects that nobody reads, and keys that are written twice: told by every verb."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tidegate.dialect.argo.misspelt import find_misspelt
from tidegate.documents import duplicate_errors
from tidegate.flows.discover import Member
from tidegate.flows.field_places import SourceFiles
from tidegate.model.finding import Finding
from tidegate.report.findings import as_warning


def find_misspellings(members: Iterable[Member], tree: Path) -> tuple[Finding, ...]:
    """What is said of the objects of units, each at its line; of an object in two units, once.

    A unit of a repository is rolled out though it has a key twice, as its controller does it. In
    files that the user points at that is an error, where something is to be done with them.
    """
    files = SourceFiles(tree)
    found: list[Finding] = []
    for member in members:
        order = member.unit.policy.order
        for document in member.documents:
            found += (files.of_finding(one, document) for one in find_misspelt(document, order))
            if member.unit.id.kind:
                found += map(as_warning, duplicate_errors(document))
    return tuple(dict.fromkeys(found))

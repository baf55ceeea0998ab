"""The finding about missing inputs, which make the result of a preview incomplete.

A unit whose source is elsewhere is assumed to be healthy, like all external dependencies, and so
are the values of Secrets without a key. A missing input of a chart or an overlay, and a value that
the given key does not decrypt, is an error: nothing was checked without it. So is a repository of
which no unit could be rendered. Every command reports such an error.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.finding import Finding, Severity
from tidegate.render.sops.keys import WRONG_KEY
from tidegate.workspace.discovery.unit_tree import RenderedUnit
from tidegate.workspace.rendering.result import UNDECRYPTED_DATA, RenderResult
from tidegate.workspace.workspace import Workspace

ERROR_CODES = frozenset({WRONG_KEY, "render.sops.metadata"})
"""Codes of decryption problems that make the finding an error."""


UNAVAILABLE_UNIT_CODES = frozenset({"units.unavailable", "appset.unavailable"})
"""Codes of findings about units that could not be rendered, if that is not an error."""


def workspace_findings(workspace: Workspace, *, has_coverage: bool = False) -> tuple[Finding, ...]:
    """Return the findings of a workspace, with that about incomplete inputs where it is an error.

    For commands that show units and prove nothing. `has_coverage`: the command reports missing
    parts as its coverage, so only values that a given key does not decrypt are an error.
    """
    incomplete = incomplete_finding(
        workspace.members, workspace.findings, has_coverage=has_coverage
    )
    return (
        *workspace.findings,
        *(finding for finding in incomplete if finding.severity is Severity.ERROR),
    )


def incomplete_finding(
    members: Iterable[RenderedUnit],
    findings: Iterable[Finding] = (),
    *,
    has_coverage: bool = False,
) -> tuple[Finding, ...]:
    """Return the finding that counts the missing inputs of these units; none if nothing is missing.

    `findings`: the other findings about the repository. `has_coverage`: as in
    `workspace_findings`.
    """
    results = [member.result for member in members if isinstance(member.result, RenderResult)]
    has_objects = any(result.documents for result in results)
    undecrypted = [error for result in results for error in result.undecrypted]
    undecrypted_objects = {error for error in undecrypted if error.code != UNDECRYPTED_DATA}
    counted_errors = undecrypted_objects or {
        *{error.problem: error for error in undecrypted}.values()
    }
    missing_inputs = {
        missing_input.description for result in results for missing_input in result.missing_inputs
    }
    unavailable = {
        unit_finding
        for unit_finding in findings
        if unit_finding.code in UNAVAILABLE_UNIT_CODES and unit_finding.severity is Severity.WARNING
    }
    parts = (
        _count(
            len(counted_errors),
            "encrypted object was not decrypted",
            "encrypted objects were not decrypted",
        ),
        _count(
            len(missing_inputs),
            "chart or base could not be fetched",
            "charts or bases could not be fetched",
        ),
        _count(len(unavailable), "unit could not be rendered", "units could not be rendered"),
    )
    summary = ", ".join(part for part in parts if part)
    if not summary:
        return ()
    is_error = any(error.code in ERROR_CODES for error in counted_errors)
    if not has_coverage:
        is_error |= bool(missing_inputs) or (bool(unavailable) and not has_objects)
    assumptions = ["placeholders replace encrypted values"] if counted_errors else []
    assumptions += (
        ["missing parts are assumed to be healthy"] if missing_inputs or unavailable else []
    )
    finding = Finding(
        code="units.incomplete",
        severity=Severity.ERROR if is_error else Severity.WARNING,
        message=f"the result is incomplete: {summary}",
        reason=" and ".join(assumptions),
    )
    return (finding,)


def _count(count: int, singular: str, plural: str) -> str:
    return f"{count} {singular if count == 1 else plural}" if count else ""

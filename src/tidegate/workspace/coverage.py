"""Measuring how much of a repository was rendered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidegate.errors import TidegateError
from tidegate.model.finding import Finding
from tidegate.model.units.unit import Unit
from tidegate.model.views.coverage import Coverage, Gap
from tidegate.workspace.discovery.unit_tree import RenderedUnit
from tidegate.workspace.rendering.result import (
    UNAVAILABLE_SOURCE_CODES,
    UNKNOWN_APPLICATIONS_CODES,
    RenderFailure,
    RenderResult,
)


class _Problem(NamedTuple):
    """Why objects of a unit are unknown."""

    unit: Unit
    error: TidegateError
    is_partial: bool
    source: str = ""
    """The missing input, if it is not the source of the unit."""
    missing_object: str = ""
    """The missing object with variables, if that is the problem."""

    @property
    def text(self) -> str:
        """The problem without the name of the unit, so that units have it in common."""
        if self.missing_object:
            return f"{self.missing_object} with variables is not in the repository"
        return self.error.problem


def measure_coverage(
    members: Iterable[RenderedUnit],
    object_count: int,
    command: str,
    findings: Iterable[Finding] = (),
) -> Coverage:
    """Return how much of the units is known.

    `command`: the command line, to be run again. `findings`: those about loading the repository.
    """
    members = tuple(members)
    unknown_sets: dict[tuple[str, str], dict[str, None]] = {}
    for finding in findings:
        if finding.code in UNKNOWN_APPLICATIONS_CODES and finding.unit is not None:
            key = (finding.code, finding.message)
            unknown_sets.setdefault(key, {})[str(finding.unit)] = None
    grouped: dict[tuple[str, bool], list[_Problem]] = {}
    for problem in (problem for member in members for problem in _find_problems(member)):
        grouped.setdefault((problem.text, problem.is_partial), []).append(problem)
    gaps = [
        Gap(
            text,
            tuple(dict.fromkeys(str(problem.unit.id) for problem in problems)),
            is_partial,
            _helpful_command(problems[0], command),
        )
        for (text, is_partial), problems in grouped.items()
    ]
    gaps += [
        Gap(message, tuple(units), command=_generator_command(code, command))
        for (code, message), units in unknown_sets.items()
    ]
    unknown = {unit for units in unknown_sets.values() for unit in units}
    return Coverage(
        unit_count=len(members),
        rendered_count=sum(
            isinstance(member.result, RenderResult) and str(member.unit.id) not in unknown
            for member in members
        ),
        object_count=object_count,
        gaps=tuple(sorted(gaps, key=lambda gap: (gap.is_partial, -len(gap.units), gap.problem))),
    )


def _generator_command(code: str, command: str) -> str:
    return f"{command} --generator-data FILE" if code == "appset.unknown" else ""


def _find_problems(member: RenderedUnit) -> Iterator[_Problem]:
    result = member.result
    if isinstance(result, RenderFailure):
        # The first error names the source; the others follow from it.
        yield from (_Problem(member.unit, error, is_partial=False) for error in result.errors[:1])
        return
    for missing in result.missing_inputs:
        yield _Problem(member.unit, missing.error, is_partial=True, source=missing.source)
    for error in result.undecrypted:
        yield _Problem(member.unit, error, is_partial=True)
    for variables in result.unknown_variables:
        missing_object = f"{variables.kind} `{variables.name}`"
        yield _Problem(member.unit, variables.error, is_partial=True, missing_object=missing_object)


def _helpful_command(problem: _Problem, command: str) -> str:
    """Return a command with which the objects would be known, or nothing."""
    code = problem.error.code
    if code.startswith("render.sops"):
        return f"SOPS_AGE_KEY_FILE=FILE {command}"
    if code.startswith("appset."):
        return f"{command} --generator-data FILE"
    if code not in UNAVAILABLE_SOURCE_CODES:
        return ""
    location = problem.error.location
    url = problem.source or (location.name if location is not None else "")
    return f"{command} --repo-map {url}=DIRECTORY" if "://" in url else ""

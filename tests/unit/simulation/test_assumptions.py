"""Findings about units whose source cannot be fetched, in a simulation."""

from __future__ import annotations

from msgspec import structs

from tidegate.errors import SourceError
from tidegate.model.finding import Finding, Severity
from tidegate.model.units.unit import Dependency, Unit, UnitId
from tidegate.simulation.assumptions import with_unavailable_units
from tidegate.workspace.discovery.unit_tree import RenderedUnit, UnitTree
from tidegate.workspace.rendering.result import RenderFailure
from tidegate.workspace.workspace import Workspace

WEB, SHOP = (UnitId("Application", "", "argocd", name) for name in ("web", "shop"))
ELSEWHERE = UnitId("Application", "", "argocd", "elsewhere")
MISSPELT = UnitId("Application", "", "argocd", "shopp")
UNREACHABLE = SourceError("source.git.unreachable", "nobody answers")
FAILURE = Finding(
    code=UNREACHABLE.code,
    severity=Severity.ERROR,
    message="a message in other words",
    unit=WEB,
    error_problem=UNREACHABLE.problem,
)
UNKNOWN = Finding(
    code="units.unknown", severity=Severity.ERROR, message="in other words", unit=SHOP
)


def findings_of(*findings: Finding) -> tuple[Finding, ...]:
    dependencies = (Dependency(unit=ELSEWHERE), Dependency(unit=MISSPELT))
    members = (
        RenderedUnit(Unit(id=WEB), RenderFailure((UNREACHABLE,))),
        RenderedUnit(Unit(id=SHOP, dependencies=dependencies), RenderFailure((UNREACHABLE,))),
    )
    workspace = Workspace((UnitTree(WEB, members),), findings)
    return with_unavailable_units(workspace).findings


def test_a_unit_that_cannot_be_fetched_is_unavailable_for_any_message() -> None:
    (finding,) = findings_of(FAILURE)

    assert (finding.code, finding.severity) == ("units.unavailable", Severity.WARNING)
    assert "`Application/argocd/web`" in finding.message
    assert finding.message.endswith(": nobody answers")


def test_another_error_of_such_a_unit_stays_an_error() -> None:
    other = structs.replace(FAILURE, error_problem="", code="schema.refused")

    assert findings_of(other) == (other,)


def test_a_missing_dependency_is_assumed_and_a_misspelt_one_is_not() -> None:
    missing, misspelt = findings_of(
        structs.replace(UNKNOWN, missing_dependency=ELSEWHERE),
        structs.replace(UNKNOWN, missing_dependency=MISSPELT),
    )

    assert missing.severity is Severity.WARNING
    assert misspelt.severity is Severity.ERROR

"""Findings about units that one template makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.errors import Location
from tidegate.model.finding import Finding, Severity
from tidegate.model.units.unit import UnitId
from tidegate.workspace.locations import FieldLocator

TEMPLATE = "chart/templates/apps.yaml"
WEB, API = (UnitId("Application", "", "argocd", name) for name in ("web", "api"))


def located(tmp_path: Path, *findings: Finding) -> tuple[Finding, ...]:
    path = tmp_path / TEMPLATE
    path.parent.mkdir(parents=True)
    path.write_text("kind: Application\nmetadata:\n  name: {{ .Values.name }}\nspec:\n")
    return FieldLocator(tmp_path).locate_findings(findings)


def a_finding(message: str, of: UnitId, named: UnitId | None = None) -> Finding:
    return Finding(
        code="argo.source",
        severity=Severity.ERROR,
        message=message,
        location=Location(TEMPLATE, field="spec"),
        unit_names=(of.qualified_name,),
        unit=named,
    )


@pytest.mark.parametrize("message", ["no source", "no ref `web`"])
def test_the_unit_is_added_to_a_message_without_it(tmp_path: Path, message: str) -> None:
    (finding,) = located(tmp_path, a_finding(message, WEB), a_finding(message, API))

    assert finding.message.startswith("`Application/argocd/web` ")
    assert " 1 " in finding.message
    assert finding.message.endswith(f": {message}")
    assert finding.unit_names == ("Application/argocd/web", "Application/argocd/api")


def test_a_unit_that_a_message_names_in_its_own_way_is_not_added(tmp_path: Path) -> None:
    (finding,) = located(tmp_path, a_finding("the Application for the web", WEB, named=WEB))

    assert finding.message == "the Application for the web"
    assert finding.location == Location(TEMPLATE, 4, 1, "spec")


def test_equal_messages_about_units_of_one_name_are_merged(tmp_path: Path) -> None:
    other = UnitId("Application", "", "teams", "web")

    findings = located(
        tmp_path,
        a_finding("no source: `web`", WEB, named=WEB),
        a_finding("no source: `web`", other, named=other),
    )

    assert [finding.message for finding in findings] == ["no source: `web`"]

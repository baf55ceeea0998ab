"""Errors of `tidegate render` that a finding reports are not printed again."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from msgspec import structs

from tidegate.actions import render as actions
from tidegate.actions.render import RenderedPart, RenderedParts
from tidegate.cli.commands.render import render
from tidegate.errors import SourceError
from tidegate.model.finding import Finding, Severity
from tidegate.model.units.unit import UnitId
from tidegate.workspace.rendering.result import RenderFailure

WEB = UnitId("Application", "", "argocd", "web")
UNREACHABLE = SourceError("source.git.unreachable", "nobody answers")
FINDING = Finding(
    code=UNREACHABLE.code,
    severity=Severity.ERROR,
    message="a message in other words",
    error_problem=UNREACHABLE.problem,
)


def printed(monkeypatch: pytest.MonkeyPatch, finding: Finding) -> str:
    async def render_requests(*_: object) -> tuple[RenderedParts, ...]:
        part = RenderedPart(RenderFailure((UNREACHABLE,)), WEB, WEB)
        return (RenderedParts((part,), (finding,)),)

    monkeypatch.setattr(actions, "render_requests", render_requests)
    return CliRunner().invoke(render, ["."]).output


def test_an_error_that_is_also_a_finding_is_printed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = printed(monkeypatch, FINDING)

    assert "a message in other words" in output
    assert "nobody answers" not in output


def test_an_error_that_no_finding_reports_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    other = structs.replace(FINDING, error_problem="another problem")

    assert "nobody answers" in printed(monkeypatch, other)

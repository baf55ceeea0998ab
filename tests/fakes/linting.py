"""Lint in this very process, offline."""

from __future__ import annotations

from pathlib import Path

from tidegate.flows.lint import Asking, lint
from tidegate.flows.pointing import Pointed
from tidegate.flows.render import own_setting
from tidegate.flows.session import Target
from tidegate.flows.wiring import Simulation
from tidegate.report.lint.report import LintReport


async def lint_at(path: Path, asking: Asking | None = None) -> LintReport:
    """What `tidegate lint PATH --offline` finds."""
    target = Target(simulation=Simulation())
    setting = own_setting(offline=True, maps=())
    return await lint(Pointed(what=str(path)), target, setting, asking or Asking())

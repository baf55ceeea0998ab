"""Lint in this very process, offline."""

from __future__ import annotations

from pathlib import Path

from tidegate.flows.lint import LintOptions, lint
from tidegate.flows.pointing import LoadRequest
from tidegate.flows.render import user_render_settings
from tidegate.flows.session import ClusterTargets
from tidegate.flows.wiring import SimulationConfig
from tidegate.report.lint.report import LintReport


async def lint_at(path: Path, asking: LintOptions | None = None) -> LintReport:
    """What `tidegate lint PATH --offline` finds."""
    target = ClusterTargets(simulation=SimulationConfig())
    setting = user_render_settings(offline=True, maps=())
    return await lint(LoadRequest(path_or_url=str(path)), target, setting, asking or LintOptions())

"""Lint in this very process, offline."""

from __future__ import annotations

from pathlib import Path

from tidegate.clusters.sandboxes import SimulationConfig
from tidegate.clusters.session import ClusterTargets
from tidegate.linting.run import LintOptions, lint
from tidegate.model.views.lint import LintReport
from tidegate.workspace.rendering.context import user_render_settings
from tidegate.workspace.request import LoadRequest


async def lint_at(path: Path, asking: LintOptions | None = None) -> LintReport:
    """What `tidegate lint PATH --offline` finds."""
    target = ClusterTargets(simulation=SimulationConfig())
    setting = user_render_settings(offline=True, maps=())
    return await lint(LoadRequest(path_or_url=str(path)), target, setting, asking or LintOptions())

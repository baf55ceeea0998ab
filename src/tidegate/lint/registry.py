"""All rules, by their ids."""

from __future__ import annotations

from tidegate.lint.context import LintContext
from tidegate.lint.rule import REGISTRY, Diagnostic, Rule, rule
from tidegate.lint.rules import (
    applications,
    bootstrap,
    deadlocks,
    files,
    flux,
    gates,
    ignored_annotations,
    jobs,
    kinds,
    missing_names,
    unit_order,
    windows,
)
from tidegate.model.finding import Severity

MODULES = (
    applications,
    files,
    flux,
    gates,
    ignored_annotations,
    jobs,
    kinds,
    missing_names,
    deadlocks,
    bootstrap,
    unit_order,
    windows,
)


@rule(
    "ORD014",
    "Unit is defined more than once",
    Severity.ERROR,
    why="each definition overwrites the other one; the last applied definition wins",
    fix="remove one of the definitions, or rename the unit in one of them",
)
def same_unit(_context: LintContext) -> tuple[Diagnostic, ...]:
    """Yield nothing: discovery reports the finding."""
    return ()


@rule(
    "ORD055",
    "Unknown sync option",
    Severity.WARNING,
    why="Argo CD ignores unknown sync options without an error",
    fix="correct the name or the value of the sync option",
)
def unknown_option(_context: LintContext) -> tuple[Diagnostic, ...]:
    """Yield nothing: the parser of Applications reports the finding."""
    return ()


RULES_BY_FINDING_CODE = {
    "units.unknown": "ORD001",
    "flux.itself": "ORD002",
    "plan.cycle": "ORD002",
    "units.duplicate": "ORD014",
    "appset.duplicate": "ORD014",
    "appset.steps": "ORD015",
    "appset.unmatched": "ORD015",
    "dialect.wave": "ORD013",
    "argo.option": "ORD055",
    "render.sops.not-requested": "ORD045",
}
"""Rules by the codes of findings that are reported while a repository is loaded."""
RULES: dict[str, Rule] = dict(sorted(REGISTRY.rules.items()))

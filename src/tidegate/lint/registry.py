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
    windows,
)


@rule(
    "ORD014",
    "Two sources bring the same unit",
    Severity.ERROR,
    why="whoever applies it last wins",
    fix="remove one of the two, or give it another name",
)
def same_unit(_context: LintContext) -> tuple[Diagnostic, ...]:
    """Report nothing: the finding is made during discovery."""
    return ()


@rule(
    "ORD055",
    "There is no such sync option",
    Severity.WARNING,
    why="Argo CD ignores what it does not know",
    fix="correct it",
)
def unknown_option(_context: LintContext) -> tuple[Diagnostic, ...]:
    """Report nothing: the finding is made when Applications are parsed."""
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
"""Rules by the codes of findings that are made while loading."""
RULES: dict[str, Rule] = dict(sorted(REGISTRY.rules.items()))

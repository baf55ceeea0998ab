"""Lint rules and their diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from tidegate.documents import Document
from tidegate.errors import Location
from tidegate.lint.context import LintContext
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.objects import FieldPath


class FieldRef(NamedTuple):
    """A field of a document."""

    document: Document
    path: FieldPath = ()


DiagnosticTarget = FieldRef | Location | None
"""Target of a diagnostic: a field, a known location, or nothing."""
LocateField = Callable[[FieldRef], Location]
"""Finds the location of a field."""


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One diagnostic of a rule; empty fields are taken from the rule."""

    message: str
    at: DiagnosticTarget
    """The field or location that the diagnostic is about."""
    severity: Severity | None = None
    sequence: tuple[str, ...] = ()
    """The steps that lead to the problem."""
    related: tuple[DiagnosticTarget, ...] = ()
    """Related fields or locations."""
    why: str = ""
    fix: str = ""
    snippet: str = ""
    """Text to paste into a file."""
    semantics: tuple[str, ...] = ()
    cause: str = ""
    """What it has in common with other diagnostics of the rule, which are one finding with it."""


RuleFunction = Callable[[LintContext], Iterable[Diagnostic]]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A lint rule: id, title, highest severity, reason and fix."""

    id: str
    title: str
    severity: Severity
    why: str
    fix: str
    function: RuleFunction

    def to_finding(self, diagnostic: Diagnostic, locate: LocateField) -> Finding:
        return Finding(
            code=self.id,
            severity=diagnostic.severity or self.severity,
            message=diagnostic.message,
            location=_locate(diagnostic.at, locate),
            reason=diagnostic.why or self.why,
            fix=diagnostic.fix or self.fix,
            semantics=diagnostic.semantics,
            sequence=diagnostic.sequence,
            other_locations=tuple(
                location for target in diagnostic.related if (location := _locate(target, locate))
            ),
            snippet=diagnostic.snippet,
            cause=diagnostic.cause,
        )


class RuleRegistry(msgspec.Struct):
    """All rules by id."""

    rules: dict[str, Rule] = msgspec.field(default_factory=dict)

    def rule(
        self, rule_id: str, title: str, severity: Severity, *, why: str, fix: str
    ) -> Callable[[RuleFunction], RuleFunction]:
        """Register a function as a rule."""

        def register(function: RuleFunction) -> RuleFunction:
            if rule_id in self.rules:
                raise ValueError(rule_id)
            self.rules[rule_id] = Rule(
                id=rule_id, title=title, severity=severity, why=why, fix=fix, function=function
            )
            return function

        return register


REGISTRY = RuleRegistry()
rule = REGISTRY.rule


def run_rules(context: LintContext, rules: Iterable[Rule]) -> Iterator[tuple[Rule, Diagnostic]]:
    """Run rules on a context and yield each diagnostic once, with its rule.

    A field whose value is unknown has no diagnostics.
    """
    for lint_rule in rules:
        seen: set[tuple[str, str]] = set()
        for diagnostic in lint_rule.function(context):
            if _is_unknown(diagnostic.at):
                continue
            key = (diagnostic.message, _target_key(diagnostic.at))
            if key not in seen:
                seen.add(key)
                yield lint_rule, diagnostic


def _is_unknown(at: DiagnosticTarget) -> bool:
    """Return whether the field has a value that replaces an unknown one."""
    return isinstance(at, FieldRef) and bool(at.path) and at.document.is_unknown(at.path)


def _target_key(at: DiagnosticTarget) -> str:
    if isinstance(at, FieldRef):
        return f"{at.document.location} {at.path}"
    return str(at)


def _locate(at: DiagnosticTarget, locate: LocateField) -> Location | None:
    return locate(at) if isinstance(at, FieldRef) else at

"""All codes that Tidegate prints, collected from the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tidegate.lint.registry import RULES
from tidegate.model.rollouts.event import EventType, RolloutOutcome

SOURCE = Path(__file__).parents[2] / "src" / "tidegate"
DOTTED = re.compile(r"^[a-z]+(\.[a-z][a-z-]*)+$")
ERRORS = re.compile(r"(?<!Generator)Error$|(ErrorInfo|_error|GitErrorPattern)$")
"""What makes an error. A GeneratorError becomes a finding."""
PARTIAL_ARGUMENTS = 2
"""The function and the code."""
MESSAGES = frozenset({"_show_message", "TidegateError"})
"""What prints an error with a code that has no group, such as `usage`."""
FINDINGS = re.compile(r"^(appset|argo|flux|schema|units|config|lint|preflight|simulate)\.[a-z-]+$")
FINDING_PACKAGES = (
    *("actions", "controllers", "dialect", "inspection", "linting", "planning"),
    *("releases", "removal", "rollout", "simulation", "workspace"),
)
"""Packages that make findings."""
ERRORS_LIKE_FINDINGS = frozenset({"config.none", "config.context"})
"""Codes of errors that have the form of a finding code."""
REASON_ARGUMENTS = {
    "Failure": 0,
    "FenceReason": 0,
    "GateResult": 1,
    "_emit_wait": 2,
    "emit_wait": 2,
    "_fail_waiting": 2,
}
"""The position of the reason in the arguments of these functions of the engine."""
REASON = re.compile(r"^[A-Z][A-Za-z]+$")


def calls(*packages: str) -> Iterator[tuple[Path, ast.Call]]:
    """Yield all calls in these packages, or in the whole source."""
    for path, node in nodes(*packages):
        if isinstance(node, ast.Call):
            yield path, node


def nodes(*packages: str) -> Iterator[tuple[Path, ast.AST]]:
    for folder in [SOURCE / package for package in packages] or [SOURCE]:
        for path in sorted(folder.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                yield path, node


def error_codes() -> set[str]:
    """Return the first argument of every call that makes an error."""
    codes = set[str]()
    for _, call in calls():
        is_partial = called_name(call) == "partial" and len(call.args) > 1
        name = ast.unparse(call.args[0]) if is_partial else called_name(call)
        text = literal(call.args[int(is_partial)]) if call.args else ""
        if ERRORS.search(name) and DOTTED.match(text):
            codes.add(text)
        codes |= partial_error_code(call)
        if called_name(call) in MESSAGES and text and "." not in text:
            codes.add(text)
    return codes


def partial_error_code(call: ast.Call) -> set[str]:
    """Return the code of `partial(UsageError, "usage.job")`; none for other calls."""
    if called_name(call) != "partial" or len(call.args) < PARTIAL_ARGUMENTS:
        return set()
    maker, code = call.args[0], literal(call.args[1])
    is_error = isinstance(maker, ast.Name) and ERRORS.search(maker.id)
    return {code} if is_error and DOTTED.match(code) else set()


def finding_codes() -> set[str]:
    """Return the string literals that are finding codes."""
    texts = {literal(node) for _, node in nodes(*FINDING_PACKAGES)}
    return {text for text in texts if FINDINGS.match(text)} - ERRORS_LIKE_FINDINGS


def event_types() -> set[str]:
    """Return the types of events, and of the documents that are printed between them."""
    documents = {
        literal(keyword.value)
        for _, node in nodes("report")
        if isinstance(node, ast.ClassDef)
        and any(
            keyword.arg == "tag_field" and literal(keyword.value) == "event"
            for keyword in node.keywords
        )
        for keyword in node.keywords
        if keyword.arg == "tag"
    }
    return documents | {event_type.value for event_type in EventType}


def reasons() -> set[str]:
    """Return the reasons that the engine gives for events."""
    constants = dict(named_constants(node for _, node in nodes("engine", "model/rollouts")))
    reasons = {
        text
        for _, node in nodes("engine")
        for value in reason_values(node)
        for part in ast.walk(value)
        for text in [constants.get(part.id, "") if isinstance(part, ast.Name) else literal(part)]
    }
    return {text for text in reasons if REASON.match(text)}


def reason_values(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions of reasons in a call or an assignment."""
    if isinstance(node, ast.Call):
        at = REASON_ARGUMENTS.get(called_name(node))
        yield from node.args[at : at + 1] if at is not None else ()
        yield from (keyword.value for keyword in node.keywords if keyword.arg == "reason")
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = {
            part.id.lower()
            for target in targets
            for part in ast.walk(target)
            if isinstance(part, ast.Name)
        }
        if names & {"reason", "reasons"}:
            yield node.value


def named_constants(assignments: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in assignments:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, literal(node.value)


def called_name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def literal(node: ast.AST) -> str:
    """Return the text of a string literal; empty for everything else."""
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else ""


def printed_codes() -> dict[str, set[str]]:
    """Return all codes, by the column of the reference page that documents them."""
    return {
        "rule": set(RULES),
        "code": error_codes() | finding_codes(),
        "event": event_types(),
        "outcome": {outcome.value for outcome in RolloutOutcome},
        "reason": reasons(),
    }

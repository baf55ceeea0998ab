"""Health rules as data: the meaning of the status of a kind, which users can extend.

    rows:
    - group: cert-manager.io          # `*` matches any text
      kinds: [Certificate]
      source: cert-manager's API reference
      observed: status.observedGeneration     # if it is older, the cases are not evaluated
      cases:                                  # the first whose checks all pass decides
      - {health: Progressing, when: [{condition: Issuing}]}
      - {health: Degraded, when: [{condition: Ready, values: ["False"]}]}
      - {health: Healthy, when: [{condition: Ready}]}
      otherwise: {health: Progressing, message: it is not issued yet}

The message of a case is `message`, else the value at the path `message_from`, else the message of
the first condition among its checks. Its reason is `reason`, else that of the condition. A case
with `first` is a table: the first condition that matches a case of the table decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import msgspec

from tidegate.documents.decoder import FileProblem, decode
from tidegate.errors import KnowledgeError, sanitize
from tidegate.model.k8s.json_fields import EMPTY_MAPPING, get_int, get_mapping, get_text
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.k8s.paths import find_value
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.operators.amounts import list_items
from tidegate.model.operators.checks import all_checks_pass, case_errors, check_errors, check_passes
from tidegate.model.operators.rows import CONDITIONS_PATH, Check, HealthCase, KindRow

SORTS_LAST = "\uffff"
"""A text that sorts after every timestamp."""


class HealthRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The health rule of some kinds of a group."""

    group: str
    """The API group, which may be a pattern."""
    kinds: tuple[str, ...]
    """The kinds of the group."""
    source: str
    """The source of the facts."""
    cases: tuple[HealthCase, ...]
    """The cases; the first that applies decides."""
    otherwise: HealthCase = HealthCase(health=Health.PROGRESSING)
    """The verdict if no case applies."""
    observed: str = ""
    """The path of the observed generation; empty for none."""


@dataclass(frozen=True, slots=True)
class HealthRowIndex:
    """Rows by group and kind: by name, else the first matching pattern."""

    named: dict[tuple[str, str], HealthRow]
    """Rows by group and kind."""
    patterns: tuple[HealthRow, ...]
    """Rows whose group or kind is a pattern."""
    pattern_matches: dict[tuple[str, str], HealthRow | None] = field(
        default_factory=dict, compare=False
    )
    """Results of pattern matches. A cluster has some hundred kinds and many objects."""

    @classmethod
    def from_rows(cls, rows: Iterable[HealthRow]) -> HealthRowIndex:
        """Return an index. Of two rows for a kind, the first counts."""
        all_rows = list(rows)
        named: dict[tuple[str, str], HealthRow] = {}
        for row in all_rows:
            for kind in row.kinds:
                named.setdefault((row.group, kind), row)
        with_pattern = (row for row in all_rows if "*" in "".join((row.group, *row.kinds)))
        return cls(named, tuple(with_pattern))

    def find(self, group: str, kind: str) -> HealthRow | None:
        """Return the row of a kind, or None."""
        key = (group, kind)
        if key in self.named:
            return self.named[key]
        if key not in self.pattern_matches:
            matches = (row for row in self.patterns if _matches(row, group, kind))
            self.pattern_matches[key] = next(matches, None)
        return self.pattern_matches[key]


def _matches(row: HealthRow, group: str, kind: str) -> bool:
    return fnmatchcase(group, row.group) and any(
        fnmatchcase(kind, pattern) for pattern in row.kinds
    )


def judge_by_health_row(body: JsonObject, row: HealthRow) -> Verdict:
    """Return the health of an object by a health row."""
    observed = find_value(body, row.observed) if row.observed else None
    if isinstance(observed, int) and observed != get_int(
        body, "metadata", "generation", default=observed
    ):
        return _unobserved_verdict(observed)
    generation = observed if isinstance(observed, int) else 0
    return _decide(body, row.cases, generation) or _make_verdict(body, row.otherwise, generation)


def judge_by_kind_row(body: JsonObject, row: KindRow) -> Verdict:
    """Return the health of an object by an operator row: its cases, else ready or progressing."""
    observed = find_value(body, row.observed) if row.observed else None
    generation = observed if isinstance(observed, int) else 0
    if isinstance(observed, int) and observed < get_int(body, "metadata", "generation"):
        return _unobserved_verdict(observed)
    if verdict := _decide(body, row.cases, generation):
        return verdict
    missing = tuple(check for check in row.ready_when if not check_passes(check, body))
    if not missing:
        return _make_verdict(
            body, HealthCase(health=Health.HEALTHY, when=row.ready_when, reason="Ready"), generation
        )
    reason = "" if missing[0].condition else "NotReady"
    return _make_verdict(
        body, HealthCase(health=Health.PROGRESSING, when=missing[:1], reason=reason), generation
    )


def _decide(body: JsonObject, cases: Iterable[HealthCase], generation: int) -> Verdict | None:
    """Return the verdict of the first case that applies, or None."""
    for case in cases:
        if all_checks_pass(case.when, body):
            verdict = (
                _judge_table(body, case, generation)
                if case.first
                else _make_verdict(body, case, generation)
            )
            if verdict is not None:
                return verdict
    return None


def _judge_table(body: JsonObject, table: HealthCase, generation: int) -> Verdict | None:
    """Return the verdict of a table on the first item that matches one of its cases."""
    items = list(list_items(find_value(body, table.among)))
    if table.by:
        items.sort(key=lambda item: get_text(item, table.by, default=SORTS_LAST))
    for item in items:
        view = {**body, "item": item}
        if table.among == CONDITIONS_PATH:
            view["status"] = {**get_mapping(body, "status"), "conditions": [item]}
        if verdict := _decide(view, table.first, generation):
            return verdict
    return None


def _unobserved_verdict(observed: int) -> Verdict:
    message = "the controller has not observed the last change yet"
    return Verdict(
        Health.PROGRESSING, "GenerationNotObserved", message, observed_generation=observed
    )


def _make_verdict(body: JsonObject, case: HealthCase, generation: int) -> Verdict:
    health = case.health or Health.UNKNOWN
    condition_check = next((check for check in case.when if check.condition), None)
    condition = _condition(body, condition_check)
    recorded = (
        find_value(body, case.message_from) if case.message_from else condition.get("message")
    )
    message = (
        case.message
        or (recorded if isinstance(recorded, str) else "")
        or _default_message(body, case)
    )
    reason = case.reason or get_text(condition, "reason") or _default_reason(case, condition_check)
    condition_generation = get_int(condition, "observedGeneration")
    observed = generation or get_int(
        body, "status", "observedGeneration", default=condition_generation
    )
    verdict = Verdict(health, sanitize(reason), sanitize(message), case.final, observed)
    return msgspec.structs.replace(verdict, is_starting=True) if case.starts else verdict


def _default_reason(case: HealthCase, condition_check: Check | None) -> str:
    """Return a default reason: `Ready`, `NotReady` or the state."""
    if condition_check is None:
        return (case.health or Health.UNKNOWN).value
    is_good = case.health is Health.HEALTHY or "True" in condition_check.expected_values
    return condition_check.condition if is_good else f"Not{condition_check.condition}"


def _condition(body: JsonObject, condition_check: Check | None) -> JsonObject:
    """Return the condition that a case checks, or the current item of a table."""
    path = f"{CONDITIONS_PATH}[type={condition_check.condition}]" if condition_check else "item"
    value = find_value(body, path)
    return value if isinstance(value, dict) else EMPTY_MAPPING


def _default_message(body: JsonObject, case: HealthCase) -> str:
    """Return a default message from the first check: `status.phase is Bound`."""
    checks = (check for check in case.when if not (check.absent or check.at_least))
    check = next(checks, None)
    if check is None:
        return "waiting for a status"
    value = find_value(body, check.target_path)
    name = f"condition {check.condition}" if check.condition else check.target_path
    return f"{name} is not set" if value is None else f"{name} is {value}"


class _HealthRowFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a row file."""

    rows: tuple[HealthRow, ...] = ()
    """The rows."""


def read_health_rows(content: bytes, name: str) -> tuple[HealthRow, ...]:
    """Return the rows of a file. Raises one ExceptionGroup with an error for each mistake."""
    files = decode(
        content, name, _HealthRowFile, noun="file of health rows", check=_find_row_problems
    )
    return tuple(row for file in files for row in file.rows)


def _find_row_problems(file: _HealthRowFile) -> Iterator[FileProblem]:
    for index, row in enumerate(file.rows):
        observed = check_errors([Check(path=row.observed)] if row.observed else ())
        for problem in (*observed, *case_errors((*row.cases, row.otherwise))):
            yield ("rows", index), KnowledgeError("health.row", sanitize(problem))

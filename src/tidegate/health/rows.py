"""Health as rows: what a kind's status means, written down as data that people can add to.

    rows:
    - group: cert-manager.io          # `*` stands for any text
      kinds: [Certificate]
      source: cert-manager's API reference
      observed: status.observedGeneration     # if it lags behind, nothing else is asked
      cases:                                  # the first whose checks all hold decides
      - {health: Progressing, when: [{condition: Issuing}]}
      - {health: Degraded, when: [{condition: Ready, values: ["False"]}]}
      - {health: Healthy, when: [{condition: Ready}]}
      otherwise: {health: Progressing, says: it is not issued yet}

What a case says is `says`, or what stands at the path `tells`, or the message of the first
condition that it asks for. Its reason is `reason`, or that condition's. A case with `first` is a
table: it goes through the conditions, and the first that fits a case of the table decides.
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

LAST = "\uffff"
"""Sorts behind every time."""


class HealthRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How some kinds of one group are judged."""

    group: str
    kinds: tuple[str, ...]
    source: str
    cases: tuple[HealthCase, ...]
    otherwise: HealthCase = HealthCase(health=Health.PROGRESSING)
    observed: str = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows, found by group and kind: by name, then by pattern, the first that fits."""

    named: dict[tuple[str, str], HealthRow]
    patterns: tuple[HealthRow, ...]
    asked: dict[tuple[str, str], HealthRow | None] = field(default_factory=dict, compare=False)
    """What was found by pattern before; a cluster has some hundred kinds and many objects."""

    @classmethod
    def of(cls, rows: Iterable[HealthRow]) -> Rows:
        """Of two rows that name a kind, the first counts."""
        known = list(rows)
        named: dict[tuple[str, str], HealthRow] = {}
        for row in known:
            for kind in row.kinds:
                named.setdefault((row.group, kind), row)
        patterned = (row for row in known if "*" in "".join((row.group, *row.kinds)))
        return cls(named, tuple(patterned))

    def find(self, group: str, kind: str) -> HealthRow | None:
        key = (group, kind)
        if key in self.named:
            return self.named[key]
        if key not in self.asked:
            fitting = (row for row in self.patterns if _fits(row, group, kind))
            self.asked[key] = next(fitting, None)
        return self.asked[key]


def _fits(row: HealthRow, group: str, kind: str) -> bool:
    return fnmatchcase(group, row.group) and any(fnmatchcase(kind, one) for one in row.kinds)


def judge_cases(body: JsonObject, row: HealthRow) -> Verdict:
    """What a row says of an object."""
    seen = find_value(body, row.observed) if row.observed else None
    if isinstance(seen, int) and seen != get_int(body, "metadata", "generation", default=seen):
        return _lagging(seen)
    known = seen if isinstance(seen, int) else 0
    return _decide(body, row.cases, known) or _say(body, row.otherwise, known)


def judge_row(body: JsonObject, row: KindRow) -> Verdict:
    """What is known of an operator's kind: what its cases say, ready, or on its way."""
    seen = find_value(body, row.observed) if row.observed else None
    known = seen if isinstance(seen, int) else 0
    if isinstance(seen, int) and seen < get_int(body, "metadata", "generation"):
        return _lagging(seen)
    if decided := _decide(body, row.cases, known):
        return decided
    missing = tuple(check for check in row.ready_when if not check_passes(check, body))
    if not missing:
        return _say(
            body, HealthCase(health=Health.HEALTHY, when=row.ready_when, reason="Ready"), known
        )
    reason = "" if missing[0].condition else "NotReady"
    return _say(body, HealthCase(health=Health.PROGRESSING, when=missing[:1], reason=reason), known)


def _decide(body: JsonObject, cases: Iterable[HealthCase], seen: int) -> Verdict | None:
    """What the first case says that holds; None where none does."""
    for case in cases:
        if all_checks_pass(case.when, body):
            decided = _go_through(body, case, seen) if case.first else _say(body, case, seen)
            if decided is not None:
                return decided
    return None


def _go_through(body: JsonObject, table: HealthCase, seen: int) -> Verdict | None:
    """What a table says of the first item that one of its cases fits."""
    items = list(list_items(find_value(body, table.among)))
    if table.by:
        items.sort(key=lambda item: get_text(item, table.by, default=LAST))
    for item in items:
        view = {**body, "item": item}
        if table.among == CONDITIONS_PATH:
            view["status"] = {**get_mapping(body, "status"), "conditions": [item]}
        if decided := _decide(view, table.first, seen):
            return decided
    return None


def _lagging(seen: int) -> Verdict:
    sentence = "its controller has not seen the last change yet"
    return Verdict(Health.PROGRESSING, "GenerationNotObserved", sentence, observed_generation=seen)


def _say(body: JsonObject, case: HealthCase, seen: int) -> Verdict:
    health = case.health or Health.UNKNOWN
    named = next((check for check in case.when if check.condition), None)
    condition = _condition(body, named)
    told = find_value(body, case.tells) if case.tells else condition.get("message")
    sentence = case.says or (told if isinstance(told, str) else "") or _plain(body, case)
    reason = case.reason or get_text(condition, "reason") or _word(case, named)
    own = get_int(condition, "observedGeneration")
    speaks_of = seen or get_int(body, "status", "observedGeneration", default=own)
    said = Verdict(health, sanitize(reason), sanitize(sentence), case.final, speaks_of)
    return msgspec.structs.replace(said, is_starting=True) if case.starts else said


def _word(case: HealthCase, named: Check | None) -> str:
    """A reason where nobody gave one: `Ready`, `NotReady`, or the state itself."""
    if named is None:
        return (case.health or Health.UNKNOWN).value
    is_good = case.health is Health.HEALTHY or "True" in named.expected_values
    return named.condition if is_good else f"Not{named.condition}"


def _condition(body: JsonObject, named: Check | None) -> JsonObject:
    """The condition that a case asks for, or the item that a table is at."""
    where = f"{CONDITIONS_PATH}[type={named.condition}]" if named else "item"
    found = find_value(body, where)
    return found if isinstance(found, dict) else EMPTY_MAPPING


def _plain(body: JsonObject, case: HealthCase) -> str:
    """What was looked at, where nobody wrote a message: `status.phase is Bound`."""
    told = (one for one in case.when if not (one.absent or one.at_least))
    check = next(told, None)
    if check is None:
        return "it has not given a status yet"
    found = find_value(body, check.target_path)
    name = f"condition {check.condition}" if check.condition else check.target_path
    return f"{name} is not there" if found is None else f"{name} is {found}"


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rows: tuple[HealthRow, ...] = ()


def read_health_rows(content: bytes, name: str) -> tuple[HealthRow, ...]:
    """The rows of a file. Raises one ExceptionGroup with an error for each mistake."""
    files = decode(content, name, _File, noun="file of health rows", check=_flaws)
    return tuple(row for file in files for row in file.rows)


def _flaws(file: _File) -> Iterator[FileProblem]:
    for place, row in enumerate(file.rows):
        observed = check_errors([Check(path=row.observed)] if row.observed else ())
        for mistake in (*observed, *case_errors((*row.cases, row.otherwise))):
            yield ("rows", place), KnowledgeError("health.row", sanitize(mistake))

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
      otherwise: {health: Progressing, says: Waiting for certificate}

What a case says is `says`, or what stands at the path `tells`, or the message of the first
condition that it asks for. Its reason is `reason`, or that condition's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

import msgspec

from tidegate.documents.decoding import Flaw, decode
from tidegate.errors import OperatorsError, foreign
from tidegate.model.checks import all_hold, find, holds, parse_path
from tidegate.model.objects import Json
from tidegate.model.operators import Check, Row
from tidegate.model.reading import NOTHING, number, text
from tidegate.model.verdict import Health, Verdict


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A state, and when an object is in it."""

    health: Health
    when: tuple[Check, ...] = ()
    reason: str = ""
    says: str = ""
    tells: str = ""
    final: bool = False


class HealthRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How some kinds of one group are judged."""

    group: str
    kinds: tuple[str, ...]
    source: str
    cases: tuple[Case, ...]
    otherwise: Case = Case(health=Health.PROGRESSING)
    observed: str = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows, found by group and kind: by name, then by pattern, the first that fits."""

    named: dict[tuple[str, str], HealthRow]
    patterns: tuple[HealthRow, ...]

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
        found = self.named.get((group, kind))
        if found is not None:
            return found
        return next((row for row in self.patterns if _fits(row, group, kind)), None)


def _fits(row: HealthRow, group: str, kind: str) -> bool:
    return fnmatchcase(group, row.group) and any(fnmatchcase(kind, one) for one in row.kinds)


def judge_cases(body: dict[str, Json], row: HealthRow) -> Verdict:
    """What a row says of an object."""
    seen = find(body, row.observed) if row.observed else None
    if isinstance(seen, int) and seen != number(body, "metadata", "generation", default=seen):
        return _lagging(seen)
    case = next((one for one in row.cases if all_hold(one.when, body)), row.otherwise)
    return _say(body, case, seen if isinstance(seen, int) else 0)


def judge_row(body: dict[str, Json], row: Row) -> Verdict:
    """What is known of an operator's kind: ready when its row says so, else on its way."""
    seen = find(body, row.observed) if row.observed else None
    known = seen if isinstance(seen, int) else 0
    if isinstance(seen, int) and seen < number(body, "metadata", "generation"):
        return _lagging(seen)
    missing = tuple(check for check in row.ready_when if not holds(check, body))
    if not missing:
        return _say(body, Case(health=Health.HEALTHY, when=row.ready_when, reason="Ready"), known)
    reason = "" if missing[0].condition else "NotReady"
    return _say(body, Case(health=Health.PROGRESSING, when=missing[:1], reason=reason), known)


def _lagging(seen: int) -> Verdict:
    sentence = "its controller has not seen the last change yet"
    return Verdict(Health.PROGRESSING, "GenerationNotObserved", sentence, speaks_of=seen)


def _say(body: dict[str, Json], case: Case, seen: int) -> Verdict:
    named = next((check for check in case.when if check.condition), None)
    condition = _condition(body, named)
    told = find(body, case.tells) if case.tells else condition.get("message")
    sentence = case.says or (told if isinstance(told, str) else "") or _plain(body, case)
    reason = case.reason or text(condition, "reason") or _word(case, named)
    own = number(condition, "observedGeneration")
    speaks_of = seen or number(body, "status", "observedGeneration", default=own)
    return Verdict(case.health, foreign(reason), foreign(sentence), case.final, speaks_of)


def _word(case: Case, named: Check | None) -> str:
    """A reason where nobody gave one: `Ready`, `NotReady`, or the state itself."""
    if named is None:
        return case.health.value
    is_good = case.health is Health.HEALTHY or "True" in named.wanted
    return named.condition if is_good else f"Not{named.condition}"


def _condition(body: dict[str, Json], named: Check | None) -> dict[str, Json]:
    if named is None:
        return NOTHING
    found = find(body, f"status.conditions[type={named.condition}]")
    return found if isinstance(found, dict) else NOTHING


def _plain(body: dict[str, Json], case: Case) -> str:
    """What was looked at, where nobody wrote a message: `status.phase is Bound`."""
    check = next((one for one in case.when if not one.absent), None)
    if check is None:
        return "it has not told how it is yet"
    found = find(body, check.place)
    name = f"condition {check.condition}" if check.condition else check.place
    return f"{name} is not there" if found is None else f"{name} is {found}"


class _RowFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rows: tuple[HealthRow, ...] = ()


def read_health_rows(content: bytes, name: str) -> tuple[HealthRow, ...]:
    """The rows of a file. Raises one ExceptionGroup with an error for each mistake."""
    files = decode(content, name, _RowFile, noun="file of health rows", check=_flaws)
    return tuple(row for file in files for row in file.rows)


def _flaws(file: _RowFile) -> Iterator[Flaw]:
    for place, row in enumerate(file.rows):
        paths = [check.place for case in row.cases for check in case.when]
        paths += [case.tells for case in (*row.cases, row.otherwise) if case.tells]
        for path in (*paths, *([row.observed] if row.observed else ())):
            try:
                parse_path(path)
            except ValueError as error:
                yield ("rows", place), OperatorsError("health.row", foreign(str(error)))

"""Result of `verify` as a table and as a JSON document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from tidegate.model.display import count_noun, format_seconds
from tidegate.model.k8s.objects import ClusterRef, Json
from tidegate.model.plans.verification import OrderEvidence, OrderPair, PairState
from tidegate.model.rollouts.names import step_name, unit_name
from tidegate.model.rollouts.run import RunHead, RunStep
from tidegate.model.times import SECOND, Ms
from tidegate.model.views.verification import OrderVerification, UnitVerification
from tidegate.report.tables import table_lines, wrap_lines

SCHEMA = "tidegate.dev/verify/v1"
COLUMNS = ("WAVE", "UNIT", "STATUS", "BEGAN", "READY", "ORDER")
OPTIONAL_COLUMNS = ("STATUS", "BEGAN", "READY")
"""Columns that are dropped first on a narrow terminal."""
MAX_NAMED = 10


def verification_lines(
    verification: OrderVerification, max_width: int | None = None
) -> Iterator[str]:
    """Yield a table of units, then the problems, then a summary."""
    start = verification.head.at if verification.is_recorded else None
    yield from table_lines(
        COLUMNS,
        [_unit_cells(unit, start) for unit in verification.units],
        max_width,
        OPTIONAL_COLUMNS,
    )
    formatter = _PairFormatter(verification.head)
    for pair in verification.pairs_in_state(PairState.VIOLATED):
        yield from wrap_lines(f"broken: {formatter.describe(pair)}", max_width)
    for cluster_ref in verification.missing[:MAX_NAMED]:
        yield from wrap_lines(f"missing: {cluster_ref.ref} does not exist", max_width)
    unproven = verification.pairs_in_state(PairState.UNPROVEN)
    for pair in unproven[:MAX_NAMED]:
        yield from wrap_lines(f"unproven: {formatter.describe(pair)}", max_width)
    remaining = max(0, len(unproven) - MAX_NAMED) + max(0, len(verification.missing) - MAX_NAMED)
    if remaining:
        yield f"and {remaining:,} more; `-o json` prints all"
    yield from wrap_lines(_summary(verification), max_width)


def _unit_cells(unit: UnitVerification, start: Ms | None) -> tuple[str, ...]:
    synced = {None: "-", True: "Synced", False: "OutOfSync"}[unit.is_synced]
    return (
        "-" if unit.wave is None else str(unit.wave),
        str(unit.unit),
        synced,
        _time_text(unit.started_at, start),
        _time_text(unit.ready_at, start),
        str(unit.order or "-"),
    )


def _time_text(time: Ms | None, start: Ms | None) -> str:
    if time is None:
        return "-"
    return display_timestamp(time) if start is None else format_seconds(time - start)


def display_timestamp(time: Ms) -> str:
    """Format a time as RFC 3339, with milliseconds only where they are known."""
    fraction = f".{time % SECOND:03}" if time % SECOND else ""
    return f"{datetime.fromtimestamp(time // SECOND, UTC):%Y-%m-%dT%H:%M:%S}{fraction}Z"


class _PairFormatter:
    """Formats order pairs and their times."""

    def __init__(self, head: RunHead) -> None:
        self._steps = {step.id: step for step in head.steps}
        self._start = head.at

    def describe(self, pair: OrderPair) -> str:
        """Return the pair with both times."""
        first, second = pair.before_evidence, pair.after_evidence
        if pair.recorded is PairState.VIOLATED:
            started = format_seconds((pair.started_at or self._start) - self._start)
            passed = pair.passed_at
            result = (
                "did not pass"
                if passed is None
                else f"passed at {self._seconds_from_start(passed)}"
            )
            return (
                f"{self._step_title(pair.after)} started at {started}, but"
                f" {self._step_title(pair.before)} {result}"
            )
        if first is None or second is None:
            return (
                f"{self._step_title(pair.after)} after {self._step_title(pair.before)}:"
                f" {pair.explanation}"
            )
        message = (
            f"{self._describe_evidence(second)}, but it depends on {self._describe_evidence(first)}"
        )
        return f"{message}: {pair.explanation}" if pair.explanation else message

    def _seconds_from_start(self, time: Ms) -> str:
        return format_seconds(time - self._start)

    def _describe_evidence(self, evidence: OrderEvidence) -> str:
        writer = f" by {evidence.created_by}" if evidence.created_by else ""
        return (
            f"{evidence.object.ref} ({self._step_title(evidence.step)}), {evidence.event} at"
            f" {display_timestamp(evidence.at)}{writer}"
        )

    def _step_title(self, step_id: str) -> str:
        step = self._steps[step_id]
        return f"{unit_name(step.unit, step.cluster)} {step_name(step)}"


def _summary(verification: OrderVerification) -> str:
    if not verification.pairs:
        return "no order to verify: no step waits for another"
    result = {
        "broken": "the order was not kept",
        "missing": "objects are missing",
        "unproven": "no violation found",
        "kept": "the order was kept",
    }[verification.verdict]
    parts = [count_noun(len(verification.pairs), "pair")]
    if verification.is_recorded:
        parts.append(f"run record: {_state_counts(pair.recorded for pair in verification.pairs)}")
    if any(pair.observed is not None for pair in verification.pairs):
        parts.append(f"cluster: {_state_counts(pair.observed for pair in verification.pairs)}")
    return f"{result}: {'; '.join(parts)}"


def _state_counts(states: Iterator[PairState | None]) -> str:
    counts = Counter(states)
    return ", ".join(f"{counts[state]:,} {state}" for state in PairState if counts[state])


def verification_document(verification: OrderVerification) -> dict[str, Json]:
    """Return the result as a JSON document."""
    formatter, steps = (
        _PairFormatter(verification.head),
        {step.id: step for step in verification.head.steps},
    )
    return {
        "schema": SCHEMA,
        "verdict": verification.verdict,
        "recorded": verification.is_recorded,
        "target": [*verification.head.target],
        "units": [_unit_document(unit) for unit in verification.units],
        "pairs": [_pair_document(pair, steps, formatter) for pair in verification.pairs],
        "missing": [_object_document(cluster_ref) for cluster_ref in verification.missing],
    }


def _unit_document(unit: UnitVerification) -> Json:
    synced = {None: None, True: "Synced", False: "OutOfSync"}[unit.is_synced]
    return {
        "unit": str(unit.unit),
        "wave": unit.wave,
        "sync": synced,
        "began": display_timestamp(unit.started_at) if unit.started_at is not None else None,
        "ready": display_timestamp(unit.ready_at) if unit.ready_at is not None else None,
        "order": str(unit.order) if unit.order else None,
    }


def _pair_document(pair: OrderPair, steps: dict[str, RunStep], formatter: _PairFormatter) -> Json:
    return {
        "state": str(pair.state),
        "because": str(pair.reason),
        "record": str(pair.recorded) if pair.recorded else None,
        "cluster": str(pair.observed) if pair.observed else None,
        "before": _side_document(steps[pair.before], pair.passed_at, pair.before_evidence),
        "after": _side_document(steps[pair.after], pair.started_at, pair.after_evidence),
        "message": (
            formatter.describe(pair) if pair.explanation or pair.state is PairState.VIOLATED else ""
        ),
    }


def _side_document(step: RunStep, time: Ms | None, evidence: OrderEvidence | None) -> Json:
    """Return one side of a pair.

    `at` is the time in the run record, `witness` the evidence in the cluster.
    """
    evidence_document: Json = None
    if evidence is not None:
        fields = {
            "what": evidence.event,
            "at": display_timestamp(evidence.at),
            "by": evidence.created_by or None,
        }
        evidence_document = {**fields, **_object_document(evidence.object)}
    return {
        "step": step.id,
        "unit": str(step.unit),
        "at": display_timestamp(time) if time is not None else None,
        "witness": evidence_document,
    }


def _object_document(cluster_ref: ClusterRef) -> dict[str, Json]:
    kind = cluster_ref.ref.kind
    return {
        "cluster": cluster_ref.cluster,
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "namespace": cluster_ref.ref.namespace,
        "name": cluster_ref.ref.name,
    }

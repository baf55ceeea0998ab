"""Whether an order was kept, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Spot
from tidegate.model.proof import OrderPair, PairState, Witness
from tidegate.model.run import RunHead, RunStep
from tidegate.model.unit import UnitId
from tidegate.report.rollout.names import count, name_step, name_unit, seconds
from tidegate.report.tables import table_lines, told_lines

SCHEMA = "tidegate.dev/verify/v1"
HEADS = ("WAVE", "UNIT", "STATUS", "BEGAN", "READY", "ORDER")
SPARED = ("STATUS", "BEGAN", "READY")
"""Columns that are left out first where there is little room."""
MOST_NAMED = 10


class UnitProof(msgspec.Struct, frozen=True):
    """A unit: its wave, whether it is as Git wants it, when it began and was ready, its order.

    What is not known is None; the order of one that waits for nobody is.
    """

    unit: UnitId
    wave: int | None
    is_synced: bool | None
    began: Ms | None
    ready: Ms | None
    order: PairState | None


class OrderProof(msgspec.Struct, frozen=True):
    """All that is known of an order. `missing`: objects that should be there and are not."""

    head: RunHead
    pairs: tuple[OrderPair, ...]
    units: tuple[UnitProof, ...]
    missing: tuple[Spot, ...] = ()
    is_recorded: bool = False

    def having(self, state: PairState) -> list[OrderPair]:
        return [pair for pair in self.pairs if pair.state is state]

    @property
    def is_broken(self) -> bool:
        return bool(self.having(PairState.BROKEN))

    @property
    def verdict(self) -> str:
        if self.is_broken:
            return "broken"
        if self.missing:
            return "missing"
        return "unproven" if self.having(PairState.UNPROVEN) else "kept"


def proof_lines(proof: OrderProof, room: int | None = None) -> Iterator[str]:
    """A table of units, then what is not as it should be, then all in one sentence."""
    start = proof.head.at if proof.is_recorded else None
    yield from table_lines(HEADS, [_cells(one, start) for one in proof.units], room, SPARED)
    names = _PairNames(proof.head)
    for pair in proof.having(PairState.BROKEN):
        yield from told_lines(f"broken: {names.tell(pair)}", room)
    for spot in proof.missing[:MOST_NAMED]:
        yield from told_lines(f"missing: {spot.ref} is not there", room)
    unproven = proof.having(PairState.UNPROVEN)
    for pair in unproven[:MOST_NAMED]:
        yield from told_lines(f"unproven: {names.tell(pair)}", room)
    more = max(0, len(unproven) - MOST_NAMED) + max(0, len(proof.missing) - MOST_NAMED)
    if more:
        yield f"and {more:,} more: `-o json` tells all"
    yield from told_lines(_sum_up(proof), room)


def _cells(one: UnitProof, start: Ms | None) -> tuple[str, ...]:
    synced = {None: "-", True: "Synced", False: "OutOfSync"}[one.is_synced]
    return (
        "-" if one.wave is None else str(one.wave),
        str(one.unit),
        synced,
        _when(one.began, start),
        _when(one.ready, start),
        str(one.order or "-"),
    )


def _when(moment: Ms | None, start: Ms | None) -> str:
    if moment is None:
        return "-"
    return stamped(moment) if start is None else seconds(moment - start)


def stamped(moment: Ms) -> str:
    """A moment as clusters write it; parts of a second only where they are known."""
    parts = f".{moment % SECOND:03}" if moment % SECOND else ""
    return f"{datetime.fromtimestamp(moment // SECOND, UTC):%Y-%m-%dT%H:%M:%S}{parts}Z"


class _PairNames:
    """What pairs and their moments are called."""

    def __init__(self, head: RunHead) -> None:
        self._steps = {step.id: step for step in head.steps}
        self._start = head.at

    def tell(self, pair: OrderPair) -> str:
        """The pair, and both moments."""
        first, then = pair.first, pair.then
        if pair.recorded is PairState.BROKEN:
            begun = seconds((pair.begun or self._start) - self._start)
            passed = pair.passed
            ended = "did not pass" if passed is None else f"passed at {self._offset(passed)}"
            return (
                f"{self._step(pair.after)} began at {begun}, and {self._step(pair.before)} {ended}"
            )
        if first is None or then is None:
            return f"{self._step(pair.after)} behind {self._step(pair.before)}: {pair.why}"
        told = f"{self._witness(then)}, and {self._witness(first)}, which it waits for"
        return f"{told}: {pair.why}" if pair.why else told

    def _offset(self, moment: Ms) -> str:
        return seconds(moment - self._start)

    def _witness(self, one: Witness) -> str:
        who = f" by {one.made_by}" if one.made_by else ""
        return f"{one.spot.ref} ({self._step(one.step)}) was {one.what} at {stamped(one.at)}{who}"

    def _step(self, name: str) -> str:
        step = self._steps[name]
        return f"{name_unit(step.unit, step.cluster)} {name_step(step)}"


def _sum_up(proof: OrderProof) -> str:
    if not proof.pairs:
        return "there is nothing to prove: no step waits for another"
    told = {
        "broken": "the order was not kept",
        "missing": "not all of it is there",
        "unproven": "nothing speaks against the order",
        "kept": "the order was kept",
    }[proof.verdict]
    parts = [count(len(proof.pairs), "pair")]
    if proof.is_recorded:
        parts.append(f"by the record {_counts(pair.recorded for pair in proof.pairs)}")
    if any(pair.seen is not None for pair in proof.pairs):
        parts.append(f"by the cluster {_counts(pair.seen for pair in proof.pairs)}")
    return f"{told}: {'; '.join(parts)}"


def _counts(states: Iterator[PairState | None]) -> str:
    found = Counter(states)
    return ", ".join(f"{found[one]:,} {one}" for one in PairState if found[one])


def proof_document(proof: OrderProof) -> dict[str, Json]:
    """One document for programs."""
    names, steps = _PairNames(proof.head), {step.id: step for step in proof.head.steps}
    return {
        "schema": SCHEMA,
        "verdict": proof.verdict,
        "recorded": proof.is_recorded,
        "target": [*proof.head.target],
        "units": [_unit(one) for one in proof.units],
        "pairs": [_pair(one, steps, names) for one in proof.pairs],
        "missing": [_object(one) for one in proof.missing],
    }


def _unit(one: UnitProof) -> Json:
    synced = {None: None, True: "Synced", False: "OutOfSync"}[one.is_synced]
    return {
        "unit": str(one.unit),
        "wave": one.wave,
        "sync": synced,
        "began": stamped(one.began) if one.began is not None else None,
        "ready": stamped(one.ready) if one.ready is not None else None,
        "order": str(one.order) if one.order else None,
    }


def _pair(pair: OrderPair, steps: dict[str, RunStep], names: _PairNames) -> Json:
    return {
        "state": str(pair.state),
        "because": str(pair.because),
        "record": str(pair.recorded) if pair.recorded else None,
        "cluster": str(pair.seen) if pair.seen else None,
        "before": _side(steps[pair.before], pair.passed, pair.first),
        "after": _side(steps[pair.after], pair.begun, pair.then),
        "sentence": names.tell(pair) if pair.why or pair.state is PairState.BROKEN else "",
    }


def _side(step: RunStep, moment: Ms | None, witness: Witness | None) -> Json:
    """A step; `at` is the record's moment of it, `witness` what the cluster tells."""
    seen: Json = None
    if witness is not None:
        told = {"what": witness.what, "at": stamped(witness.at), "by": witness.made_by or None}
        seen = {**told, **_object(witness.spot)}
    return {
        "step": step.id,
        "unit": str(step.unit),
        "at": stamped(moment) if moment is not None else None,
        "witness": seen,
    }


def _object(spot: Spot) -> dict[str, Json]:
    kind = spot.ref.kind
    return {
        "cluster": spot.cluster,
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "namespace": spot.ref.namespace,
        "name": spot.ref.name,
    }

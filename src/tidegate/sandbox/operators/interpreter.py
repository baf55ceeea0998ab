"""The one operator that plays all rows.

It looks at a custom resource and at the workload that serves its kind. Without that workload it
does nothing. While something is needed, it writes what the real operator would say. Else it goes
from stage to stage, each in its time: it makes the stage's objects and writes the stage's status.
A profile may say that stages take another time.

How far an object has come is read from its status, and when the next stage is due from the times
that servers keep: nothing is remembered between two looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from tidegate.knowledge.catalogue import KnownRows
from tidegate.knowledge.references import Needed, needs_of
from tidegate.knowledge.templates import NOW, partner_of, render, scope_of, shows
from tidegate.model.checks import all_hold
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Ref
from tidegate.model.operators import Pace, Row, Stage
from tidegate.model.reading import mapping
from tidegate.sandbox.controllers.reaction import At, Controller, Looking, Visible
from tidegate.sandbox.controllers.writes import Voice, set_status
from tidegate.sandbox.operators import presence
from tidegate.sandbox.operators.making import MAKER, NAMED, make, played
from tidegate.sandbox.operators.memory import Memory
from tidegate.sandbox.operators.presence import available_since, touched
from tidegate.sandbox.physics.profile import StageRule
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body, Stored, Transition
from tidegate.world.facts import Missing, NotServed, is_refusal

RETRY = Ms(10 * SECOND)
VOICE = Voice(MAKER)


def status_of(template: dict[str, object], scope: Body) -> Json:
    """The status that a stage writes; its conditions get what most kinds demand of them."""
    return _with_open_times(render(template, scope))


def _with_open_times(value: Json) -> Json:
    if isinstance(value, list):
        return [_with_open_times(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {key: _with_open_times(inner) for key, inner in value.items()}
    if "type" in made and "status" in made:
        made.setdefault("lastTransitionTime", NOW)
        if "reason" in made:
            made.setdefault("message", "")
    return made


def with_times(wanted: Json, actual: Json, now: Ms) -> Json:
    """A status to write: old times stay, except of a condition whose status is another."""
    if wanted == NOW:
        return actual if isinstance(actual, str) and actual else timestamp(now)
    if isinstance(wanted, dict):
        known: Body = actual if isinstance(actual, dict) else {}
        if "type" in wanted and wanted.get("status") != known.get("status"):
            known = {}
        return {key: with_times(value, known.get(key), now) for key, value in wanted.items()}
    if isinstance(wanted, list):
        old: list[Json] = actual if isinstance(actual, list) else []
        padded = [*old, *([None] * len(wanted))]
        return [
            with_times(one, partner_of(one, place, padded), now) for place, one in enumerate(wanted)
        ]
    return wanted


def paced(rows: Iterable[Row], rules: Sequence[StageRule], factor: float = 1) -> tuple[Row, ...]:
    """These rows, each stage `factor` times as long, with the rules of a profile behind that."""
    return tuple(_paced(row, rules, factor) for row in rows)


def _paced(row: Row, rules: Sequence[StageRule], factor: float) -> Row:
    about = [rule for rule in rules if rule.when.is_about(row)]
    if not about and factor == 1:
        return row
    return msgspec.structs.replace(
        row, stages=tuple(_paced_stage(stage, about, factor) for stage in row.stages)
    )


def _paced_stage(stage: Stage, rules: Sequence[StageRule], factor: float) -> Stage:
    paces = (
        Pace(
            after=rule.after,
            group=rule.when.group,
            kind=rule.when.kind,
            namespace=rule.when.namespace,
            name=rule.when.name,
        )
        for rule in rules
        if fnmatchcase(stage.name, rule.when.stage)
    )
    after = Ms(int(stage.after * factor + 0.5))
    return msgspec.structs.replace(stage, after=after, paces=(*stage.paces, *paces))


def operators(rows: Iterable[Row]) -> Controller:
    """The operators of these rows as one controller; of two rows for a kind the last counts."""
    player = _RowPlayer(KnownRows.of(rows))
    return Controller("operators", player.look, player.concerns)


class _RowCase(NamedTuple):
    """An object as one look finds it."""

    stored: Stored
    row: Row
    scope: Body
    needed: tuple[Needed, ...]
    since: Ms
    """From when on it and all it needs have been as they are."""
    opens: bool = False
    """It leans on what is only named: nobody knows the keys of what it makes."""


class _RowPlayer:
    """Plays these rows, with a memory for each cluster that it lives in."""

    def __init__(self, catalogue: KnownRows) -> None:
        self.catalogue = catalogue
        self._memories: WeakKeyDictionary[Visible, Memory] = WeakKeyDictionary()

    def _memory_of(self, view: Visible) -> Memory:
        found = self._memories.get(view)
        if found is None:
            found = self._memories[view] = Memory(self.catalogue)
        return found

    def concerns(self, view: Visible, event: Transition) -> Iterator[Ref]:
        return self._memory_of(view).concerned(view, event)

    def look(self, view: Visible, ref: Ref, now: Ms) -> Looking:
        """One look at one custom resource."""
        stored = view.get(ref)
        row = presence.row_for(self.catalogue, ref.kind)
        if stored is None or stored.is_deleting or row is None:
            return
        server = self._memory_of(view).server_of(view, ref.kind)
        if server is None and not row.served_by.outside:
            return
        case = self._case(view, stored, row)
        last = len(row.stages) - 1
        reached = _reached(case)
        unmet = self._unmet(view, case.needed, is_ready=reached == last)
        if unmet is not None:
            yield from _wait(case, unmet, now)
        elif reached == last:
            yield from make(view, stored, played(row, case.scope, opens=case.opens))
        else:
            since = max(available_since(server), case.since) if server else case.since
            yield from _go_on(view, case, reached + 1, since=since, now=now)

    def _case(self, view: Visible, stored: Stored, row: Row) -> _RowCase:
        kind = stored.ref.kind
        scope = scope_of(stored.body, kind)
        needed = tuple(needs_of(row, stored.body, kind))
        since, opens = touched(stored), False
        for one in needed:
            found = presence.find_needed(self.catalogue, view, one)
            if found is not None:
                since = max(since, touched(found))
                scope |= {one.need.alias: found.body} if one.need.alias else {}
                opens = opens or NAMED in mapping(found.metadata, "annotations")
        return _RowCase(stored, row, scope, needed, since, opens)

    def _unmet(self, view: Visible, needed: tuple[Needed, ...], *, is_ready: bool) -> Needed | None:
        asked = (one for one in needed if one.need.lasting or not is_ready)
        return next((one for one in asked if not presence.is_met(self.catalogue, view, one)), None)


def _go_on(view: Visible, case: _RowCase, place: int, *, since: Ms, now: Ms) -> Looking:
    """To the next stage, if it is time."""
    stage = case.row.stages[place]
    if not all_hold(stage.when, case.scope):
        return
    due = Ms(since + stage.span_for(case.stored.ref))
    if now < due:
        yield At(due)
        return
    products = played(case.row, case.scope, upto=place, opens=case.opens)
    refused = yield from make(view, case.stored, products)
    if refused:
        yield At(Ms(now + RETRY))
    elif stage.writes:
        yield from _write(case.stored, status_of(stage.writes, case.scope), now)


def _reached(case: _RowCase) -> int:
    """The last stage that the status shows; -1 where it shows none."""
    status = case.stored.body.get("status")
    for place in range(len(case.row.stages) - 1, -1, -1):
        if shows(status, status_of(case.row.stages[place].writes, case.scope)):
            return place
    return -1


def _wait(case: _RowCase, unmet: Needed, now: Ms) -> Looking:
    """Say what the operator would say while something is not there."""
    wanted = status_of(unmet.need.unmet, {**case.scope, "need": unmet.scope()})
    if wanted and not shows(case.stored.body.get("status"), wanted):
        yield from _write(case.stored, wanted, now)


def _write(stored: Stored, wanted: Json, now: Ms) -> Looking:
    """The whole status; on the object itself where its kind has no status of its own."""
    status = with_times(wanted, stored.body.get("status"), now)
    outcome = yield set_status(stored, status, manager=MAKER)
    if isinstance(outcome, Missing | NotServed):
        outcome = yield set_status(stored, status, subresource="", manager=MAKER)
    if outcome is not None and is_refusal(outcome):
        yield VOICE.warn(stored, "StatusRefused", outcome.message, now)

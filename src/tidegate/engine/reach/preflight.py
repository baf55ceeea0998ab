"""Would the cluster take what is to be written? Told before the first write, as far as can be.

Texts are checked here, by the schemas of their kinds. The server is asked, with a dry run, where
only it can tell: a webhook or a policy has a word, a schema asks for more than is checked here,
something is replaced as a whole, or something looks wrong. What comes with the plan itself (a CRD,
a namespace, a webhook) cannot be asked about before it is there: until then what is wrong by the
text counts, and the step asks.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.engine.means import Means
from tidegate.engine.reach.checking import WRITTEN, Examined
from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.reach.surroundings import NEVER_WRITTEN, Guards, Surroundings
from tidegate.engine.reach.writing import read_body, told_causes, told_parts, trouble_of, wish
from tidegate.engine.vocabulary import Stand, Trouble
from tidegate.errors import foreign
from tidegate.model.objects import Ref, Spot
from tidegate.model.plan import PlannedUnit, Step
from tidegate.model.unit import UnitId
from tidegate.schema.fit import Misfit
from tidegate.world import facts

Fault: TypeAlias = tuple[Step, Ref, Trouble]
FITTING = Misfit()
SERVER_ERROR = 500
UNKNOWABLE = (
    facts.Missing | facts.NotServed | facts.Exists | facts.Conflict | facts.Lost | facts.Throttled
)
DENIED = "denied"
NOT_THERE = ("not found", "was found")


class Preflight(StrEnum):
    """Which objects a server is asked about before the first write."""

    LOCAL = "local"
    """Those of which only it can tell."""
    SERVER = "server"
    """All that would be written."""


class _Candidate(NamedTuple):
    """One object that would be written, and what is to be said of it.

    `doubtful`: its text alone does not tell. `askable`: the server knows all that it must to tell.
    `mendable`: somebody may change the object on its way. `awaits`: what comes with the plan and
    must serve before all can be told.
    """

    examined: Examined
    misfit: Misfit
    doubtful: bool
    askable: bool
    mendable: bool
    awaits: tuple[Spot, ...]

    @property
    def asked(self) -> bool:
        return self.doubtful and self.askable


class _Left(NamedTuple):
    examined: Examined
    awaits: set[Spot]


@dataclass(slots=True)
class Inspector:
    """Looks for what is wrong with objects that would be written."""

    means: Means
    units: dict[UnitId, PlannedUnit]
    surroundings: Surroundings
    depth: Preflight = Preflight.LOCAL
    _sound: set[tuple[Spot, str]] = field(default_factory=set)
    """Objects, by their text, that need not be looked at again."""
    _left: dict[Spot, list[_Left]] = field(default_factory=dict)
    """Objects of which more is known when another one serves."""

    def faults(self, examined: Iterable[Examined], *, late: bool) -> Errand[list[Fault]]:
        """What is wrong with these.

        Before a rollout, what cannot be known yet is left for later; later it is a fault.
        """
        wanted = [one for one in examined if is_written(one)]
        rewritten = frozenset() if late else frozenset(how.spot for *_, how in wanted)
        found = [_fixed(one) for one in wanted if _is_fixed(one)]
        return found + (yield from self._look_at(wanted, rewritten, late=late))

    def foresee(self, spot: Spot, begun: Container[str]) -> Errand[list[Fault]]:
        """What is wrong with objects that waited for this one alone, in steps not yet begun."""
        ready: list[Examined] = []
        for left in self._left.pop(spot, ()):
            left.awaits.discard(spot)
            if not left.awaits and left.examined[0].id not in begun:
                ready.append(left.examined)
        return (yield from self._look_at(ready, frozenset(), late=False))

    def _look_at(
        self, wanted: list[Examined], rewritten: frozenset[Spot], *, late: bool
    ) -> Errand[list[Fault]]:
        unsure = [one for one in wanted if self._is_unsure(one)]
        if not unsure:
            return []
        yield from self.surroundings.learn((how.spot, item) for _, item, how in unsure)
        return (yield from self._ask(self._cases(unsure, rewritten), late=late))

    def _is_unsure(self, examined: Examined) -> bool:
        _, item, standing = examined
        is_sound = (standing.spot, item.digest) in self._sound
        return item.handling.checks and not is_sound and not _is_fixed(examined)

    def _ask(self, cases: list[_Candidate], *, late: bool) -> Errand[list[Fault]]:
        outcomes = yield tuple(self._dry_run(case) for case in cases if case.asked)
        answers = iter(outcomes)
        found: list[Fault] = []
        for case in cases:
            step, item, standing = case.examined
            outcome = next(answers) if case.asked else None
            trouble = _trouble(case, outcome, late=late)
            if trouble is not None:
                found.append((step, item.ref, trouble))
            elif _is_settled(case, outcome):
                self._sound.add((standing.spot, item.digest))
            elif not late:
                self._leave(case)
        return found

    def _leave(self, case: _Candidate) -> None:
        left = _Left(case.examined, set(case.awaits))
        for spot in case.awaits:
            self._left.setdefault(spot, []).append(left)

    def _dry_run(self, case: _Candidate) -> Ask:
        """Where something looks wrong, fields that would only be dropped are asked about too."""
        step, item, standing = case.examined
        unit = self.units[step.unit]
        live = self.surroundings.outlook.lives.get(standing.spot)
        draft = self.means.draft(unit, item, None if live is None else read_body(live))
        write = wish(item, unit, draft, live, dry_run=True)
        strict = bool(case.misfit.unreadable)
        asked = msgspec.structs.replace(write, strict=strict)
        return Ask(step.cluster, asked, identity=unit.policy.identity)

    def _cases(self, unsure: list[Examined], rewritten: frozenset[Spot]) -> list[_Candidate]:
        clusters = dict.fromkeys(step.cluster for step, *_ in unsure)
        guards = {one: self.surroundings.guards(one, rewritten) for one in clusters}
        return [self._case(one, guards[one[0].cluster], rewritten) for one in unsure]

    def _case(
        self, examined: Examined, guards: tuple[Guards, Guards], rewritten: frozenset[Spot]
    ) -> _Candidate:
        _, item, standing = examined
        around = self.surroundings
        definition = around.definition_of(standing.spot)
        misfit = self.means.misfit(item, definition.text if definition else b"")
        now, later = (around.takers(one, examined[1], standing) for one in guards)
        awaits = [spot for guard in later for spot in guard.spots if spot in rewritten]
        served = around.outlook.serves(standing.spot)
        if definition is not None and definition.spot in rewritten:
            awaits, served = [definition.spot, *awaits], False
        exists = standing.stand is not Stand.OBSOLETE
        return _Candidate(
            examined,
            misfit=misfit or FITTING,
            doubtful=self.depth is Preflight.SERVER
            or misfit != FITTING
            or standing.replaces
            or bool(now),
            askable=served and exists and all(guard.harmless for guard in now),
            mendable=any(guard.mutates for guard in (*now, *later)),
            awaits=tuple(dict.fromkeys(awaits)),
        )


def is_written(examined: Examined) -> bool:
    _, item, standing = examined
    return standing.stand in WRITTEN and item.deed not in NEVER_WRITTEN


def _is_fixed(examined: Examined) -> bool:
    return examined[2].stand is Stand.IMMUTABLE


def _fixed(examined: Examined) -> Fault:
    step, item, standing = examined
    fields = ", ".join(f"`{name}`" for name in standing.fixed) or "a field that differs"
    sentence = f"{fields} cannot be changed while it lives"
    told = "cannot be changed while it lives"
    parts = tuple((name, foreign(f"`{name}` {told}")) for name in standing.fixed)
    return step, item.ref, Trouble("Immutable", foreign(sentence), final=True, parts=parts)


def _is_settled(case: _Candidate, outcome: facts.Outcome | None) -> bool:
    told = not case.doubtful if outcome is None else not facts.is_refusal(outcome)
    return told and not case.awaits


def _trouble(case: _Candidate, outcome: facts.Outcome | None, *, late: bool) -> Trouble | None:
    """What the server says, or what the text says where it cannot be asked."""
    _, item, _ = case.examined
    invalid = () if case.mendable else case.misfit.invalid
    if outcome is None:
        causes = case.misfit.unreadable or invalid
    elif not facts.is_refusal(outcome):
        return None
    elif late or not is_unknowable(outcome):
        return trouble_of(outcome, item.ref)
    else:
        causes = invalid if isinstance(outcome, facts.Missing) else ()
    if not causes:
        return None
    parts = told_parts(causes, item.ref)
    return Trouble("Invalid", told_causes(causes, item.ref), final=True, parts=parts)


def is_unknowable(outcome: facts.Refusal) -> bool:
    """Whether a dry run says nothing yet: what it needs may come with the plan itself."""
    match outcome:
        case facts.Failed():
            return outcome.status >= SERVER_ERROR
        case facts.Forbidden():
            # A pod is refused while its account, its priority or its runtime is not there.
            return outcome.message.endswith(NOT_THERE) and DENIED not in outcome.message
        case _:
            return isinstance(outcome, UNKNOWABLE)

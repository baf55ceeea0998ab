"""Would the cluster take what is to be written? Told before the first write, as far as can be.

Texts are checked here, by the schemas of their kinds. The server is asked, with a dry run, where
only it can tell: a webhook or a policy has a word, a schema asks for more than is checked here,
something is replaced as a whole, or something looks wrong; by default also where the rules here
leave something open. Objects of which the same is open get the same answer: one of them is asked
about. What comes with the plan itself (a CRD, a webhook) cannot be asked about before it is there:
until then what is wrong by the text counts, and the step asks.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from enum import StrEnum
from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.engine.means import Means
from tidegate.engine.reach.checking import WRITTEN, Examined
from tidegate.engine.reach.dry_runs import (
    ELSEWHERE,
    POD,
    Candidate,
    Likeness,
    as_new,
    is_settled,
    is_taken,
    trouble_with,
)
from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.reach.surroundings import NEVER_WRITTEN, Guards, Surroundings
from tidegate.engine.reach.writing import read_body, wish
from tidegate.engine.vocabulary import Stand, Trouble
from tidegate.errors import foreign
from tidegate.model.objects import Ref, Spot
from tidegate.model.plan import PlannedUnit, Step
from tidegate.model.unit import UnitId
from tidegate.schema.fit import Misfit
from tidegate.world import facts

Fault: TypeAlias = tuple[Step, Ref, Trouble]
FITTING = Misfit()


class Preflight(StrEnum):
    """Which objects a server is asked about before the first write."""

    LOCAL = "local"
    """Those of which only it can tell, by who has a word in them and by what CRDs ask for."""
    AUTO = "auto"
    """These, and those of which rules here leave something open."""
    SERVER = "server"
    """All that would be written."""


class _Left(NamedTuple):
    examined: Examined
    awaits: set[Spot]


class Inspector(msgspec.Struct):
    """Looks for what is wrong with objects that would be written."""

    means: Means
    units: dict[UnitId, PlannedUnit]
    surroundings: Surroundings
    depth: Preflight = Preflight.LOCAL
    _sound: set[tuple[Spot, str]] = msgspec.field(default_factory=set)
    """Objects, by their text, that need not be looked at again."""
    _left: dict[Spot, list[_Left]] = msgspec.field(default_factory=dict)
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

    def _ask(self, cases: list[Candidate], *, late: bool) -> Errand[list[Fault]]:
        answers = yield from self._answers(cases)
        found: list[Fault] = []
        for place, case in enumerate(cases):
            step, item, standing = case.examined
            outcome = answers.get(place)
            trouble = trouble_with(case, outcome, late=late)
            if trouble is not None:
                found.append((step, item.ref, trouble))
            elif is_settled(case, outcome):
                self._sound.add((standing.spot, item.digest))
            elif not late:
                self._leave(case)
        return found

    def _answers(self, cases: list[Candidate]) -> Errand[dict[int, facts.Outcome]]:
        """What the server says of those that it is asked about, by their places.

        One speaks for all that are like it, unless it is refused: then each speaks for itself.
        """
        groups: dict[Likeness, list[int]] = {}
        for place, case in enumerate(cases):
            if case.asked:
                groups.setdefault(case.alike or (place,), []).append(place)
        answers = yield from self._ask_about(cases, [first for first, *_ in groups.values()])
        others: list[int] = []
        for first, *rest in groups.values():
            if is_taken(cases[first], answers[first]):
                answers |= dict.fromkeys(rest, answers[first])
            else:
                others += rest
        return answers | (yield from self._ask_about(cases, others))

    def _ask_about(
        self, cases: list[Candidate], places: list[int]
    ) -> Errand[dict[int, facts.Outcome]]:
        outcomes = yield tuple(self._dry_run(cases[place]) for place in places)
        return dict(zip(places, outcomes, strict=True))

    def _leave(self, case: Candidate) -> None:
        left = _Left(case.examined, set(case.awaits))
        for spot in case.awaits:
            self._left.setdefault(spot, []).append(left)

    def _dry_run(self, case: Candidate) -> Ask:
        """Where something looks wrong, fields that would only be dropped are asked about too."""
        step, item, standing = case.examined
        unit = self.units[step.unit]
        live = self.surroundings.outlook.lives.get(standing.spot)
        draft = self.means.draft(unit, item, None if live is None else read_body(live))
        write = wish(item, unit, draft, live, dry_run=True)
        if case.tried_in is None:
            asked = msgspec.structs.replace(write, strict=bool(case.misfit.unreadable))
        else:
            asked = as_new(write, case.tried_in)
        return Ask(step.cluster, asked, identity=unit.policy.identity)

    def _cases(self, unsure: list[Examined], rewritten: frozenset[Spot]) -> list[Candidate]:
        clusters = dict.fromkeys(step.cluster for step, *_ in unsure)
        guards = {one: self.surroundings.guards(one, rewritten) for one in clusters}
        return [self._case(one, guards[one[0].cluster], rewritten) for one in unsure]

    def _case(
        self, examined: Examined, guards: tuple[Guards, Guards], rewritten: frozenset[Spot]
    ) -> Candidate:
        _, item, standing = examined
        around = self.surroundings
        definition = around.definition_of(standing.spot)
        misfit = self.means.misfit(item, definition.text if definition else b"")
        now, later = (around.takers(one, item, standing) for one in guards)
        awaits = [spot for guard in later for spot in guard.spots if spot in rewritten]
        served = around.outlook.serves(standing.spot)
        if definition is not None and definition.spot in rewritten:
            awaits, served = [definition.spot, *awaits], False
        mendable = any(guard.mutates for guard in (*now, *later))
        alone = self.depth is Preflight.SERVER or misfit != FITTING or standing.replaces or now
        left = self._left_open(examined) if self.depth is Preflight.AUTO and not alone else b""
        tried_in = self._tried_in(examined, misfit or FITTING)
        case = Candidate(
            examined,
            misfit=misfit or FITTING,
            doubtful=bool(alone or left),
            askable=served and all(guard.harmless for guard in now),
            tried_in=tried_in,
            mendable=mendable,
            guarded=bool(now),
            awaits=tuple(dict.fromkeys(awaits)),
            alike=self._likeness(examined, left) if left else (),
        )
        if case.moved:
            return case._replace(askable=served and self._is_free(guards[0], case))
        return case

    def _left_open(self, examined: Examined) -> bytes:
        """What only the server can tell of an object that looks right."""
        _, item, standing = examined
        live = self.surroundings.outlook.lives.get(standing.spot)
        if live is None or standing.stand is Stand.OBSOLETE:
            return self.means.left_open(item, None)
        return self.means.left_open(item, read_body(live))

    def _likeness(self, examined: Examined, left: bytes) -> Likeness:
        """Namespaces have a word in nothing but pods."""
        step, item, _ = examined
        kind = item.ref.kind
        place = item.ref.namespace if kind == POD else ""
        return (step.cluster, kind, place, self.units[step.unit].policy.identity, left)

    def _tried_in(self, examined: Examined, misfit: Misfit) -> str | None:
        """The namespace in which it is tried as a new object, where it cannot be as it is."""
        _, item, standing = examined
        if standing.stand is Stand.OBSOLETE:
            return item.ref.namespace
        may = self.depth is not Preflight.LOCAL and item.ref.kind != POD
        is_read = not misfit.unreadable and not standing.replaces
        lacks = may and is_read and self.surroundings.lacks_namespace(standing.spot)
        return ELSEWHERE if lacks else None

    def _is_free(self, guards: Guards, case: Candidate) -> bool:
        """Whether nobody changes it on its way, and nobody has a word in that other namespace."""
        _, item, standing = case.examined
        there = self.surroundings.takers(guards, item, standing, place=ELSEWHERE)
        return not case.mendable and not there


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

"""Profile files: what users write, and what is shipped, as a profile.

A duration is written as one (`5s`), or as a range with its source. What counts of a range depends
on what is expected: the best, the likely or the worst. Nothing of it is left in a `Profile`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Generic, TypeAlias, TypeVar

import msgspec

from tidegate.documents.decoding import Flaw, decode_one, suggest
from tidegate.errors import FileError, foreign
from tidegate.model.expectation import Expectation
from tidegate.model.moment import SECOND, Ms, Seconds, SomeSeconds, Span
from tidegate.model.operators import EVERY, Row
from tidegate.sandbox.physics.profile import (
    Assumption,
    CourseChanges,
    CourseRule,
    Fit,
    Profile,
    Spread,
    StageFit,
    StageRule,
)

TYPICAL = Path(__file__).with_name("typical.yaml")
Texts = str | tuple[str, ...]
_S = TypeVar("_S")


class DurationRange(
    msgspec.Struct, Generic[_S], frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A duration that varies, and where that is known from."""

    likely: _S
    optimistic: _S | None = None
    pessimistic: _S | None = None
    source: str = ""


Written: TypeAlias = Ms | DurationRange[Ms] | None


class _SpanReading(msgspec.Struct, frozen=True):
    """What is expected, and of durations without a range."""

    expecting: Expectation
    factor: float

    def span(self, written: Ms | DurationRange[Ms], *, step: Ms = Ms(1), least: Ms = Ms(0)) -> Ms:
        """What counts of a duration, in whole steps."""
        if not isinstance(written, DurationRange):
            likely, said = written, None
        else:
            likely, said = written.likely, getattr(written, self.expecting)
        stretched = Ms(int(likely * self.factor / step + 0.5) * step)
        return max(least, stretched) if said is None else said


class _Durations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pull: Seconds | DurationRange[Seconds] | None = None
    start: Seconds | DurationRange[Seconds] | None = None
    ready: Seconds | DurationRange[Seconds] | None = None
    run: Seconds | DurationRange[Seconds] | None = None
    init: Seconds | DurationRange[Seconds] | None = None
    dial: SomeSeconds | DurationRange[SomeSeconds] | None = None
    """A call that takes no time would be made again and again at the same moment."""
    poll: SomeSeconds | DurationRange[SomeSeconds] | None = None
    stop: Seconds | DurationRange[Seconds] | None = None

    def changes(self, reading: _SpanReading) -> CourseChanges:
        said = {key: getattr(self, key) for key in DURATIONS}
        return {
            key: reading.span(value, step=SECOND, least=SECOND if key in SOME else Ms(0))
            for key, value in said.items()
            if value is not None
        }


DURATIONS = _Durations.__struct_fields__
SOME = ("dial", "poll")


class _Rule(_Durations, frozen=True, kw_only=True, forbid_unknown_fields=True):
    when: Fit = Fit()
    dials: bool | None = None

    def changes(self, reading: _SpanReading) -> CourseChanges:
        dials = {} if self.dials is None else {"dials": self.dials}
        return super().changes(reading) | dials


class _StageEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    after: Span | DurationRange[Span]
    when: StageFit = StageFit()


class _Factors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    optimistic: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    pessimistic: Annotated[float, msgspec.Meta(ge=1)] | None = None

    def over(self, other: Spread) -> Spread:
        """These factors; those that are not said are the other's."""
        said = msgspec.structs.asdict(self)
        changes = {key: value for key, value in said.items() if value is not None}
        return msgspec.structs.replace(other, **changes)


class _ProfileFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a profile."""

    name: str = ""
    durations: _Durations = _Durations()
    spread: _Factors = _Factors()
    rules: tuple[_Rule, ...] = ()
    stages: tuple[_StageEntry, ...] = ()
    polls: Texts = ()
    telemetry: Texts = ()
    certifies: Texts = ()
    assumptions: tuple[Assumption, ...] = ()


@cache
def typical(expecting: Expectation = Expectation.LIKELY) -> Profile:
    """The profile that is shipped."""
    return read_profile(TYPICAL.read_bytes(), TYPICAL.name, onto=Profile(), expecting=expecting)


def read_profile(
    text: bytes,
    name: str,
    *,
    onto: Profile,
    operators: Iterable[Row] = (),
    expecting: Expectation = Expectation.LIKELY,
) -> Profile:
    """A profile file, which adds to another profile and wins over it.

    Raises one ExceptionGroup with an error for each mistake in the file. Stages are looked for in
    the rows of `operators`, if there are any.
    """
    rows = tuple(operators)
    file = decode_one(
        text, name, _ProfileFile, noun="profile", check=lambda file: _flaws(file, rows)
    )
    spread = file.spread.over(onto.spread)
    reading = _SpanReading(expecting, spread.factor(expecting))
    stages = (StageRule(when=one.when, after=reading.span(one.after)) for one in file.stages)
    return Profile(
        name=file.name or onto.name,
        durations=msgspec.structs.replace(onto.durations, **file.durations.changes(reading)),
        spread=spread,
        rules=(*onto.rules, *(CourseRule(one.when, one.changes(reading)) for one in file.rules)),
        stages=(*onto.stages, *stages),
        polls=(*onto.polls, *_listed(file.polls)),
        telemetry=(*onto.telemetry, *_listed(file.telemetry)),
        certifies=(*onto.certifies, *_listed(file.certifies)),
        assumptions=(*onto.assumptions, *file.assumptions),
    )


def _listed(texts: Texts) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else texts


def _flaws(file: _ProfileFile, rows: tuple[Row, ...]) -> Iterator[Flaw]:
    for place, stage in enumerate(file.stages):
        known = _stages_of(stage.when, rows)
        if known and not any(fnmatchcase(one, stage.when.stage) for one in known):
            problem = f"there is no stage `{foreign(stage.when.stage)}`"
            hint = suggest(stage.when.stage, known)
            yield ("stages", place, "when", "stage"), FileError("file.value", problem, hint=hint)
        yield from _unordered(("stages", place, "after"), stage.after)
    for key in DURATIONS:
        yield from _unordered(("durations", key), getattr(file.durations, key))
        for place, rule in enumerate(file.rules):
            yield from _unordered(("rules", place, key), getattr(rule, key))
    for key in ("polls", "telemetry", "certifies"):
        for pattern in _listed(getattr(file, key)):
            try:
                re.compile(pattern)
            except re.error:
                problem = f"`{key}` has a pattern that is no regular expression"
                hint = "escape brackets with `\\`"
                yield (key,), FileError("file.value", problem, hint=hint)


def _unordered(path: tuple[str | int, ...], written: Written) -> Iterator[Flaw]:
    """A range goes from the shortest to the longest."""
    if not isinstance(written, DurationRange):
        return
    ends = (written.optimistic, written.likely, written.pessimistic)
    said = [one for one in ends if one is not None]
    if said != sorted(said):
        problem = f"`{path[-1]}` is a range whose ends are on the wrong sides"
        hint = "`optimistic` is at most `likely`, and `pessimistic` at least"
        yield path, FileError("file.value", problem, hint=hint)


def _stages_of(fit: StageFit, rows: tuple[Row, ...]) -> tuple[str, ...]:
    """The stages that may be meant: one that no row has would say nothing, in silence."""
    about = [row for row in rows if fit.is_about(row)]
    own = [row for row in about if row.group != EVERY]
    return tuple(dict.fromkeys(stage.name for row in own or about for stage in row.stages))

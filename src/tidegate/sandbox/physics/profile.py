"""Profile files: how long things take and what is assumed, on top of the one that is shipped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec

from tidegate.documents.decoding import Flaw, decode_one, suggest
from tidegate.errors import FileError, foreign
from tidegate.model.moment import Seconds, SomeSeconds, Span
from tidegate.model.operators import EVERY, Row
from tidegate.sandbox.physics import course

TYPICAL = Path(__file__).with_name("typical.yaml")
Texts = str | tuple[str, ...]


class _Durations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pull: Seconds | None = None
    start: Seconds | None = None
    ready: Seconds | None = None
    run: Seconds | None = None
    init: Seconds | None = None
    dial: SomeSeconds | None = None
    """A call that takes no time would be made again and again at the same moment."""
    poll: SomeSeconds | None = None
    stop: Seconds | None = None

    @property
    def changes(self) -> course.CourseChanges:
        said = {key: getattr(self, key) for key in (*DURATIONS, "dials") if hasattr(self, key)}
        return {key: value for key, value in said.items() if value is not None}


DURATIONS = _Durations.__struct_fields__


class _Rule(_Durations, frozen=True, kw_only=True, forbid_unknown_fields=True):
    when: course.Fit = course.Fit()
    dials: bool | None = None


class _Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    after: Span
    when: course.StageFit = course.StageFit()


class _ProfileFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a profile."""

    name: str = ""
    durations: _Durations = _Durations()
    rules: tuple[_Rule, ...] = ()
    stages: tuple[_Stage, ...] = ()
    polls: Texts = ()
    telemetry: Texts = ()
    assumptions: tuple[course.Assumption, ...] = ()


@cache
def typical() -> course.Profile:
    """The profile that is shipped."""
    return read_profile(TYPICAL.read_bytes(), TYPICAL.name, onto=course.Profile())


def read_profile(
    text: bytes, name: str, *, onto: course.Profile, operators: Iterable[Row] = ()
) -> course.Profile:
    """A profile file, which adds to another profile and wins over it.

    Raises one ExceptionGroup with an error for each mistake in the file. Stages are looked for in
    the rows of `operators`, if there are any.
    """
    rows = tuple(operators)
    file = decode_one(
        text, name, _ProfileFile, noun="profile", check=lambda file: _flaws(file, rows)
    )
    return course.Profile(
        name=file.name or onto.name,
        durations=msgspec.structs.replace(onto.durations, **file.durations.changes),
        rules=(*onto.rules, *(course.CourseRule(rule.when, rule.changes) for rule in file.rules)),
        stages=(
            *onto.stages,
            *(course.StageRule(stage.when, stage.after) for stage in file.stages),
        ),
        polls=(*onto.polls, *_listed(file.polls)),
        telemetry=(*onto.telemetry, *_listed(file.telemetry)),
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
    for key, texts in (("polls", file.polls), ("telemetry", file.telemetry)):
        for pattern in _listed(texts):
            try:
                re.compile(pattern)
            except re.error:
                problem = f"`{key}` has a pattern that is no regular expression"
                hint = "escape brackets with `\\`"
                yield (key,), FileError("file.value", problem, hint=hint)


def _stages_of(fit: course.StageFit, rows: tuple[Row, ...]) -> tuple[str, ...]:
    """The stages that may be meant: one that no row has would say nothing, in silence."""
    about = [row for row in rows if fit.is_about(row)]
    own = [row for row in about if row.group != EVERY]
    return tuple(dict.fromkeys(stage.name for row in own or about for stage in row.stages))

"""Profile files: how long things take and what is assumed, on top of the one that is shipped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec

from tidegate.errors import foreign
from tidegate.model.moment import Ms
from tidegate.model.operators import EVERY, Row
from tidegate.sandbox.entry import Entry, read_file, require, suggest
from tidegate.sandbox.physics.behaviours import read_fit
from tidegate.sandbox.physics.course import (
    Assumption,
    Changes,
    Profile,
    Rule,
    StageFit,
    StageRule,
)

TYPICAL = Path(__file__).with_name("typical.yaml")
DURATIONS = ("pull", "start", "ready", "run", "init", "dial", "poll", "stop")
LONG_ENOUGH = ("dial", "poll")
"""A call that takes no time would be made again and again at the same moment."""


@cache
def typical() -> Profile:
    """The profile that is shipped."""
    return read_profile(TYPICAL.read_bytes(), TYPICAL.name, onto=Profile())


def read_profile(
    text: bytes, name: str, *, onto: Profile, operators: Iterable[Row] = ()
) -> Profile:
    """A profile file, which adds to another profile and wins over it.

    Raises one ExceptionGroup with an error for each mistake in the file. Stages are looked for in
    the rows of `operators`, if there are any.
    """
    keys = Profile.__struct_fields__
    rows = tuple(operators)
    return read_file(
        text, name, noun="profile", keys=keys, top=lambda entry: _read_top(entry, onto, rows)
    )


def _read_top(top: Entry, onto: Profile, rows: tuple[Row, ...]) -> Profile:
    durations = top.inner("durations")
    durations.allow(DURATIONS, owner="`durations`")
    return Profile(
        name=top.text("name") or onto.name,
        durations=msgspec.structs.replace(onto.durations, **_read_changes(durations)),
        rules=(*onto.rules, *(_read_rule(entry) for entry in top.items("rules"))),
        stages=(*onto.stages, *(_read_stage(entry, rows) for entry in top.items("stages"))),
        polls=(*onto.polls, *_read_patterns(top, "polls")),
        telemetry=(*onto.telemetry, *_read_patterns(top, "telemetry")),
        assumptions=(
            *onto.assumptions,
            *(_read_assumption(entry) for entry in top.items("assumptions")),
        ),
    )


def _read_rule(entry: Entry) -> Rule:
    entry.allow(("when", "dials", *DURATIONS), owner="a rule")
    changes = _read_changes(entry)
    dials = entry.truth("dials")
    if dials is not None:
        changes["dials"] = dials
    return Rule(read_fit(entry.inner("when"), owner="a rule"), changes)


def _read_stage(entry: Entry, rows: tuple[Row, ...]) -> StageRule:
    entry.allow(("when", "after"), owner="an entry of `stages`")
    require(entry, "after", owner="an entry of `stages`", hint="say how long: `after: 2m`")
    when = entry.inner("when")
    when.allow(StageFit.__struct_fields__, owner="`when` of `stages`")
    fit = StageFit(
        group=when.text("group") or EVERY,
        kind=when.text("kind") or EVERY,
        namespace=when.text("namespace") or EVERY,
        name=when.text("name") or EVERY,
        stage=when.text("stage") or EVERY,
    )
    _check_stage(when, fit, rows)
    return StageRule(fit, entry.duration("after") or Ms(0))


def _check_stage(when: Entry, fit: StageFit, rows: tuple[Row, ...]) -> None:
    """A stage that no row has would say nothing, in silence."""
    about = [row for row in rows if fit.is_about(row)]
    own = [row for row in about if row.group != EVERY]
    stages = [stage.name for row in own or about for stage in row.stages]
    if stages and not any(fnmatchcase(stage, fit.stage) for stage in stages):
        problem = f"there is no stage `{foreign(fit.stage)}`"
        hint = suggest(fit.stage, tuple(dict.fromkeys(stages)))
        when.note_error("scenario.value", problem, "stage", hint=hint)


def _read_changes(entry: Entry) -> Changes:
    spans: dict[str, Ms] = {}
    for key in DURATIONS:
        span = entry.seconds(key)
        if span is None:
            continue
        if not span and key in LONG_ENOUGH:
            problem = f"`{key}` must be a second or more"
            entry.note_error("scenario.value", problem, key, hint="write `1s`")
        spans[key] = span
    return msgspec.convert(spans, Changes)


def _read_patterns(top: Entry, key: str) -> tuple[str, ...]:
    patterns = top.texts(key)
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error:
            problem = f"`{key}` has a pattern that is no regular expression"
            top.note_error("scenario.value", problem, key, hint="escape brackets with `\\`")
    return patterns


def _read_assumption(entry: Entry) -> Assumption:
    keys = Assumption.__struct_fields__
    entry.allow(keys, owner="an assumption")
    for key in keys:
        require(entry, key, owner="an assumption", hint="it has a name, a claim and a source")
    return Assumption(
        name=entry.text("name") or "",
        claim=entry.text("claim") or "",
        source=entry.text("source") or "",
    )

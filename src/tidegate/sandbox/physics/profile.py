"""Profile files: how long things take and what is assumed, on top of the one that is shipped."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec

from tidegate.model.moment import Ms
from tidegate.sandbox.entry import Entry, read_file, require
from tidegate.sandbox.physics.behaviours import read_fit
from tidegate.sandbox.physics.course import Assumption, Changes, Profile, Rule

TYPICAL = Path(__file__).with_name("typical.yaml")
DURATIONS = ("pull", "start", "ready", "run", "init", "dial", "poll", "stop")
LONG_ENOUGH = ("dial", "poll")
"""A call that takes no time would be made again and again at the same moment."""


@cache
def typical() -> Profile:
    """The profile that is shipped."""
    return read_profile(TYPICAL.read_bytes(), TYPICAL.name, onto=Profile())


def read_profile(text: bytes, name: str, *, onto: Profile) -> Profile:
    """A profile file, which adds to another profile and wins over it.

    Raises one ExceptionGroup with an error for each mistake in the file.
    """
    keys = Profile.__struct_fields__
    return read_file(
        text, name, noun="profile", keys=keys, top=lambda entry: _read_top(entry, onto)
    )


def _read_top(top: Entry, onto: Profile) -> Profile:
    durations = top.inner("durations")
    durations.allow(DURATIONS, owner="`durations`")
    return Profile(
        name=top.text("name") or onto.name,
        durations=msgspec.structs.replace(onto.durations, **_read_changes(durations)),
        rules=(*onto.rules, *(_read_rule(entry) for entry in top.items("rules"))),
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

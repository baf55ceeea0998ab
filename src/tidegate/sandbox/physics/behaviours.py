"""What a scenario lets befall containers, read from its `behaviours`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tidegate.errors import foreign
from tidegate.model.moment import Ms
from tidegate.sandbox.entry import Entry, require, suggest
from tidegate.sandbox.physics.course import Changes, Failure, Fit, Rule

MOST_CODES = 255


class Form(NamedTuple):
    """What an effect may say, and who reads it."""

    read: Callable[[Entry], Changes]
    keys: tuple[str, ...] = ()


def read_behaviours(entries: Iterable[Entry]) -> tuple[Rule, ...]:
    rules = (_read_behaviour(entry) for entry in entries)
    return tuple(rule for rule in rules if rule is not None)


def read_fit(when: Entry, *, owner: str) -> Fit:
    """Whom a rule or a behaviour is for."""
    when.allow(Fit.__struct_fields__, owner=f"`when` of {owner}")
    return Fit(
        kind=when.text("kind"),
        namespace=when.text("namespace"),
        name=when.text("name"),
        container=when.text("container"),
        image=when.text("image"),
    )


def _read_behaviour(entry: Entry) -> Rule | None:
    require(entry, "effect", owner="a behaviour", hint=suggest("", tuple(FORMS)))
    effect = entry.text("effect")
    if effect is None:
        return None
    if effect not in FORMS:
        problem = f"there is no effect `{foreign(effect)}`"
        entry.note_error("scenario.effect", problem, "effect", hint=suggest(effect, tuple(FORMS)))
        return None
    form = FORMS[effect]
    entry.allow(("effect", *form.keys, "when"), owner=f"`{effect}`")
    return Rule(read_fit(entry.inner("when"), owner=f"`{effect}`"), form.read(entry))


def _fails(entry: Entry) -> Changes:
    code = entry.whole("exit", least=1)
    if code is not None and code > MOST_CODES:
        problem = f"`exit` must be {MOST_CODES} or less, not `{code}`"
        hint = "exit codes are one byte"
        entry.note_error("scenario.value", problem, "exit", hint=hint)
    times = entry.whole("times", least=1)
    return {"failure": Failure(after=entry.seconds("after"), times=times, code=code or 1)}


def _crashes(entry: Entry) -> Changes:
    require(entry, "after", owner="`crashes`", hint="say when, like `after: 2m`")
    return _fails(entry)


def _flaps(entry: Entry) -> Changes:
    require(entry, "every", owner="`flaps`", hint="say how long each state lasts: `every: 30s`")
    return {"flaps": entry.seconds("every") or Ms(0)}


def _slow(entry: Entry) -> Changes:
    require(entry, "by", owner="`slow`", hint="say how much later, like `by: 1m`")
    return {"slow": entry.seconds("by") or Ms(0)}


def _unpullable(entry: Entry) -> Changes:
    return {"unpullable": True, "pullable_after": entry.seconds("for")}


def _unschedulable(entry: Entry) -> Changes:
    return {"unschedulable": entry.text("message") or "1 Insufficient memory"}


def _prints(entry: Entry) -> Changes:
    require(entry, "lines", owner="`prints`", hint="write a list of texts")
    return {"lines": entry.texts("lines")}


FORMS = {
    "fails": Form(_fails, ("times", "after", "exit")),
    "crashes": Form(_crashes, ("after", "times", "exit")),
    "never-ready": Form(lambda _: {"never_ready": True}),
    "flaps": Form(_flaps, ("every",)),
    "slow": Form(_slow, ("by",)),
    "unpullable": Form(_unpullable, ("for",)),
    "unschedulable": Form(_unschedulable, ("message",)),
    "prints": Form(_prints, ("lines",)),
}

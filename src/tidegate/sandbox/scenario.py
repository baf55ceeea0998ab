"""Scenario files: what a simulation is to go through, read from YAML with a line for each mistake.

A key of the file is a field of `Scenario`; each has one reader here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.errors import foreign
from tidegate.knowledge.reader import builtin
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json
from tidegate.sandbox.entry import Entry, read_file, require, suggest
from tidegate.sandbox.faults import (
    CONFLICT,
    ERROR,
    VERBS,
    WRITES,
    CallEffect,
    CallFault,
    Compact,
    Down,
    Drop,
    Fault,
    Lose,
    Match,
    Often,
    Refuse,
    Silence,
    Slow,
    TimedFault,
    throttled,
)
from tidegate.sandbox.physics.behaviours import read_behaviours
from tidegate.sandbox.physics.course import Rule


class GivenOperator(NamedTuple):
    """An operator that is in the cluster already; in its usual namespace if none is named."""

    name: str
    namespace: str = ""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What is in the cluster already."""

    objects: tuple[dict[str, Json], ...] = ()
    operators: tuple[GivenOperator, ...] = ()


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulation is to go through."""

    seed: int = 0
    faults: tuple[Fault, ...] = ()
    behaviours: tuple[Rule, ...] = ()
    """What befalls containers; comes after the rules of a profile."""
    given: Given = Given()


def read_scenario(text: bytes, name: str, *, operators: Sequence[str] = ()) -> Scenario:
    """Read a scenario file. Raises one ExceptionGroup with an error for each mistake in it.

    `operators` are those that it may name besides the ones that are shipped.
    """
    keys = Scenario.__struct_fields__
    return read_file(
        text, name, noun="scenario", keys=keys, top=lambda entry: _read_top(entry, operators)
    )


def _read_top(top: Entry, operators: Sequence[str]) -> Scenario:
    return Scenario(
        seed=top.whole("seed") or 0,
        faults=_read_faults(top.items("faults")),
        behaviours=read_behaviours(top.items("behaviours")),
        given=_read_given(top.inner("given"), operators),
    )


def _read_given(given: Entry, operators: Sequence[str]) -> Given:
    given.allow(Given.__struct_fields__, owner="`given`")
    objects = given.items("objects")
    for entry in objects:
        for key in ("apiVersion", "kind", "metadata"):
            require(entry, key, owner="an object", hint="write it as for `kubectl apply`")
    return Given(
        objects=tuple(entry.body for entry in objects),
        operators=_read_operators(given.items("operators", short="name"), operators),
    )


def _read_operators(entries: Sequence[Entry], own: Sequence[str]) -> tuple[GivenOperator, ...]:
    found: dict[str, GivenOperator] = {}
    known = sorted({*own, *(one.name for one in builtin().operators)}) if entries else ()
    for entry in entries:
        entry.allow(GivenOperator._fields, owner="an operator")
        require(entry, "name", owner="an operator", hint=suggest("", known))
        name, namespace = entry.text("name"), entry.text("namespace")
        if name is None:
            continue
        if name not in known:
            problem = f"there is no operator `{foreign(name)}`"
            entry.note_error("scenario.value", problem, hint=suggest(name, known))
        elif name in found:
            problem = f"the operator `{name}` is given twice"
            entry.note_error("scenario.contradiction", problem, hint="remove one of the two")
        found[name] = GivenOperator(name, namespace or "")
    return tuple(found.values())


def _read_faults(entries: Iterable[Entry]) -> tuple[Fault, ...]:
    faults = (_read_fault(entry) for entry in entries)
    return tuple(fault for fault in faults if fault is not None)


def _read_fault(entry: Entry) -> Fault | None:
    require(entry, "effect", owner="a fault", hint=suggest("", tuple(_FORMS)))
    effect = entry.text("effect")
    if effect is None:
        return None
    if effect not in _FORMS:
        problem = f"there is no effect `{foreign(effect)}`"
        hint = suggest(effect, tuple(_FORMS))
        entry.note_error("scenario.effect", problem, "effect", hint=hint)
        return None
    form = _FORMS[effect]
    entry.allow(("effect", *form.keys, "when"), owner=f"`{effect}`")
    when = entry.inner("when")
    when.allow(form.matchers, owner=f"`when` of `{effect}`")
    return form.read(entry, when)


def _call_fault(effect: Callable[[Entry], CallEffect], *, verbs: tuple[str, ...] = ()) -> _Read:
    def read_fault(entry: Entry, when: Entry) -> Fault:
        return CallFault(effect(entry), _read_match(when, verbs), _read_often(entry))

    return read_fault


def _watch_fault(effect: Callable[[Entry], Drop | Silence]) -> _Read:
    """Either at a moment for all that are open, or for watches as they are opened."""

    def read_fault(entry: Entry, when: Entry) -> Fault:
        at, match = entry.duration("at"), _read_match(when)
        if not entry.has("at"):
            match = msgspec.structs.replace(match, verbs=("watch",))
            return CallFault(effect(entry), match, _read_often(entry))
        for key in ("after", *_OFTEN):
            if entry.has(key):
                _note_both(entry, "at", key)
        return TimedFault(at or Ms(0), effect(entry), match)

    return read_fault


def _compact(entry: Entry, when: Entry) -> Fault:
    require(entry, "at", owner="`compact`", hint="say when, like `at: 30s`")
    return TimedFault(entry.duration("at") or Ms(0), Compact(), _read_match(when))


def _down(entry: Entry, when: Entry) -> Fault:
    window = _read_often(entry)
    return TimedFault(window.start, Down(window.until), _read_match(when))


def _throttle(entry: Entry) -> CallEffect:
    pause = entry.duration("after")
    if pause is None:
        return Refuse(throttled())
    if pause < SECOND or pause % SECOND:
        problem = "`after` of `throttle` must be whole seconds, and at least one"
        hint = "a server tells it in `Retry-After`, which knows no other"
        entry.note_error("scenario.value", problem, "after", hint=hint)
    return Refuse(throttled(pause))


def _slow(entry: Entry) -> CallEffect:
    require(entry, "by", owner="`slow`", hint="say how much later, like `by: 500ms`")
    return Slow(entry.duration("by") or Ms(0))


def _drop(entry: Entry) -> Drop:
    return Drop(entry.duration("after") or Ms(0))


def _silence(entry: Entry) -> Silence:
    return Silence(entry.duration("for"), entry.duration("after") or Ms(0))


def _read_often(entry: Entry) -> Often:
    every, probability = entry.whole("every", least=1), entry.share("probability")
    if entry.has("every") and entry.has("probability"):
        _note_both(entry, "every", "probability")
    start, until = entry.duration("from") or Ms(0), entry.duration("until")
    if until is not None and until <= start:
        problem = "`until` is not later than `from`"
        hint = "both count from the start of the simulation"
        entry.note_error("scenario.contradiction", problem, "until", hint=hint)
    return Often(
        every=every or 1,
        probability=probability,
        times=entry.whole("times", least=1),
        start=start,
        until=until,
    )


def _note_both(entry: Entry, first: str, second: str) -> None:
    problem = f"`{first}` and `{second}` rule each other out"
    entry.note_error("scenario.contradiction", problem, second, hint="remove one of the two")


def _read_match(when: Entry, verbs: tuple[str, ...] = ()) -> Match:
    """Whom a fault meets; `verbs` are those that it can meet at all."""
    chosen = when.texts("verb")
    possible = WRITES if when.has("manager") else verbs
    for verb in chosen:
        if verb not in VERBS:
            problem = f"there is no verb `{foreign(verb)}`"
            when.note_error("scenario.value", problem, "verb", hint=suggest(verb, VERBS))
        elif possible and verb not in possible:
            rule = "only writes have a `manager`" if when.has("manager") else "it meets writes only"
            problem = f"`{verb}` is never met: {rule}"
            when.note_error("scenario.contradiction", problem, "verb", hint=suggest(verb, possible))
    return Match(
        cluster=when.text("cluster"),
        verbs=chosen or possible,
        group=when.text("group"),
        kind=when.text("kind"),
        namespace=when.text("namespace"),
        name=when.text("name"),
        manager=when.text("manager"),
    )


_Read: TypeAlias = Callable[[Entry, Entry], Fault]
"""From a fault and its `when`."""


class _Form(NamedTuple):
    """What an effect of the file may say, and who reads it."""

    read: _Read
    keys: tuple[str, ...]
    matchers: tuple[str, ...]


_OFTEN = ("every", "probability", "times", "from", "until")
_OBJECTS = ("cluster", "kind", "group", "namespace", "name")
_CALLS = (*_OBJECTS, "verb", "manager")

_FORMS = {
    "conflict": _Form(_call_fault(lambda _: Refuse(CONFLICT), verbs=WRITES), _OFTEN, _CALLS),
    "throttle": _Form(_call_fault(_throttle), ("after", *_OFTEN), _CALLS),
    "error": _Form(_call_fault(lambda _: Refuse(ERROR)), _OFTEN, _CALLS),
    "slow": _Form(_call_fault(_slow), ("by", *_OFTEN), _CALLS),
    "lose-before": _Form(_call_fault(lambda _: Lose(performed=False)), _OFTEN, _CALLS),
    "lose-after": _Form(_call_fault(lambda _: Lose(performed=True)), _OFTEN, _CALLS),
    "drop-watches": _Form(_watch_fault(_drop), ("at", "after", *_OFTEN), _OBJECTS),
    "silence-watches": _Form(_watch_fault(_silence), ("at", "after", "for", *_OFTEN), _OBJECTS),
    "compact": _Form(_compact, ("at",), ("cluster",)),
    "down": _Form(_down, ("from", "until"), ("cluster",)),
}

"""Keeps what is secret out of what other people's programs say.

An application prints its password, a server quotes what it refuses. What a plan puts into Secrets,
and what stood encrypted wherever it goes, is known, and is hidden wherever it turns up. What an
object is called is shown all the same, though it may hold the name of a user that is hidden.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator

import msgspec

from tidegate.model.change import MASK, FieldChange
from tidegate.model.event import Event
from tidegate.model.objects import FieldPath, Json, Ref
from tidegate.model.plan import Fragment, Plan, items_of
from tidegate.model.secret import is_secret_kind, secret_fields, texts_in, value_at

SHORTEST = 5
"""Shorter values stand in many words by chance; to hide them would hide the words."""


class Discretion:
    """Knows what must not be said."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: list[str] = []
        self._known: dict[str, str] = {}
        self._names: set[str] = set()
        self._around: dict[str, list[str]] = {}
        self._learn(values)

    def _learn(self, values: Iterable[str]) -> None:
        # The longest first: a value may be the beginning of another.
        long = {*self._values, *(one for one in values if len(one) >= SHORTEST)}
        self._values = sorted(long, key=lambda value: (-len(value), value))
        self._known.clear()
        self._around.clear()

    @classmethod
    def of(cls, plan: Plan) -> Discretion:
        """Hides what a plan holds in secret, as it is and as it is written."""
        made = cls()
        made.learn(plan)
        return made

    def learn(self, plan: Plan | Fragment) -> None:
        """Hide what this plan holds, or a part of one, too."""
        items = [item for step in plan.steps for item in items_of(step)]
        self._names |= {name for item in items for name in _names(item.ref)}
        self._learn(
            value
            for item in items
            if item.body and (item.hidden or is_secret_kind(item.ref.kind.name))
            for value in _values(msgspec.json.decode(item.body), item.hidden)
        )

    @classmethod
    def about(cls, objects: Iterable[tuple[dict[str, Json], tuple[FieldPath, ...]]]) -> Discretion:
        """The same for objects, each with its hidden fields."""
        return cls(value for body, hidden in objects for value in _values(body, hidden))

    def hide(self, text: str) -> str:
        for value in self._values:
            if value in text:
                text = self._hide(value, text)
        return text

    def _hide(self, value: str, text: str) -> str:
        """Hide a value wherever it stands, and is not a part of what an object is called."""
        if value not in self._around:
            # The longest first: a name may be the beginning of another.
            holding = (name for name in self._names if value in name and value != name)
            self._around[value] = sorted(holding, key=lambda name: (-len(name), name))
        names = [name for name in self._around[value] if name in text]
        if not names:
            return text.replace(value, MASK)
        either = re.compile("|".join(map(re.escape, (*names, value))))
        return either.sub(lambda met: MASK if met[0] == value else met[0], text)

    def _hide_field(self, one: FieldChange) -> FieldChange:
        return FieldChange(one.path, self.hide(one.before), self.hide(one.after))

    def hide_in(self, event: Event) -> Event:
        """The event without secrets; most sentences are told more than once."""
        if not self._values or not (event.sentence or event.fields):
            return event
        if event.fields:
            event = msgspec.structs.replace(
                event, fields=tuple(map(self._hide_field, event.fields))
            )
        told = self._known.get(event.sentence)
        if told is None:
            told = self._known[event.sentence] = self.hide(event.sentence)
        if told == event.sentence:
            return event
        return msgspec.structs.replace(event, sentence=told)


def _names(ref: Ref) -> Iterator[str]:
    """What an object is called in sentences: with its namespace, and without."""
    yield ref.name
    if ref.namespace:
        yield f"{ref.namespace}/{ref.name}"


def _values(body: dict[str, Json], hidden: tuple[FieldPath, ...]) -> Iterator[str]:
    for path in (*secret_fields(body), *hidden):
        for value in texts_in(value_at(body, path)):
            yield value
            yield from _decoded(value)


def _decoded(value: str) -> Iterator[str]:
    """What is written in base64; of several lines each, since a log shows them one by one."""
    yield from (line.strip() for line in value.splitlines())
    yield base64.b64encode(value.encode()).decode()
    try:
        text = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeError, ValueError):
        return
    yield text
    yield from (line.strip() for line in text.splitlines())

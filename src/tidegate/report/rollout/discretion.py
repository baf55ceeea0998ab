"""Keeps the values of Secrets out of what other people's programs say.

An application prints its password, a server quotes what it refuses. What a plan puts into Secrets
is known, and is hidden wherever it turns up.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator

import msgspec

from tidegate.model.event import Event
from tidegate.model.objects import Json, Kind
from tidegate.model.plan import Plan, items_of
from tidegate.model.reading import mapping
from tidegate.report.masking import MASK, SECRET_PARTS

SECRET = Kind("", "v1", "Secret")
SHORTEST = 5
"""Shorter values stand in many words by chance; to hide them would hide the words."""


class Discretion:
    """Knows what must not be said."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        # The longest first: a value may be the beginning of another.
        long = {one for one in values if len(one) >= SHORTEST}
        self._values = sorted(long, key=lambda value: (-len(value), value))
        self._known: dict[str, str] = {}

    @classmethod
    def of(cls, plan: Plan) -> Discretion:
        """Hides what the Secrets of a plan hold, as it is and as it is written."""
        items = (item for step in plan.steps for item in items_of(step))
        bodies = (item.body for item in items if item.ref.kind == SECRET and item.body)
        return cls(value for body in bodies for value in _values(msgspec.json.decode(body)))

    def hide(self, text: str) -> str:
        for value in self._values:
            if value in text:
                text = text.replace(value, MASK)
        return text

    def hide_in(self, event: Event) -> Event:
        """The event without secrets; most sentences are told more than once."""
        if not self._values or not event.sentence:
            return event
        told = self._known.get(event.sentence)
        if told is None:
            told = self._known[event.sentence] = self.hide(event.sentence)
        if told == event.sentence:
            return event
        return msgspec.structs.replace(event, sentence=told)


def _values(body: Json) -> Iterator[str]:
    for part in SECRET_PARTS:
        for value in mapping(body, part).values():
            if not isinstance(value, str):
                continue
            yield value
            if part == "data":
                yield from _decoded(value)


def _decoded(value: str) -> Iterator[str]:
    """The value itself; of one with several lines each line, since a log shows them one by one."""
    try:
        text = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return
    yield text
    yield from (line.strip() for line in text.splitlines())

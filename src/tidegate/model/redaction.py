"""Redaction of secret values in output of applications and servers.

An application may log its password, a server may quote a rejected value. Values of Secrets in
the plan and values that were encrypted in Git are replaced wherever they occur. Names of
objects stay readable, even if they contain a secret user name.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator

import msgspec

from tidegate.model.k8s.objects import FieldPath, Json, Ref
from tidegate.model.k8s.secret import is_secret_kind, leaf_texts, secret_field_paths, value_at_path
from tidegate.model.plans.change import MASK, FieldChange
from tidegate.model.plans.plan import Plan, PlanFragment, step_items
from tidegate.model.rollouts.event import Event

MIN_LENGTH = 5
"""Shorter values occur in ordinary text by chance; redacting them would make it unreadable."""


class Redactor:
    """Redaction of the secret values of a plan in strings and events."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._secrets: list[str] = []
        self._redacted: dict[str, str] = {}
        self._names: set[str] = set()
        self._names_by_secret: dict[str, list[str]] = {}
        self._add_values(values)

    def _add_values(self, values: Iterable[str]) -> None:
        # Longest first: a value may be a prefix of another.
        secrets = {*self._secrets, *(text for text in values if len(text) >= MIN_LENGTH)}
        self._secrets = sorted(secrets, key=lambda value: (-len(value), value))
        self._redacted.clear()
        self._names_by_secret.clear()

    @classmethod
    def from_plan(cls, plan: Plan) -> Redactor:
        """Return a redactor for the secret values of a plan, plain and in base64."""
        redactor = cls()
        redactor.add_secrets(plan)
        return redactor

    def add_secrets(self, plan: Plan | PlanFragment) -> None:
        """Add the secret values of a plan or of a part of one."""
        items = [item for step in plan.steps for item in step_items(step)]
        self._names |= {name for item in items for name in _object_names(item.ref)}
        self._add_values(
            value
            for item in items
            if item.body and (item.hidden_fields or is_secret_kind(item.ref.kind.name))
            for value in _secret_values(msgspec.json.decode(item.body), item.hidden_fields)
        )

    @classmethod
    def from_objects(
        cls, objects: Iterable[tuple[dict[str, Json], tuple[FieldPath, ...]]]
    ) -> Redactor:
        """Return a redactor for objects, each given with its hidden fields."""
        return cls(value for body, hidden in objects for value in _secret_values(body, hidden))

    def redact(self, text: str) -> str:
        for value in self._secrets:
            if value in text:
                text = self._redact_value(value, text)
        return text

    def _redact_value(self, value: str, text: str) -> str:
        """Replace a value, except inside a name of an object."""
        if value not in self._names_by_secret:
            # Longest first: a name may be a prefix of another.
            names_with_value = (name for name in self._names if value in name and value != name)
            self._names_by_secret[value] = sorted(
                names_with_value, key=lambda name: (-len(name), name)
            )
        names = [name for name in self._names_by_secret[value] if name in text]
        if not names:
            return text.replace(value, MASK)
        pattern = re.compile("|".join(map(re.escape, (*names, value))))
        return pattern.sub(lambda match: MASK if match[0] == value else match[0], text)

    def _redact_field(self, change: FieldChange) -> FieldChange:
        return FieldChange(change.path, self.redact(change.before), self.redact(change.after))

    def redact_event(self, event: Event) -> Event:
        """Return the event without secrets. Results are cached: most messages repeat."""
        if not self._secrets or not (event.message or event.fields):
            return event
        if event.fields:
            event = msgspec.structs.replace(
                event, fields=tuple(map(self._redact_field, event.fields))
            )
        message = self._redacted.get(event.message)
        if message is None:
            message = self._redacted[event.message] = self.redact(event.message)
        if message == event.message:
            return event
        return msgspec.structs.replace(event, message=message)


def _object_names(ref: Ref) -> Iterator[str]:
    """Yield the names of an object in messages: with its namespace and without."""
    yield ref.name
    if ref.namespace:
        yield f"{ref.namespace}/{ref.name}"


def _secret_values(body: dict[str, Json], hidden: tuple[FieldPath, ...]) -> Iterator[str]:
    for path in (*secret_field_paths(body), *hidden):
        for value in leaf_texts(value_at_path(body, path)):
            yield value
            yield from _encodings(value)


def _encodings(value: str) -> Iterator[str]:
    """Yield the lines of a value, its base64 form, and the decoded text and lines of base64.

    Lines are separate because a log shows them one by one.
    """
    yield from (line.strip() for line in value.splitlines())
    yield base64.b64encode(value.encode()).decode()
    try:
        text = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeError, ValueError):
        return
    yield text
    yield from (line.strip() for line in text.splitlines())

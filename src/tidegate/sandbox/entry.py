"""A scenario's or profile's file, key by key with their types; mistakes are collected.

Whoever reads a key gets its value, or None where it is absent, `null` or wrong. What is wrong is
noted with its path, and the file is refused when all of it has been read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NamedTuple, TypeVar

from tidegate.documents import Document, FieldPath, find_places, read
from tidegate.errors import DocumentError, Place, ScenarioError, TidegateError, foreign
from tidegate.model.moment import SECOND, Ms, parse_duration
from tidegate.model.objects import Json

DURATION_HINT = "write it like `250ms`, `2s` or `1m30s`"


class Mistake(NamedTuple):
    """What is wrong, and the path of the key that says so."""

    path: FieldPath
    code: str
    problem: str
    hint: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A mapping, where it stands, and the list that mistakes go to."""

    body: dict[str, Json] = field(repr=False)
    mistakes: list[Mistake]
    path: FieldPath = ()

    def has(self, key: str) -> bool:
        return self.body.get(key) is not None

    def allow(self, keys: Sequence[str], *, owner: str) -> None:
        """Note every key that is none of these; `owner` is what they would belong to."""
        for key in self.body:
            if key not in keys:
                problem = f"{owner} has no key `{foreign(key)}`"
                self.note_error("scenario.key", problem, key, hint=suggest(key, keys))

    def text(self, key: str) -> str | None:
        value = self.body.get(key)
        if value is None or isinstance(value, str):
            return value
        self._note_type(key, "text", hint="put it in quotes")
        return None

    def texts(self, key: str) -> tuple[str, ...]:
        """A text, or a list of texts."""
        value = self.body.get(key)
        listed = value if isinstance(value, list) else [] if value is None else [value]
        texts = tuple(item for item in listed if isinstance(item, str))
        if len(texts) != len(listed):
            self._note_type(key, "a text or a list of texts", hint="put each in quotes")
        return texts

    def whole(self, key: str, *, least: int | None = None) -> int | None:
        """A whole number, not below `least`."""
        value = self.body.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            self._note_type(key, "a whole number", hint="write it without quotes")
            return None
        if least is not None and value < least:
            problem = f"`{key}` must be {least} or more, not `{value}`"
            self.note_error("scenario.value", problem, key, hint=f"write `{least}` or more")
            return None
        return value

    def share(self, key: str) -> float | None:
        """A number from 0 to 1."""
        value = self.body.get(key)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool):
            self._note_type(key, "a number", hint="`0.1` is one in ten")
            return None
        if not 0 <= value <= 1:
            problem = f"`{key}` must be from 0 to 1, not `{value}`"
            self.note_error("scenario.value", problem, key, hint="`0.1` is one in ten")
            return None
        return float(value)

    def duration(self, key: str) -> Ms | None:
        """A duration that is not negative. Zero needs no unit."""
        value = self.body.get(key)
        if value is None or (value == 0 and not isinstance(value, bool)):
            return None if value is None else Ms(0)
        try:
            span = parse_duration(value if isinstance(value, str) else "")
        except ValueError as error:
            shown = foreign(str(value)) if isinstance(value, str | int | float) else "…"
            why = error if isinstance(value, str) else "not a duration"
            problem = f"`{key}` is `{shown}`, which is {why}"
            self.note_error("scenario.duration", problem, key, hint=DURATION_HINT)
            return None
        if span < 0:
            problem = f"`{key}` is `{foreign(str(value))}`, and time does not run backwards"
            self.note_error("scenario.value", problem, key, hint="remove the minus sign")
            return None
        return span

    def seconds(self, key: str) -> Ms | None:
        """A duration that a pod's status can tell."""
        span = self.duration(key)
        if span is not None and span % SECOND:
            problem = f"`{key}` must be whole seconds"
            hint = "the times in a pod's status have no fractions"
            self.note_error("scenario.value", problem, key, hint=hint)
        return span

    def truth(self, key: str) -> bool | None:
        value = self.body.get(key)
        if value is None or isinstance(value, bool):
            return value
        self._note_type(key, "`true` or `false`", hint="write it without quotes")
        return None

    def inner(self, key: str) -> Entry:
        """The mapping below a key; empty where there is none."""
        value = self.body.get(key)
        if isinstance(value, dict):
            return Entry(value, self.mistakes, (*self.path, key))
        if value is not None:
            self._note_type(key, "a mapping", hint="write keys and values below it")
        return Entry({}, self.mistakes, (*self.path, key))

    def items(self, key: str, *, short: str = "") -> tuple[Entry, ...]:
        """The mappings in the list below a key; a text may be `short` for one with that key."""
        value = self.body.get(key)
        if value is not None and not isinstance(value, list):
            self._note_type(key, "a list", hint="write each entry on a line of its own, after `-`")
        entries = []
        for index, listed in enumerate(value if isinstance(value, list) else ()):
            item: Json = {short: listed} if short and isinstance(listed, str) else listed
            path = (*self.path, key, index)
            entry = Entry(item if isinstance(item, dict) else {}, self.mistakes, path)
            if isinstance(item, dict):
                entries.append(entry)
            else:
                entry.note_error(
                    "scenario.type",
                    f"an entry of `{key}` must be a mapping",
                    hint="write keys and values behind the `-`",
                )
        return tuple(entries)

    def note_error(self, code: str, problem: str, key: str = "", *, hint: str) -> None:
        """Keep a mistake: at a key of this mapping, or at the mapping itself."""
        path = (*self.path, key) if key else self.path
        self.mistakes.append(Mistake(path, code, problem, hint))

    def _note_type(self, key: str, wanted: str, *, hint: str) -> None:
        self.note_error("scenario.type", f"`{key}` must be {wanted}", key, hint=hint)


_T = TypeVar("_T")


def read_file(
    text: bytes, name: str, *, noun: str, keys: Sequence[str], top: Callable[[Entry], _T]
) -> _T:
    """Read a file of one mapping. Raises one ExceptionGroup with an error for each mistake."""
    refusal = f"{noun} {name} cannot be used"
    try:
        documents = read(text, name)
    except DocumentError as error:
        told = _not_a_mapping(error, noun, keys) if error.code == "documents.object" else error
        raise ExceptionGroup(refusal, [told]) from error
    if len(documents) > 1:
        problem = f"a {noun} is one document, and here begins another"
        where, hint = documents[1].place, "put them into files of their own"
        other = ScenarioError("scenario.documents", problem, where=where, hint=hint)
        raise ExceptionGroup(refusal, [other])
    mistakes: list[Mistake] = []
    entry = Entry(documents[0].body if documents else {}, mistakes)
    entry.allow(keys, owner=f"a {noun}")
    found = top(entry)
    wrong = _errors(text, documents[0], mistakes) if documents else []
    if wrong:
        raise ExceptionGroup(refusal, wrong)
    return found


def _not_a_mapping(error: DocumentError, noun: str, keys: Sequence[str]) -> TidegateError:
    problem = f"a {noun} must be a mapping"
    hint = f"it begins with `{keys[0]}:` or `{keys[1]}:`"
    return ScenarioError("scenario.type", problem, where=error.where, hint=hint)


def _errors(text: bytes, document: Document, mistakes: list[Mistake]) -> list[ScenarioError]:
    places = find_places(text, [(document, mistake.path) for mistake in mistakes])
    errors = [
        ScenarioError(mistake.code, mistake.problem, where=place, hint=mistake.hint)
        for mistake, place in zip(mistakes, places, strict=True)
    ]
    for twice in document.duplicates:
        problem = (
            f"`{foreign(str(twice.path[-1]))}` is written twice, first in line {twice.first.line}"
        )
        hint = "remove one of the two"
        errors.append(ScenarioError("scenario.duplicate", problem, where=twice.last, hint=hint))
    return sorted(errors, key=lambda error: error.where or Place(""))


def require(entry: Entry, key: str, *, owner: str, hint: str) -> None:
    """Note that a key is needed where it is not there."""
    if not entry.has(key):
        entry.note_error("scenario.missing", f"{owner} needs `{key}`", hint=hint)


def suggest(word: str, known: Sequence[str]) -> str:
    """A hint for a word that is not known: the nearest one, and all there are."""
    near = get_close_matches(word, known, n=1)
    listed = "there are " + ", ".join(f"`{one}`" for one in known)
    return f"did you mean `{near[0]}`? {listed}" if near else listed

"""Decoder for files that users write for Tidegate: all mistakes at once, with location and hint.

    class Shop(msgspec.Struct, forbid_unknown_fields=True):
        name: str
        opens: Duration = Ms(0)

    decode(text, "shop.yaml", Shop, noun="shop")

The types define the format: known and required keys, bounds (`msgspec.Meta`), the values of an
enum, the struct that a tag selects. A key with a null value counts as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias, TypeVar, cast

import msgspec
from msgspec import inspect

from tidegate.documents.build import parse_document
from tidegate.documents.document import format_path
from tidegate.documents.locations import Outline, build_outline
from tidegate.documents.split import DocumentText, split_documents
from tidegate.errors import DocumentError, FileError, Location, TidegateError, sanitize
from tidegate.model.k8s.objects import FieldPath, Json
from tidegate.model.text.suggest import suggest_one_of
from tidegate.model.times import Ms, format_duration, parse_duration

FileProblem = tuple[FieldPath, TidegateError]
"""The path of a wrong field, and the error about it."""
_T = TypeVar("_T")
Check: TypeAlias = Callable[[_T], Iterable[FileProblem]]
"""A check of constraints that a type cannot express."""


class _TypeDescription(NamedTuple):
    """The Python types, the noun and the hint for values of a type."""

    python: tuple[type, ...]
    """The Python types of a value."""
    noun: str
    """How messages call such a value."""
    hint: str
    """Hint for a value of another type."""


_MAPPING = _TypeDescription((dict,), "a mapping", "write keys and values below it")
_LIST = _TypeDescription((list,), "a list", "write each entry on a line of its own, after `-`")
_TEXT = _TypeDescription((str,), "text", "put it in quotes")
_DESCRIPTIONS: dict[type[inspect.Type], _TypeDescription] = {
    inspect.StructType: _MAPPING,
    inspect.DictType: _MAPPING,
    inspect.VarTupleType: _LIST,
    inspect.StrType: _TEXT,
    inspect.EnumType: _TEXT,
    inspect.BoolType: _TypeDescription((bool,), "`true` or `false`", "write it without quotes"),
    inspect.IntType: _TypeDescription((int,), "a whole number", "write it without quotes"),
    inspect.FloatType: _TypeDescription((float, int), "a number", "write it without quotes"),
    inspect.Metadata: _TypeDescription(
        (str, int, float), "a duration", "write it like `250ms`, `2s` or `1m30s`"
    ),
}


def decode(
    text: str | bytes, name: str, into: type[_T], *, noun: str, check: Check[_T] = lambda _: ()
) -> tuple[_T, ...]:
    """Decode the documents of a file. Raises one ExceptionGroup with an error for each mistake.

    `noun` names such a file in messages; `check` is called for values that match their type.
    """
    return tuple(value for value, _ in _decode(text, name, into, noun, check))


def decode_single(
    text: str | bytes, name: str, into: type[_T], *, noun: str, check: Check[_T] = lambda _: ()
) -> _T:
    """Decode a file of one document. An empty file is decoded like an empty mapping.

    Raises one ExceptionGroup with an error for each mistake.
    """
    return _decode_single(text, name, into, noun, check)[0]


def decode_with_locations(
    text: str | bytes, name: str, into: type[_T], *, noun: str, check: Check[_T] = lambda _: ()
) -> tuple[_T, Callable[[FieldPath], Location]]:
    """Decode a file of one document, and return a function that locates its keys and items.

    Raises one ExceptionGroup with an error for each mistake.
    """
    value, part = _decode_single(text, name, into, noun, check)
    return value, build_outline(part).find_location if part else lambda _: Location(name)


def _decode_single(
    text: str | bytes, name: str, into: type[_T], noun: str, check: Check[_T]
) -> tuple[_T, DocumentText | None]:
    decoded = _decode(text, name, into, noun, check)
    if len(decoded) > 1:
        problem = f"a {noun} has one document, but another one starts here"
        location, hint = (
            build_outline(decoded[1][1]).find_location(()),
            "move them to separate files",
        )
        error = FileError("file.documents", problem, location=location, hint=hint)
        raise ExceptionGroup(f"{noun} {name} cannot be used", [error])
    return decoded[0] if decoded else (msgspec.convert({}, into), None)


def _decode(
    text: str | bytes, name: str, into: type[_T], noun: str, check: Check[_T]
) -> list[tuple[_T, DocumentText]]:
    """Return the decoded values, each with the text of its document."""
    decoded: list[tuple[_T, DocumentText]] = []
    errors: list[TidegateError] = []
    try:
        for part in split_documents(text, name):
            parsed = parse_document(part)
            if parsed is None or parsed.value is None:
                continue
            decoder = _Decoder(noun)
            plain = decoder.read(_type_info(cast("Hashable", into)), parsed.value, ())
            if not decoder.problems:
                decoded.append((msgspec.convert(plain, into), part))
                decoder.problems += check(decoded[-1][0])
            if decoder.problems or parsed.may_have_duplicates:
                errors += _located_errors(build_outline(part), decoder.problems)
    except DocumentError as error:
        errors.append(error)
    if errors:
        sorted_errors = sorted(errors, key=lambda problem: problem.location or Location(""))
        raise ExceptionGroup(f"{noun} {name} cannot be used", sorted_errors)
    return decoded


def _located_errors(
    document_outline: Outline, problems: Iterable[FileProblem]
) -> Iterator[TidegateError]:
    for path, error in problems:
        error.location = document_outline.find_location(path).with_field(format_path(path))
        yield error
    for duplicate in document_outline.duplicates:
        key = sanitize(str(duplicate.path[-1]))
        problem = f"`{key}` is duplicated, first in line {duplicate.first.line}"
        hint = "remove one of the two"
        yield FileError("file.duplicate", problem, location=duplicate.last, hint=hint)


class _Decoder(msgspec.Struct):
    """Decoder that walks a value and its type side by side."""

    noun: str
    """How messages call the file."""
    problems: list[FileProblem] = msgspec.field(default_factory=list)
    """The mistakes found so far."""

    def read(self, kind: inspect.Type, value: Json, path: FieldPath, owner: str = "") -> Json:
        """Return a value in the form that its type requires.

        `owner` names the owner of its keys in messages, if it is not the value itself.
        """
        match kind:
            case inspect.Metadata():
                return self._read_duration(kind, value, path)
            case inspect.UnionType():
                return self._read_union(kind, value, path, owner)
            case inspect.CustomType() | inspect.AnyType():
                return value
            case _ if _is_instance(kind, value):
                return self._read_plain(kind, value, path, owner)
            case _:
                self._report_type((kind,), value, path)
                return None

    def _read_plain(self, kind: inspect.Type, value: Json, path: FieldPath, owner: str) -> Json:
        match kind, value:
            case inspect.StructType(), dict():
                return self._read_struct(kind, value, path, owner)
            case inspect.DictType(), dict():
                return {
                    key: self.read(kind.value_type, child, (*path, key))
                    for key, child in value.items()
                }
            case inspect.VarTupleType(), list():
                return [
                    self.read(kind.item_type, child, (*path, index))
                    for index, child in enumerate(value)
                ]
            case _:
                self._check_leaf(kind, value, path)
                return value

    def _read_struct(
        self, kind: inspect.StructType, value: dict[str, Json], path: FieldPath, owner: str
    ) -> Json:
        fields = {field.encode_name: field for field in kind.fields}
        tag = {kind.tag_field: kind.tag} if kind.tag_field else {}
        known = (*tag, *fields)
        for key in value:
            if key not in known and kind.forbid_unknown_fields:
                owner = f"`{kind.tag}`" if tag else owner or self._name(path)
                problem = f"{owner} has no key `{sanitize(key)}`"
                error = FileError("file.key", problem, hint=suggest_one_of(key, known))
                self.problems.append(((*path, key), error))
        result: dict[str, Json] = {**tag}
        for key, field in fields.items():
            if value.get(key) is not None:
                child_owner = f"`{key}` of `{kind.tag}`" if tag else ""
                result[key] = self.read(field.type, value[key], (*path, key), child_owner)
            elif field.required:
                owner = f"`{kind.tag}`" if tag else owner or self._name(path)
                hint = f"add it: `{key}` is {_describe(field.type).noun}"
                error = FileError("file.missing", f"{owner} needs `{key}`", hint=hint)
                self.problems.append((path, error))
        return result

    def _read_union(
        self, kind: inspect.UnionType, value: Json, path: FieldPath, owner: str
    ) -> Json:
        kinds = tuple(member for member in kind.types if not isinstance(member, inspect.NoneType))
        tagged = {
            str(member.tag): member
            for member in kinds
            if isinstance(member, inspect.StructType) and member.tag
        }
        if tagged and isinstance(value, dict):
            return self._read_tagged(tagged, value, path)
        matching = [member for member in kinds if len(kinds) == 1 or _is_instance(member, value)]
        if matching:
            return self.read(matching[0], value, path, owner)
        self._report_type(kinds, value, path)
        return None

    def _read_tagged(
        self, kinds: dict[str, inspect.StructType], value: dict[str, Json], path: FieldPath
    ) -> Json:
        """Read a mapping whose struct is selected by one of its keys."""
        key = next(iter(kinds.values())).tag_field or ""
        tag = value.get(key)
        if tag is None:
            problem, hint = f"{self._name(path)} needs `{key}`", suggest_one_of("", tuple(kinds))
            self.problems.append((path, FileError("file.missing", problem, hint=hint)))
        elif not isinstance(tag, str):
            self._report_type((inspect.StrType(),), tag, (*path, key))
        elif tag not in kinds:
            self._report_unknown_word(tag, tuple(kinds), (*path, key))
        else:
            return self._read_struct(kinds[tag], value, path, "")
        return None

    def _read_duration(self, kind: inspect.Metadata, value: Json, path: FieldPath) -> Json:
        """Return a duration in milliseconds. Zero needs no unit."""
        step, least = (kind.extra or {})["step"], getattr(kind.type, "ge", None) or 0
        name = f"`{path[-1]}`"
        try:
            text = "0s" if value == 0 and not isinstance(value, bool) else value
            duration = parse_duration(text if isinstance(text, str) else "")
        except ValueError as error:
            shown = sanitize(str(value)) if isinstance(value, str | int | float) else "…"
            reason = error if isinstance(value, str) else "not a duration"
            problem = f"{name} is `{shown}`, which is {reason}"
            self.problems.append(
                (path, FileError("file.duration", problem, hint=_describe(kind).hint))
            )
            return 0
        if duration < 0:
            problem = f"{name} is `{sanitize(str(value))}`, which is negative"
            self._report_value(problem, path, "remove the minus sign")
        elif duration < least:
            problem = f"{name} must be {format_duration(Ms(least))} or more"
            self._report_value(problem, path, _describe(kind).hint)
        elif duration % step:
            self._report_value(f"{name} must be whole seconds", path, "write it like `2s`")
        return duration

    def _check_leaf(self, kind: inspect.Type, value: Json, path: FieldPath) -> None:
        if isinstance(kind, inspect.EnumType) and isinstance(value, str):
            words = tuple(str(word.value) for word in kind.cls)
            if value not in words:
                self._report_unknown_word(value, words, path)
        if isinstance(kind, inspect.IntType | inspect.FloatType) and isinstance(value, int | float):
            least, most = kind.ge, kind.le
            if (least is not None and value < least) or (most is not None and value > most):
                bounds = f"{least} or more" if most is None else f"from {least} to {most}"
                problem = f"{self._name(path)} must be {bounds}, not `{value}`"
                self._report_value(problem, path, f"write a number {bounds}")

    def _report_unknown_word(self, word: str, known: tuple[str, ...], path: FieldPath) -> None:
        key = next(step for step in reversed(path) if isinstance(step, str))
        self._report_value(f"unknown {key} `{sanitize(word)}`", path, suggest_one_of(word, known))

    def _report_value(self, problem: str, path: FieldPath, hint: str) -> None:
        self.problems.append((path, FileError("file.value", problem, hint=hint)))

    def _report_type(self, kinds: Sequence[inspect.Type], value: Json, path: FieldPath) -> None:
        expected = " or ".join(dict.fromkeys(_describe(kind).noun for kind in kinds))
        nouns = (
            description.noun
            for description in _DESCRIPTIONS.values()
            if type(value) in description.python
        )
        actual = "a decimal number" if isinstance(value, float) else next(nouns, "nothing")
        problem = f"{self._name(path)} must be {expected}, not {actual}"
        hint = _describe(kinds[0]).hint
        self.problems.append((path, FileError("file.type", problem, hint=hint)))

    def _name(self, path: FieldPath) -> str:
        """Return the name of the field at a path for messages."""
        match path:
            case (*_, str() as key):
                return f"`{sanitize(key)}`"
            case (*_, str() as key, int()):
                return f"an entry of `{sanitize(key)}`"
            case ():
                return f"a {self.noun}"
            case _:
                return "an entry"


@cache
def _type_info(into: Hashable) -> inspect.Type:
    return inspect.type_info(into)


def _is_instance(kind: inspect.Type, value: Json) -> bool:
    return type(value) in _DESCRIPTIONS[type(kind)].python


def _describe(kind: inspect.Type) -> _TypeDescription:
    """Return the description of a type; for a union, of its first member."""
    return _DESCRIPTIONS[type(kind.types[0] if isinstance(kind, inspect.UnionType) else kind)]

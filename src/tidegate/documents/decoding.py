"""Files that users write for us, as values: every mistake at once, each with its place and a hint.

    class Shop(msgspec.Struct, forbid_unknown_fields=True):
        name: str
        opens: Span = Ms(0)

    decode(text, "shop.yaml", Shop, noun="shop")

The types say all: which keys there are and which are needed, bounds (`msgspec.Meta`), the words of
an enum, the form that a tag chooses. A key without a value is a key that is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from typing import NamedTuple, TypeAlias, TypeVar, cast

import msgspec
from msgspec import inspect

from tidegate.documents.build import build
from tidegate.documents.document import FieldPath, path_text
from tidegate.documents.outline import Outline, outline
from tidegate.documents.stream import FilePart, split
from tidegate.errors import DocumentError, FileError, Place, TidegateError, foreign
from tidegate.model.moment import Ms, format_duration, parse_duration
from tidegate.model.objects import Json

Flaw = tuple[FieldPath, TidegateError]
"""A mistake, and the path of what is wrong."""
_T = TypeVar("_T")
Check: TypeAlias = Callable[[_T], Iterable[Flaw]]
"""What a type cannot say of a value."""


class _TypeForm(NamedTuple):
    """What a value of a type is in Python and in words, and how it is written."""

    python: tuple[type, ...]
    word: str
    hint: str


_MAPPING = _TypeForm((dict,), "a mapping", "write keys and values below it")
_LIST = _TypeForm((list,), "a list", "write each entry on a line of its own, after `-`")
_TEXT = _TypeForm((str,), "text", "put it in quotes")
_FORMS: dict[type[inspect.Type], _TypeForm] = {
    inspect.StructType: _MAPPING,
    inspect.DictType: _MAPPING,
    inspect.VarTupleType: _LIST,
    inspect.StrType: _TEXT,
    inspect.EnumType: _TEXT,
    inspect.BoolType: _TypeForm((bool,), "`true` or `false`", "write it without quotes"),
    inspect.IntType: _TypeForm((int,), "a whole number", "write it without quotes"),
    inspect.FloatType: _TypeForm((float, int), "a number", "write it without quotes"),
    inspect.Metadata: _TypeForm(
        (str, int, float), "a duration", "write it like `250ms`, `2s` or `1m30s`"
    ),
}


def decode(
    text: str | bytes, name: str, into: type[_T], *, noun: str, check: Check[_T] = lambda _: ()
) -> tuple[_T, ...]:
    """The documents of a file as values. Raises one ExceptionGroup with an error for each mistake.

    `noun` is what such a file is called; `check` is asked about values that their type allows.
    """
    return tuple(value for value, _ in _decode(text, name, into, noun, check))


def decode_one(
    text: str | bytes, name: str, into: type[_T], *, noun: str, check: Check[_T] = lambda _: ()
) -> _T:
    """The same for a file of one document; of an empty one, what there is without any key."""
    return _decode_one(text, name, into, noun, check)[0]


def decode_placed(
    text: str | bytes, name: str, into: type[_T], *, noun: str, check: Check[_T] = lambda _: ()
) -> tuple[_T, Callable[[FieldPath], Place]]:
    """The same, with what tells where a key or an entry is written."""
    value, part = _decode_one(text, name, into, noun, check)
    return value, outline(part).find if part else lambda _: Place(name)


def _decode_one(
    text: str | bytes, name: str, into: type[_T], noun: str, check: Check[_T]
) -> tuple[_T, FilePart | None]:
    found = _decode(text, name, into, noun, check)
    if len(found) > 1:
        problem = f"a {noun} is one document, and here begins another"
        where, hint = outline(found[1][1]).find(()), "put them into files of their own"
        error = FileError("file.documents", problem, where=where, hint=hint)
        raise ExceptionGroup(f"{noun} {name} cannot be used", [error])
    return found[0] if found else (msgspec.convert({}, into), None)


def _decode(
    text: str | bytes, name: str, into: type[_T], noun: str, check: Check[_T]
) -> list[tuple[_T, FilePart]]:
    """Values, and the parts of the file that they are made of."""
    found: list[tuple[_T, FilePart]] = []
    wrong: list[TidegateError] = []
    try:
        for part in split(text, name):
            built = build(part)
            if built is None or built.value is None:
                continue
            walk = _Decoding(noun)
            made = walk.read(_type_info(cast("Hashable", into)), built.value, ())
            if not walk.flaws:
                found.append((msgspec.convert(made, into), part))
                walk.flaws += check(found[-1][0])
            if walk.flaws or built.suspicious:
                wrong += _placed(outline(part), walk.flaws)
    except DocumentError as error:
        wrong.append(error)
    if wrong:
        told = sorted(wrong, key=lambda one: one.where or Place(""))
        raise ExceptionGroup(f"{noun} {name} cannot be used", told)
    return found


def suggest(word: str, known: Sequence[str]) -> str:
    """A hint for a word that is not known: the nearest one, and all there are."""
    near = get_close_matches(word, known, n=1)
    listed = "there are " + ", ".join(f"`{one}`" for one in known)
    return f"did you mean `{near[0]}`? {listed}" if near else listed


def _placed(shape: Outline, flaws: Iterable[Flaw]) -> Iterator[TidegateError]:
    for path, error in flaws:
        error.where = shape.find(path).at(path_text(path))
        yield error
    for twice in shape.duplicates:
        key = foreign(str(twice.path[-1]))
        problem = f"`{key}` is written twice, first in line {twice.first.line}"
        hint = "remove one of the two"
        yield FileError("file.duplicate", problem, where=twice.last, hint=hint)


class _Decoding(msgspec.Struct):
    """One way through a value and its type, side by side."""

    noun: str
    flaws: list[Flaw] = msgspec.field(default_factory=list)

    def read(self, kind: inspect.Type, value: Json, path: FieldPath, owner: str = "") -> Json:
        """A value as its type wants it; `owner` is what its keys belong to, if not to itself."""
        match kind:
            case inspect.Metadata():
                return self._read_span(kind, value, path)
            case inspect.UnionType():
                return self._read_one_of(kind, value, path, owner)
            case inspect.CustomType() | inspect.AnyType():
                return value
            case _ if _is_a(kind, value):
                return self._read_plain(kind, value, path, owner)
            case _:
                self._note_type((kind,), value, path)
                return None

    def _read_plain(self, kind: inspect.Type, value: Json, path: FieldPath, owner: str) -> Json:
        match kind, value:
            case inspect.StructType(), dict():
                return self._read_struct(kind, value, path, owner)
            case inspect.DictType(), dict():
                return {
                    key: self.read(kind.value_type, one, (*path, key)) for key, one in value.items()
                }
            case inspect.VarTupleType(), list():
                return [
                    self.read(kind.item_type, one, (*path, place))
                    for place, one in enumerate(value)
                ]
            case _:
                self._check_leaf(kind, value, path)
                return value

    def _read_struct(
        self, kind: inspect.StructType, value: dict[str, Json], path: FieldPath, owner: str
    ) -> Json:
        fields = {one.encode_name: one for one in kind.fields}
        tag = {kind.tag_field: kind.tag} if kind.tag_field else {}
        known = (*tag, *fields)
        for key in value:
            if key not in known and kind.forbid_unknown_fields:
                owner = f"`{kind.tag}`" if tag else owner or self._name(path)
                problem = f"{owner} has no key `{foreign(key)}`"
                error = FileError("file.key", problem, hint=suggest(key, known))
                self.flaws.append(((*path, key), error))
        made: dict[str, Json] = {**tag}
        for key, one in fields.items():
            if value.get(key) is not None:
                inner = f"`{key}` of `{kind.tag}`" if tag else ""
                made[key] = self.read(one.type, value[key], (*path, key), inner)
            elif one.required:
                owner = f"`{kind.tag}`" if tag else owner or self._name(path)
                hint = f"add it: `{key}` is {_form(one.type).word}"
                error = FileError("file.missing", f"{owner} needs `{key}`", hint=hint)
                self.flaws.append((path, error))
        return made

    def _read_one_of(
        self, kind: inspect.UnionType, value: Json, path: FieldPath, owner: str
    ) -> Json:
        kinds = tuple(one for one in kind.types if not isinstance(one, inspect.NoneType))
        tagged = {
            str(one.tag): one for one in kinds if isinstance(one, inspect.StructType) and one.tag
        }
        if tagged and isinstance(value, dict):
            return self._read_tagged(tagged, value, path)
        fitting = [one for one in kinds if len(kinds) == 1 or _is_a(one, value)]
        if fitting:
            return self.read(fitting[0], value, path, owner)
        self._note_type(kinds, value, path)
        return None

    def _read_tagged(
        self, kinds: dict[str, inspect.StructType], value: dict[str, Json], path: FieldPath
    ) -> Json:
        """The form of a mapping is told by one of its keys."""
        key = next(iter(kinds.values())).tag_field or ""
        tag = value.get(key)
        if tag is None:
            problem, hint = f"{self._name(path)} needs `{key}`", suggest("", tuple(kinds))
            self.flaws.append((path, FileError("file.missing", problem, hint=hint)))
        elif not isinstance(tag, str):
            self._note_type((inspect.StrType(),), tag, (*path, key))
        elif tag not in kinds:
            self._note_word(tag, tuple(kinds), (*path, key))
        else:
            return self._read_struct(kinds[tag], value, path, "")
        return None

    def _read_span(self, kind: inspect.Metadata, value: Json, path: FieldPath) -> Json:
        """A duration, in milliseconds. Zero needs no unit."""
        step, least = (kind.extra or {})["step"], getattr(kind.type, "ge", None) or 0
        name = f"`{path[-1]}`"
        try:
            written = "0s" if value == 0 and not isinstance(value, bool) else value
            span = parse_duration(written if isinstance(written, str) else "")
        except ValueError as error:
            shown = foreign(str(value)) if isinstance(value, str | int | float) else "…"
            why = error if isinstance(value, str) else "not a duration"
            problem = f"{name} is `{shown}`, which is {why}"
            self.flaws.append((path, FileError("file.duration", problem, hint=_form(kind).hint)))
            return 0
        if span < 0:
            problem = f"{name} is `{foreign(str(value))}`, and time does not run backwards"
            self._note_value(problem, path, "remove the minus sign")
        elif span < least:
            problem = f"{name} must be {format_duration(Ms(least))} or more"
            self._note_value(problem, path, _form(kind).hint)
        elif span % step:
            self._note_value(f"{name} must be whole seconds", path, "write it like `2s`")
        return span

    def _check_leaf(self, kind: inspect.Type, value: Json, path: FieldPath) -> None:
        if isinstance(kind, inspect.EnumType) and isinstance(value, str):
            words = tuple(str(word.value) for word in kind.cls)
            if value not in words:
                self._note_word(value, words, path)
        if isinstance(kind, inspect.IntType | inspect.FloatType) and isinstance(value, int | float):
            least, most = kind.ge, kind.le
            if (least is not None and value < least) or (most is not None and value > most):
                bounds = f"{least} or more" if most is None else f"from {least} to {most}"
                problem = f"{self._name(path)} must be {bounds}, not `{value}`"
                self._note_value(problem, path, f"write a number {bounds}")

    def _note_word(self, word: str, known: tuple[str, ...], path: FieldPath) -> None:
        key = next(step for step in reversed(path) if isinstance(step, str))
        self._note_value(f"there is no {key} `{foreign(word)}`", path, suggest(word, known))

    def _note_value(self, problem: str, path: FieldPath, hint: str) -> None:
        self.flaws.append((path, FileError("file.value", problem, hint=hint)))

    def _note_type(self, kinds: Sequence[inspect.Type], value: Json, path: FieldPath) -> None:
        wanted = " or ".join(dict.fromkeys(_form(kind).word for kind in kinds))
        known = (form.word for form in _FORMS.values() if type(value) in form.python)
        problem = f"{self._name(path)} must be {wanted}, not {next(known, 'nothing')}"
        hint = _form(kinds[0]).hint
        self.flaws.append((path, FileError("file.type", problem, hint=hint)))

    def _name(self, path: FieldPath) -> str:
        """How people call what stands at a path."""
        match path:
            case (*_, str() as key):
                return f"`{foreign(key)}`"
            case (*_, str() as key, int()):
                return f"an entry of `{foreign(key)}`"
            case ():
                return f"a {self.noun}"
            case _:
                return "an entry"


@cache
def _type_info(into: Hashable) -> inspect.Type:
    return inspect.type_info(into)


def _is_a(kind: inspect.Type, value: Json) -> bool:
    return type(value) in _FORMS[type(kind)].python


def _form(kind: inspect.Type) -> _TypeForm:
    """That of the first type of a union."""
    return _FORMS[type(kind.types[0] if isinstance(kind, inspect.UnionType) else kind)]

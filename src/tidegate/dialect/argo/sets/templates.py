"""Templates of both languages: `{{name}}` by ourselves, Go's by whoever can run Go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from tidegate.dialect.argo.sets.asking import AskTexts, Body, Errand, Fault, Language, Params
from tidegate.documents import FieldPath
from tidegate.errors import foreign
from tidegate.model.objects import Json
from tidegate.model.patterns import late

OPENS, CLOSES = "{{", "}}"
MISSING_FAILS = "missingkey=error"
_TEMPLATED = late(r"\{\{.*\}\}")


class UnclosedText(Exception):  # noqa: N818 - it becomes a Fault where its place is known
    """A text that opens a parameter and does not close it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def filled(text: str, params: Params) -> str:
    """The text with the parameters it names; what is not there, or is no text, stays as it is."""
    if not _TEMPLATED.search(text):
        return text
    made, sign, rest = text.partition(OPENS)
    while sign:
        tag, end, rest = rest.partition(CLOSES)
        if not end:
            raise UnclosedText(text)
        value = params.get(tag.strip()) if tag.strip() else None
        made += value if isinstance(value, str) else f"{OPENS}{tag}{CLOSES}"
        plain, sign, rest = rest.partition(OPENS)
        made += plain
    return made


def fill(
    bodies: Sequence[Json], params: Sequence[Params], language: Language, *, lenient: bool = False
) -> Errand[list[list[Json]]]:
    """For each set of parameters the bodies, with every text and every key filled in.

    Argo CD loses what is null in a mapping on the way. Without parameters nothing is touched.
    The path of a Fault begins with the number of the body.
    """
    if not language.is_go:
        return [_each(bodies, _filler(mine)) if mine else list(bodies) for mine in params]
    texts = tuple(dict.fromkeys(text for one in bodies for text in _texts(one)))
    whole = tuple(mine for mine in params if mine)
    if not texts or not whole:
        return [_each(bodies, str) if mine else list(bodies) for mine in params]
    answer = yield AskTexts(texts, whole, language.options, lenient)
    if answer.flaw is not None:
        flaw = answer.flaw
        raise Fault("argo.set-template", flaw.problem, flaw.hint, _way_to(flaw.text, [*bodies]))
    rows = iter(answer.texts)
    found = (dict(zip(texts, next(rows), strict=True)) if mine else {} for mine in params)
    return [_each(bodies, _finder(row)) if row else list(bodies) for row in found]


def _filler(params: Params) -> Callable[[str], str]:
    return lambda text: filled(text, params)


def _finder(row: dict[str, str]) -> Callable[[str], str]:
    return lambda text: row.get(text, text)


@contextmanager
def located(*starts: FieldPath) -> Iterator[None]:
    """Where the bodies that are filled in begin: a Fault in one of them gets the way to there."""
    try:
        yield
    except Fault as fault:
        number, *rest = fault.path
        fault.path = (*starts[int(number)], *rest)
        raise


def _way_to(wanted: str, value: Json) -> FieldPath:
    """The way to a text, as a value or a key; as far as its container where it is not found."""
    steps: Iterable[tuple[str | int, Json]] = ()
    if isinstance(value, list):
        steps = enumerate(value)
    elif isinstance(value, dict):
        steps = ((key, wanted if key == wanted else one) for key, one in value.items())
    for step, one in steps:
        if one == wanted:
            return (step,)
        if way := _way_to(wanted, one):
            return (step, *way)
    return ()


def _each(bodies: Sequence[Json], change: Callable[[str], str]) -> list[Json]:
    try:
        return [_walk(one, change) for one in bodies]
    except UnclosedText as flaw:
        fix = f"write `{CLOSES}` behind it"
        said = f"`{foreign(flaw.text)}` opens a parameter and does not close it"
        raise Fault("argo.set-template", said, fix, _way_to(flaw.text, [*bodies])) from None


def _texts(value: Json) -> Iterator[str]:
    """Every text with a template in it, keys among them."""
    match value:
        case str() if OPENS in value:
            yield value
        case list():
            for one in value:
                yield from _texts(one)
        case dict():
            for key, one in value.items():
                yield from _texts(key)
                yield from _texts(one)
        case _:
            pass


def _walk(value: Json, change: Callable[[str], str]) -> Json:
    match value:
        case str():
            return change(value)
        case list():
            return [_walk(one, change) for one in value]
        case dict():
            kept = ((key, one) for key, one in value.items() if one is not None)
            return {change(key): _walk(one, change) for key, one in kept}
        case _:
            return value


def with_values(params: list[Params], values: Body, language: Language) -> Errand[list[Params]]:
    """The parameters with `values`, each filled in from the others: none of them sees another."""
    if not values:
        return params
    with located(*(("values", key) for key in values)):
        made = yield from fill([*values.values()], params, language)
    rows = (dict(zip(values, row, strict=True)) for row in made)
    if language.is_go:
        return [{**one, "values": row} for one, row in zip(params, rows, strict=True)]
    return [
        {**one, **{f"values.{key}": value for key, value in row.items()}}
        for one, row in zip(params, rows, strict=True)
    ]

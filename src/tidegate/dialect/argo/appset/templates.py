"""Templates of both languages: `{{name}}`, and Go templates, which a query renders.

Like `Replace` in `applicationset/utils/utils.go` of Argo CD 3.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from tidegate.dialect.argo.appset.queries import (
    GeneratorError,
    Params,
    Procedure,
    TemplateLanguage,
    TemplateQuery,
)
from tidegate.errors import sanitize
from tidegate.model.k8s.objects import FieldPath, Json, JsonObject
from tidegate.model.text.lazy_regex import lazy_regex

OPENS, CLOSES = "{{", "}}"
MISSING_FAILS = "missingkey=error"
_TEMPLATED = lazy_regex(r"\{\{.*\}\}")


class UnclosedParameter(Exception):  # noqa: N818 - it becomes a Fault where its place is known
    """Text that opens a parameter and does not close it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def fill_text(text: str, params: Params) -> str:
    """Fill the parameters of a string; missing parameters and non-strings are kept."""
    if not _TEMPLATED.search(text):
        return text
    result, opening, remainder = text.partition(OPENS)
    while opening:
        tag, closing, remainder = remainder.partition(CLOSES)
        if not closing:
            raise UnclosedParameter(text)
        value = params.get(tag.strip()) if tag.strip() else None
        result += value if isinstance(value, str) else f"{OPENS}{tag}{CLOSES}"
        literal, opening, remainder = remainder.partition(OPENS)
        result += literal
    return result


def fill_templates(
    bodies: Sequence[Json],
    params: Sequence[Params],
    language: TemplateLanguage,
    *,
    lenient: bool = False,
) -> Procedure[list[list[Json]]]:
    """Fill every text and key of the bodies, for each set of parameters.

    Null values in mappings are dropped, like in Argo CD. An empty set of parameters changes
    nothing. The path of a GeneratorError begins with the index of the body.
    """
    if not language.is_go:
        return [
            _transform_all(bodies, _text_filler(param_set)) if param_set else list(bodies)
            for param_set in params
        ]
    texts = tuple(dict.fromkeys(text for body in bodies for text in _template_texts(body)))
    non_empty = tuple(param_set for param_set in params if param_set)
    if not texts or not non_empty:
        return [_transform_all(bodies, str) if param_set else list(bodies) for param_set in params]
    result = yield TemplateQuery(texts, non_empty, language.options, lenient)
    if result.failure is not None:
        failure = result.failure
        raise GeneratorError(
            "appset.template", failure.problem, failure.hint, _find_path(failure.text, [*bodies])
        )
    rows = iter(result.texts)
    tables = (
        dict(zip(texts, next(rows), strict=True)) if param_set else {} for param_set in params
    )
    return [_transform_all(bodies, _table_lookup(row)) if row else list(bodies) for row in tables]


def _text_filler(params: Params) -> Callable[[str], str]:
    return lambda text: fill_text(text, params)


def _table_lookup(row: dict[str, str]) -> Callable[[str], str]:
    return lambda text: row.get(text, text)


@contextmanager
def map_error_path(*paths: FieldPath) -> Iterator[None]:
    """Replace the body index in the path of a GeneratorError by the path of that body."""
    try:
        yield
    except GeneratorError as error:
        body_index, *subpath = error.path
        error.path = (*paths[int(body_index)], *subpath)
        raise


def _find_path(target: str, value: Json) -> FieldPath:
    """Return the path to a text, as a value or a key; empty if it is not found."""
    children: Iterable[tuple[str | int, Json]] = ()
    if isinstance(value, list):
        children = enumerate(value)
    elif isinstance(value, dict):
        children = ((key, target if key == target else child) for key, child in value.items())
    for part, child in children:
        if child == target:
            return (part,)
        if subpath := _find_path(target, child):
            return (part, *subpath)
    return ()


def _transform_all(bodies: Sequence[Json], transform: Callable[[str], str]) -> list[Json]:
    try:
        return [_transform(body, transform) for body in bodies]
    except UnclosedParameter as error:
        fix = f"add `{CLOSES}` after the parameter"
        message = f"`{sanitize(error.text)}` has an unclosed parameter"
        raise GeneratorError(
            "appset.template", message, fix, _find_path(error.text, [*bodies])
        ) from None


def _template_texts(value: Json) -> Iterator[str]:
    """Yield every text with a template, including keys."""
    match value:
        case str() if OPENS in value:
            yield value
        case list():
            for item in value:
                yield from _template_texts(item)
        case dict():
            for key, item in value.items():
                yield from _template_texts(key)
                yield from _template_texts(item)
        case _:
            pass


def _transform(value: Json, transform: Callable[[str], str]) -> Json:
    match value:
        case str():
            return transform(value)
        case list():
            return [_transform(item, transform) for item in value]
        case dict():
            items = ((key, item) for key, item in value.items() if item is not None)
            return {transform(key): _transform(item, transform) for key, item in items}
        case _:
            return value


def with_values(
    params: list[Params], values: JsonObject, language: TemplateLanguage
) -> Procedure[list[Params]]:
    """Return the parameters with `values`, each filled from the parameters, not from each other."""
    if not values:
        return params
    with map_error_path(*(("values", key) for key in values)):
        filled_rows = yield from fill_templates([*values.values()], params, language)
    rows = (dict(zip(values, row, strict=True)) for row in filled_rows)
    if language.is_go:
        return [{**param_set, "values": row} for param_set, row in zip(params, rows, strict=True)]
    return [
        {**param_set, **{f"values.{key}": value for key, value in row.items()}}
        for param_set, row in zip(params, rows, strict=True)
    ]

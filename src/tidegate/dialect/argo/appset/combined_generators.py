"""Dispatch of generators, and the generators that combine others: matrix and merge.

Like `matrix.go` and `merge.go` in `applicationset/generators` of Argo CD 3.6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from tidegate.dialect.argo.appset.external_generators import (
    from_decisions,
    from_plugin,
    from_pull_requests,
    from_scm,
)
from tidegate.dialect.argo.appset.parameters import deep_merge, go_format, select_params
from tidegate.dialect.argo.appset.queries import (
    GeneratorContext,
    GeneratorError,
    Params,
    Procedure,
    TemplateLanguage,
    prefix_error_path,
)
from tidegate.dialect.argo.appset.simple_generators import from_clusters, from_git, from_list
from tidegate.dialect.argo.appset.templates import MISSING_FAILS, fill_templates, map_error_path
from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_list, get_mapping
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.text.suggest import suggest_one_of

GeneratorFunction: TypeAlias = Callable[[JsonObject, GeneratorContext], Procedure[list[Params]]]
SELECTOR, PAIR = "selector", 2
EXCLUDED_FIELDS = ("template", "values")
"""Fields of a generator that are not filled with the parameters of another, or separately."""
MAX_DEPTH = 1
"""Maximum nesting of combining generators."""


def generate_parameters(
    entry: JsonObject, context: GeneratorContext, depth: int = 0
) -> Procedure[list[tuple[str, list[Params]]]]:
    """Generate the parameters of each generator of an entry, filtered by its selector."""
    results = []
    for kind in generator_kinds(entry):
        with prefix_error_path(kind):
            params = yield from _generator_function(kind, depth)(get_mapping(entry, kind), context)
        with prefix_error_path(SELECTOR):
            results.append((kind, select_params(params, entry.get(SELECTOR))))
    return results


def generator_kinds(entry: JsonObject) -> list[str]:
    """Return the generators of an entry, in Argo CD's order. Raises a GeneratorError."""
    unknown = [key for key in entry if key not in GENERATORS and key != SELECTOR]
    if unknown:
        message = f"unknown generator `{sanitize(unknown[0])}`"
        raise GeneratorError(
            "appset.generator",
            message,
            suggest_one_of(unknown[0], tuple(GENERATORS)),
            (unknown[0],),
        )
    kinds = [key for key in GENERATORS if entry.get(key) is not None]
    if not kinds:
        message, fix = (
            "an entry of `generators` sets no generator",
            suggest_one_of("", tuple(GENERATORS)),
        )
        raise GeneratorError("appset.generator", message, fix)
    return kinds


def _generator_function(kind: str, depth: int) -> GeneratorFunction:
    if kind not in {"matrix", "merge"}:
        return GENERATORS[kind]
    if depth > MAX_DEPTH:
        message = f"`{kind}` is nested too deeply: Argo CD supports one level of nesting"
        raise GeneratorError("appset.nested", message, "move its parameters into a list generator")
    combine = from_matrix if kind == "matrix" else from_merge
    return lambda body, context: combine(body, context, depth)


def from_matrix(
    body: JsonObject, context: GeneratorContext, depth: int = 0
) -> Procedure[list[Params]]:
    """Combine the parameters of two generators; the second may use parameters of the first."""
    entries = _entries(body)
    if len(entries) != PAIR:
        message = f"a matrix needs two generators, but this one has {len(entries)}"
        raise GeneratorError(
            "appset.matrix", message, "nest one matrix in another", ("generators",)
        )
    with prefix_error_path("generators", 0):
        first = yield from _single_generator_params(entries[0], context, depth)
    combined: list[Params] = []
    with prefix_error_path("generators", 1):
        second_entries = yield from _fill_entry(entries[1], first, context.language)
        for first_params, entry in zip(first, second_entries, strict=True):
            second = yield from _single_generator_params(entry, context, depth)
            combined += [
                _combine_params(first_params, second_params, is_go=context.language.is_go)
                for second_params in second
            ]
    return combined


def _combine_params(first: Params, second: Params, *, is_go: bool) -> Params:
    if is_go:
        return get_mapping(deep_merge(second, first))
    texts = {key: go_format(value) for key, value in first.items()}
    for key, value in second.items():
        if texts.setdefault(key, go_format(value)) != go_format(value):
            message = f"both generators of a matrix set `{sanitize(key)}`, to different values"
            raise GeneratorError("appset.matrix", message, "rename one, or use `pathParamPrefix`")
    return dict(texts)


def _fill_entry(
    entry: JsonObject, params: list[Params], language: TemplateLanguage
) -> Procedure[list[JsonObject]]:
    """Fill the entry with each set of parameters.

    A parameter that `values` uses may also be one of the generator itself: missing ones are
    kept.
    """
    kinds = [key for key in entry if key != SELECTOR]
    outer: Json = {key: _without(entry[key], EXCLUDED_FIELDS) for key in kinds}
    values: Json = {key: get_mapping(entry[key], "values") for key in kinds}
    with map_error_path(()):
        filled = yield from fill_templates([outer], params, language)
    strict = msgspec.structs.replace(
        language, options=(*_without_missingkey(language), MISSING_FAILS)
    )
    with map_error_path(()):
        filled_values = yield from fill_templates([values], params, strict, lenient=True)
    return [
        _with_values(get_mapping(row[0]), get_mapping(values_row[0]), entry)
        for row, values_row in zip(filled, filled_values, strict=True)
    ]


def _without(value: Json, keys: tuple[str, ...]) -> Json:
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if key not in keys}


def _without_missingkey(language: TemplateLanguage) -> tuple[str, ...]:
    return tuple(option for option in language.options if not option.startswith("missingkey="))


def _with_values(filled: JsonObject, values: JsonObject, entry: JsonObject) -> JsonObject:
    generators = {
        kind: {**get_mapping(generator), "values": values[kind]}
        if get_mapping(values, kind)
        else generator
        for kind, generator in filled.items()
    }
    return {**generators, **{key: entry[key] for key in (SELECTOR,) if key in entry}}


def from_merge(
    body: JsonObject, context: GeneratorContext, depth: int = 0
) -> Procedure[list[Params]]:
    """Merge the parameters of generators by key; keys that only later ones have are dropped."""
    entries, keys = (
        _entries(body),
        [go_format(merge_key) for merge_key in get_list(body, "mergeKeys")],
    )
    if len(entries) < PAIR:
        message = f"a merge needs at least two generators, but this one has {len(entries)}"
        fix = "add a generator, or use this one without `merge`"
        raise GeneratorError("appset.merge", message, fix, ("generators",))
    if not keys:
        message = "`mergeKeys` is missing"
        fix = "add a parameter to `mergeKeys`"
        raise GeneratorError("appset.merge", message, fix, ("mergeKeys",))
    groups = []
    for index, entry in enumerate(entries):
        with prefix_error_path("generators", index):
            groups.append(
                _by_key((yield from _single_generator_params(entry, context, depth)), keys)
            )
    base, *others = groups
    for other in others:
        for key in base.keys() & other.keys():
            is_go = context.language.is_go
            merged = deep_merge(base[key], other[key]) if is_go else {**base[key], **other[key]}
            base[key] = get_mapping(merged)
    return list(base.values())


def _by_key(params: list[Params], keys: list[str]) -> dict[bytes, Params]:
    by_key: dict[bytes, Params] = {}
    for param_set in params:
        key = msgspec.json.encode([param_set.get(name) for name in keys], order="deterministic")
        if key in by_key:
            message = (
                "a generator of a merge returns several results with the same"
                f" `{'`, `'.join(map(sanitize, keys))}`"
            )
            raise GeneratorError("appset.merge", message, "add more parameters to `mergeKeys`")
        by_key[key] = param_set
    return by_key


def _single_generator_params(
    entry: JsonObject, context: GeneratorContext, depth: int
) -> Procedure[list[Params]]:
    if len(generator_kinds(entry)) > 1:
        message = "an entry of a matrix or merge sets more than one generator"
        raise GeneratorError("appset.nested", message, "make each generator a separate entry")
    ((_, params),) = yield from generate_parameters(entry, context, depth + 1)
    return params


def _entries(body: JsonObject) -> list[JsonObject]:
    return [get_mapping(entry) for entry in get_list(body, "generators")]


GENERATORS: dict[str, GeneratorFunction] = {
    "list": from_list,
    "clusters": from_clusters,
    "git": from_git,
    "scmProvider": from_scm,
    "clusterDecisionResource": from_decisions,
    "pullRequest": from_pull_requests,
    "matrix": from_matrix,
    "merge": from_merge,
    "plugin": from_plugin,
}
"""Generators in Argo CD's order."""

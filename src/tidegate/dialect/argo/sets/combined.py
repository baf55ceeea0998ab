"""Generators of generators, and the way from an entry of `generators` to its parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from tidegate.dialect.argo.sets.asking import (
    Body,
    Errand,
    Fault,
    Language,
    Params,
    SetRun,
    inside,
)
from tidegate.dialect.argo.sets.given import (
    from_decisions,
    from_plugin,
    from_pull_requests,
    from_scm,
)
from tidegate.dialect.argo.sets.parameters import chosen, deep_merged, printed
from tidegate.dialect.argo.sets.simple import from_clusters, from_git, from_list
from tidegate.dialect.argo.sets.templates import MISSING_FAILS, fill, located
from tidegate.documents.decoding import suggest
from tidegate.errors import foreign
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping

Maker: TypeAlias = Callable[[Body, SetRun], Errand[list[Params]]]
SELECTOR, PAIR = "selector", 2
NOT_FILLED = ("template", "values")
"""What of a generator the parameters of another do not reach, or in a way of their own."""
DEEPEST = 1
"""How many generators of generators may be inside of one."""


def parameters_of(
    entry: Body, run: SetRun, depth: int = 0
) -> Errand[list[tuple[str, list[Params]]]]:
    """For each generator that an entry names, the parameters that its selector takes."""
    found = []
    for kind in kinds_of(entry):
        with inside(kind):
            params = yield from _maker(kind, depth)(mapping(entry, kind), run)
        with inside(SELECTOR):
            found.append((kind, chosen(params, entry.get(SELECTOR))))
    return found


def kinds_of(entry: Body) -> list[str]:
    """The generators of an entry, in Argo CD's order. Raises a Fault for what is none."""
    strange = [key for key in entry if key not in MAKERS and key != SELECTOR]
    if strange:
        said = f"there is no generator `{foreign(strange[0])}`"
        raise Fault("argo.set-generator", said, suggest(strange[0], tuple(MAKERS)), (strange[0],))
    kinds = [key for key in MAKERS if entry.get(key) is not None]
    if not kinds:
        said, fix = "an entry of `generators` names no generator", suggest("", tuple(MAKERS))
        raise Fault("argo.set-generator", said, fix)
    return kinds


def _maker(kind: str, depth: int) -> Maker:
    if kind not in {"matrix", "merge"}:
        return MAKERS[kind]
    if depth > DEEPEST:
        said = f"`{kind}` is too deep inside of others: Argo CD takes one inside of one"
        raise Fault("argo.set-nested", said, "put its parameters into a list")
    inner = from_matrix if kind == "matrix" else from_merge
    return lambda body, run: inner(body, run, depth)


def from_matrix(body: Body, run: SetRun, depth: int = 0) -> Errand[list[Params]]:
    """Every pair of what two generators find; the second may name parameters of the first."""
    entries = _entries(body)
    if len(entries) != PAIR:
        said = f"a matrix has two generators, and this one has {len(entries)}"
        raise Fault("argo.set-matrix", said, "put one matrix into another", ("generators",))
    with inside("generators", 0):
        first = yield from _only(entries[0], run, depth)
    made: list[Params] = []
    with inside("generators", 1):
        seconds = yield from _interpolated(entries[1], first, run.language)
        for one, entry in zip(first, seconds, strict=True):
            others = yield from _only(entry, run, depth)
            made += [_paired(one, other, is_go=run.language.is_go) for other in others]
    return made


def _paired(first: Params, second: Params, *, is_go: bool) -> Params:
    if is_go:
        return mapping(deep_merged(second, first))
    texts = {key: printed(one) for key, one in first.items()}
    for key, one in second.items():
        if texts.setdefault(key, printed(one)) != printed(one):
            said = f"both generators of a matrix have `{foreign(key)}`, with different values"
            raise Fault("argo.set-matrix", said, "rename one, or use `pathParamPrefix`")
    return dict(texts)


def _interpolated(entry: Body, params: list[Params], language: Language) -> Errand[list[Body]]:
    """The entry once for each set of parameters, with these filled in.

    A parameter that `values` name and that is not there may be one of the generator's own.
    """
    kinds = [key for key in entry if key != SELECTOR]
    outer: Json = {key: _without(entry[key], NOT_FILLED) for key in kinds}
    values: Json = {key: mapping(entry[key], "values") for key in kinds}
    with located(()):
        filled = yield from fill([outer], params, language)
    strict = msgspec.structs.replace(language, options=(*_others(language), MISSING_FAILS))
    with located(()):
        kept = yield from fill([values], params, strict, lenient=True)
    return [
        _with_values(mapping(row[0]), mapping(own[0]), entry)
        for row, own in zip(filled, kept, strict=True)
    ]


def _without(value: Json, keys: tuple[str, ...]) -> Json:
    if not isinstance(value, dict):
        return value
    return {key: one for key, one in value.items() if key not in keys}


def _others(language: Language) -> tuple[str, ...]:
    return tuple(one for one in language.options if not one.startswith("missingkey="))


def _with_values(filled: Body, values: Body, entry: Body) -> Body:
    made = {
        kind: {**mapping(one), "values": values[kind]} if mapping(values, kind) else one
        for kind, one in filled.items()
    }
    return {**made, **{key: entry[key] for key in (SELECTOR,) if key in entry}}


def from_merge(body: Body, run: SetRun, depth: int = 0) -> Errand[list[Params]]:
    """What the first finds, with what the others say of the same keys; what is new is left out."""
    entries, keys = _entries(body), [printed(one) for one in listed(body, "mergeKeys")]
    if len(entries) < PAIR:
        said = f"a merge needs two generators or more, and this one has {len(entries)}"
        fix = "add one, or use the generator by itself"
        raise Fault("argo.set-merge", said, fix, ("generators",))
    if not keys:
        said = "a merge needs `mergeKeys`"
        raise Fault("argo.set-merge", said, "name a parameter", ("mergeKeys",))
    found = []
    for at, entry in enumerate(entries):
        with inside("generators", at):
            found.append(_by_key((yield from _only(entry, run, depth)), keys))
    base, *others = found
    for other in others:
        for key in base.keys() & other.keys():
            is_go = run.language.is_go
            merged = deep_merged(base[key], other[key]) if is_go else {**base[key], **other[key]}
            base[key] = mapping(merged)
    return list(base.values())


def _by_key(params: list[Params], keys: list[str]) -> dict[bytes, Params]:
    found: dict[bytes, Params] = {}
    for one in params:
        key = msgspec.json.encode([one.get(name) for name in keys], order="deterministic")
        if key in found:
            said = (
                f"a generator of a merge finds the same `{'`, `'.join(map(foreign, keys))}` twice"
            )
            raise Fault("argo.set-merge", said, "name more parameters in `mergeKeys`")
        found[key] = one
    return found


def _only(entry: Body, run: SetRun, depth: int) -> Errand[list[Params]]:
    if len(kinds_of(entry)) > 1:
        said = "an entry inside of a matrix or merge names more than one generator"
        raise Fault("argo.set-nested", said, "make entries of them")
    ((_, params),) = yield from parameters_of(entry, run, depth + 1)
    return params


def _entries(body: Body) -> list[Body]:
    return [mapping(one) for one in listed(body, "generators")]


MAKERS: dict[str, Maker] = {
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
"""In the order in which Argo CD goes through them."""

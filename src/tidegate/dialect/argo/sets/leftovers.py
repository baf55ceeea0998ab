"""Parameters that nobody filled in: Argo CD leaves them in the text, and goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from tidegate.dialect.argo.sets.asking import Body, Params
from tidegate.dialect.argo.telling import Telling
from tidegate.documents import FieldPath
from tidegate.errors import foreign
from tidegate.model.objects import Json
from tidegate.model.patterns import late
from tidegate.model.reading import mapping, mappings

TEMPLATE: FieldPath = ("spec", "template")
SOURCED = ("repoURL", "path", "chart", "targetRevision")
LEFT = late(r"\{\{\s*([A-Za-z_][\w.\[\]/-]*)\s*\}\}")
NO_VALUE = "<no value>"
"""What Go writes for a parameter that is not there."""


def tell_left(made: Iterable[tuple[Body, Params]], telling: Telling) -> None:
    """Say once for each field what of it was not filled in, and what may be meant."""
    told: dict[tuple[FieldPath, str], tuple[int, Params]] = {}
    for body, params in made:
        for path, name in _left_in(body):
            count, _ = told.get((path, name), (0, params))
            told[path, name] = (count + 1, params)
    for (path, name), (count, params) in told.items():
        what = f"`{{{{{foreign(name)}}}}}`" if name else "a parameter"
        many = "an Application" if count == 1 else f"{count} Applications"
        near = get_close_matches(name, params, n=1) if name else ()
        fix = f"did you mean `{foreign(near[0])}`?" if near else "name a parameter that is found"
        said = f"{what} is not filled in for {many}"
        why = "no generator finds such a parameter, and Argo CD leaves the text as it is"
        telling.warn("argo.set-left", (*TEMPLATE, *path), said, why, fix)


def _left_in(body: Body) -> Iterator[tuple[FieldPath, str]]:
    """Where something is left, of what says what an Application deploys, and where to."""
    spec = mapping(body, "spec")
    yield from _left(("spec", "project"), spec.get("project"))
    for key in ("server", "name", "namespace"):
        yield from _left(("spec", "destination", key), mapping(spec, "destination").get(key))
    for key in SOURCED:
        yield from _left(("spec", "source", key), mapping(spec, "source").get(key))
    for at, source in enumerate(mappings(spec, "sources")):
        for key in SOURCED:
            yield from _left(("spec", "sources", at, key), source.get(key))


def _left(path: FieldPath, value: Json) -> Iterator[tuple[FieldPath, str]]:
    if isinstance(value, str):
        yield from ((path, name) for name in LEFT.findall(value))
        yield from ((path, "") for _ in range(NO_VALUE in value))

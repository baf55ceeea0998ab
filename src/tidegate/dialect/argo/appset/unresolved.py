"""Unresolved template parameters: Argo CD keeps the placeholder and continues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.dialect.argo.appset.queries import Params
from tidegate.dialect.argo.finding_collector import FindingCollector
from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_mapping, get_mappings
from tidegate.model.k8s.objects import FieldPath, Json, JsonObject
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.text.suggest import suggest

TEMPLATE_PATH: FieldPath = ("spec", "template")
SOURCE_FIELDS = ("repoURL", "path", "chart", "targetRevision")
PLACEHOLDER = lazy_regex(r"\{\{\s*([A-Za-z_][\w.\[\]/-]*)\s*\}\}")
NO_VALUE = "<no value>"
"""Output of Go for a missing parameter."""


def report_unresolved(
    applications: Iterable[tuple[JsonObject, Params]], collector: FindingCollector
) -> None:
    """Report each field with an unresolved parameter once, with a suggestion."""
    unresolved: dict[tuple[FieldPath, str], tuple[int, Params]] = {}
    for body, params in applications:
        for path, name in _unresolved_in_application(body):
            count, _ = unresolved.get((path, name), (0, params))
            unresolved[path, name] = (count + 1, params)
    for (path, name), (count, params) in unresolved.items():
        parameter = f"`{{{{{sanitize(name)}}}}}`" if name else "a parameter"
        subject = "an Application" if count == 1 else f"{count} Applications"
        fix = suggest(name, params, "use a parameter that a generator provides")
        message = f"{parameter} is not resolved for {subject}"
        why = "no generator provides the parameter, and Argo CD keeps the placeholder"
        collector.warn("appset.parameter", (*TEMPLATE_PATH, *path), message, why, fix)


def _unresolved_in_application(body: JsonObject) -> Iterator[tuple[FieldPath, str]]:
    """Yield the unresolved parameters in the source, destination and project of an Application."""
    spec = get_mapping(body, "spec")
    yield from _unresolved_in_value(("spec", "project"), spec.get("project"))
    for key in ("server", "name", "namespace"):
        yield from _unresolved_in_value(
            ("spec", "destination", key), get_mapping(spec, "destination").get(key)
        )
    for key in SOURCE_FIELDS:
        yield from _unresolved_in_value(
            ("spec", "source", key), get_mapping(spec, "source").get(key)
        )
    for index, source in enumerate(get_mappings(spec, "sources")):
        for key in SOURCE_FIELDS:
            yield from _unresolved_in_value(("spec", "sources", index, key), source.get(key))


def _unresolved_in_value(path: FieldPath, value: Json) -> Iterator[tuple[FieldPath, str]]:
    if isinstance(value, str):
        yield from ((path, name) for name in PLACEHOLDER.findall(value))
        yield from ((path, "") for _ in range(NO_VALUE in value))

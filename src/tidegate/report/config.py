"""Effective configuration of a repository as YAML with the origin of each value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tidegate.documents.dump import to_yaml
from tidegate.errors import Location, sanitize
from tidegate.model.config import CONFIG_FILE, Config, LintConfig
from tidegate.model.display_paths import location_text
from tidegate.model.k8s.objects import Json
from tidegate.model.units.bands import Bands
from tidegate.model.units.expressions import HealthExpressions

ConfigPart = tuple[Json, Location]
"""A mapping with one key or a list with one item, and its location."""
ConfigRow = tuple[str, str]
"""A line and the comment after it."""


def config_lines(config: Config) -> Iterator[str]:
    """Yield every key with the line that sets it, or that it is the default."""
    rows = [*_config_rows(config)]
    width = max((len(text) for text, note in rows if note), default=0)
    yield f"# {sanitize(location_text(config.file)) or f'no {CONFIG_FILE} found'}"
    for text, note in rows:
        yield f"{text:{width}}  # {note}" if note else text


def config_document(config: Config) -> Json:
    """Return the configuration as a JSON document."""
    document: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(config))
    return {**_display_mapping(document), "file": location_text(config.file)}


def _display_mapping(document: dict[str, Json]) -> dict[str, Json]:
    """Return a mapping with file names as the user would write them."""
    shown = {key: _display_value(value) for key, value in document.items()}
    location = shown.pop("location", None)
    if isinstance(location, dict):
        shown["location"] = {**location, "name": location_text(str(location["name"]))}
    return shown


def _display_value(value: Json) -> Json:
    if isinstance(value, list):
        return [_display_value(item) for item in value]
    return _display_mapping(value) if isinstance(value, dict) else value


def _config_rows(config: Config) -> Iterator[ConfigRow]:
    clusters: list[ConfigPart] = [
        (
            {cluster.name: _without_empty(context=cluster.context, server=cluster.server)},
            cluster.location,
        )
        for cluster in config.clusters
    ]
    charts: list[ConfigPart] = [
        (
            [
                _without_empty(
                    repository=chart.repository,
                    chart=chart.chart,
                    path=chart.path,
                    version=chart.version,
                )
            ],
            chart.location,
        )
        for chart in config.charts
    ]
    yield from _key_rows("clusters: {}", clusters)
    yield from _key_rows(
        "repositories: {}",
        [
            ({repository.address: repository.path}, repository.location)
            for repository in config.repositories
        ],
    )
    yield from _key_rows("charts: []", charts)
    yield from _key_rows("roots: []", [([entry.text], entry.location) for entry in config.roots])
    yield from _key_rows(
        "ignore: []", [([pattern.text], pattern.location) for pattern in config.ignore]
    )
    yield from _key_rows(
        "settings: {}",
        [({setting.name: setting.value}, setting.location) for setting in config.settings],
    )
    yield from _key_rows(
        "health: []", [([_health_document(health)], health.location) for health in config.health]
    )
    yield from _key_rows("lint: {}", [*_lint_parts(config.lint)])


def _bands_document(bands: Bands) -> dict[str, Json]:
    """Return the bands as they would be written in the file."""
    document: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(bands))
    return document


def _lint_parts(lint: LintConfig) -> Iterator[ConfigPart]:
    if lint.location is None:
        return
    ignored: list[Json] = [
        {"rule": rule.rule, "paths": [*rule.paths], "reason": rule.reason} for rule in lint.ignore
    ]
    values: dict[str, Json] = {
        "ignore": ignored,
        "severity": {code: level.value for code, level in lint.severity.items()},
    }
    defaults, bands = _bands_document(Bands()), _bands_document(lint.bands)
    values["bands"] = {key: value for key, value in bands.items() if value != defaults[key]}
    for key, value in values.items():
        if value:
            yield {key: value}, lint.location


def _key_rows(empty_text: str, parts: Sequence[ConfigPart]) -> Iterator[ConfigRow]:
    """Yield a key and its parts, or its empty form."""
    yield (empty_text.partition(" ")[0], "") if parts else (empty_text, "default")
    for value, location in parts:
        first, *more_lines = (
            f"  {line}" if line else "" for line in to_yaml(value).split("\n")[:-1]
        )
        yield first, f"line {location.line}"
        yield from ((line, "") for line in more_lines)


def _health_document(health: HealthExpressions) -> Json:
    """Return a health rule as written; only the group of its apiVersion counts."""
    group = f"{health.group}/v1" if health.group else "v1"
    fields = {"apiVersion": group, "kind": health.kind, "inProgress": health.in_progress}
    return _without_empty(**fields, failed=health.failed, current=health.current)


def _without_empty(**values: str) -> Json:
    return {key: value for key, value in values.items() if value}

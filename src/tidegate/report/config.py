"""What counts for a repository, as YAML that could be its file, and where each part comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tidegate.documents.dump import to_yaml
from tidegate.errors import Place, foreign
from tidegate.model.bands import Bands
from tidegate.model.config import CONFIG_FILE, Config, LintConfig
from tidegate.model.expressions import HealthExpressions
from tidegate.model.objects import Json
from tidegate.report.places import seen_text

Part = tuple[Json, Place]
"""A mapping with one key, or a list of one, and where it is written."""
Row = tuple[str, str]
"""A line, and what is said beside it."""


def config_lines(config: Config) -> Iterator[str]:
    """Every key, with the line that says it or that it is the default."""
    rows = [*_rows(config)]
    width = max((len(text) for text, note in rows if note), default=0)
    yield f"# {foreign(seen_text(config.file)) or f'there is no {CONFIG_FILE}'}"
    for text, note in rows:
        yield f"{text:{width}}  # {note}" if note else text


def config_document(config: Config) -> Json:
    """All of it, for programs."""
    document: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(config))
    return {**_seen_in(document), "file": seen_text(config.file)}


def _seen_in(part: dict[str, Json]) -> dict[str, Json]:
    """With each place as the user would write it."""
    found = {key: _seen(value) for key, value in part.items()}
    where = found.get("where")
    if isinstance(where, dict):
        found["where"] = {**where, "name": seen_text(str(where["name"]))}
    return found


def _seen(value: Json) -> Json:
    if isinstance(value, list):
        return [_seen(one) for one in value]
    return _seen_in(value) if isinstance(value, dict) else value


def _rows(config: Config) -> Iterator[Row]:
    clusters: list[Part] = [
        ({one.name: _told(context=one.context, server=one.server)}, one.where)
        for one in config.clusters
    ]
    charts: list[Part] = [
        (
            [_told(repository=one.repository, chart=one.chart, path=one.path, version=one.version)],
            one.where,
        )
        for one in config.charts
    ]
    yield from _key("clusters: {}", clusters)
    yield from _key(
        "repositories: {}", [({one.address: one.path}, one.where) for one in config.repositories]
    )
    yield from _key("charts: []", charts)
    yield from _key("entries: []", [([one.text], one.where) for one in config.entries])
    yield from _key("ignore: []", [([one.text], one.where) for one in config.ignore])
    yield from _key("settings: {}", [({one.name: one.value}, one.where) for one in config.settings])
    yield from _key("health: []", [([_told_health(one)], one.where) for one in config.health])
    yield from _key("lint: {}", [*_lint(config.lint)])


def _plain(bands: Bands) -> dict[str, Json]:
    """As it would stand in the file."""
    plain: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(bands))
    return plain


def _lint(lint: LintConfig) -> Iterator[Part]:
    if lint.where is None:
        return
    ignored: list[Json] = [
        {"rule": one.rule, "paths": [*one.paths], "reason": one.reason} for one in lint.ignore
    ]
    told: dict[str, Json] = {
        "ignore": ignored,
        "severity": {code: level.value for code, level in lint.severity.items()},
    }
    usual, bands = _plain(Bands()), _plain(lint.bands)
    told["bands"] = {key: value for key, value in bands.items() if value != usual[key]}
    for key, value in told.items():
        if value:
            yield {key: value}, lint.where


def _key(empty: str, parts: Sequence[Part]) -> Iterator[Row]:
    """A key and its parts; the text that it has without any."""
    yield (empty.partition(" ")[0], "") if parts else (empty, "default")
    for body, where in parts:
        first, *rest = (f"  {line}" if line else "" for line in to_yaml(body).split("\n")[:-1])
        yield first, f"line {where.line}"
        yield from ((line, "") for line in rest)


def _told_health(one: HealthExpressions) -> Json:
    """Of a group alone its name is left; a version says nothing."""
    group = f"{one.group}/v1" if one.group else "v1"
    told = {"apiVersion": group, "kind": one.kind, "inProgress": one.in_progress}
    return _told(**told, failed=one.failed, current=one.current)


def _told(**values: str) -> Json:
    return {key: value for key, value in values.items() if value}

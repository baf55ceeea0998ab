"""Schema of `tidegate.yaml`, with the checks that types cannot express."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidegate.documents.decoder import FileProblem
from tidegate.errors import FileError, redact_urls, sanitize
from tidegate.files import PathEscapeError, PathViolation, normalize_path, resolve_within
from tidegate.model.finding import Severity
from tidegate.model.k8s.objects import FieldPath, Kind
from tidegate.model.units.bands import Bands
from tidegate.source.ignore import is_rule
from tidegate.source.semver import read_version
from tidegate.source.urls import redact_password
from tidegate.source.vendored import ARCHIVE_SUFFIX, read_chart


class ClusterSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    context: str = ""
    server: str = ""
    labels: dict[str, str] = {}


class ChartSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    repository: str
    chart: str
    path: str
    version: str = ""


class HealthSchema(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    api_version: str
    kind: str = ""
    current: str
    in_progress: str = ""
    failed: str = ""


class IgnoreSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    rule: str
    reason: str
    paths: tuple[str, ...] = ()


class LintSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ignore: tuple[IgnoreSchema, ...] = ()
    severity: dict[str, Severity] = {}
    bands: Bands = Bands()


class ConfigSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    clusters: dict[str, ClusterSchema] = {}
    repositories: dict[str, str] = {}
    charts: tuple[ChartSchema, ...] = ()
    roots: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    settings: dict[str, str | bool] = {}
    health: tuple[HealthSchema, ...] = ()
    lint: LintSchema = LintSchema()


class ConfigLocation(NamedTuple):
    """The directory of the file, and the repository that its paths must not leave."""

    folder: Path
    root: Path

    def resolve(self, path: str) -> Path:
        """Return a path of the file in full. Raises PathEscapeError."""
        start = self.folder.relative_to(self.root).as_posix()
        return resolve_within(self.root / normalize_path(path, start), self.root)


def check_config(config: ConfigSchema, location: ConfigLocation) -> Iterator[FileProblem]:
    """Yield the problems of a configuration."""
    yield from _check_clusters(config)
    yield from _check_repositories(config, location)
    for number, chart in enumerate(config.charts):
        yield from _check_chart(chart, ("charts", number), location)
        if chart in config.charts[:number]:
            problem, hint = "duplicate chart", "remove one of the two entries"
            yield _file_problem(("charts", number), problem, hint)
    yield from _check_health(config.health)
    for number, text in enumerate(config.roots):
        yield from _check_path(text, ("roots", number), location)
    for number, text in enumerate(config.ignore):
        if not is_rule(text):
            problem = f"`{sanitize(text)}` is not a valid pattern"
            yield _file_problem(("ignore", number), problem, "use the syntax of `.gitignore`")
    for number, entry in enumerate(config.lint.ignore):
        if not entry.reason.strip():
            field = ("lint", "ignore", number, "reason")
            yield _file_problem(
                field, "`reason` is empty", "write why the rule does not apply here"
            )


def _check_clusters(config: ConfigSchema) -> Iterator[FileProblem]:
    servers: dict[str, str] = {}
    for name, cluster in config.clusters.items():
        field, server = ("clusters", name, "server"), cluster.server.rstrip("/")
        if _has_password(server):
            yield from _check_address(server, field)
        elif server and not server.startswith(("https://", "http://")):
            problem = f"`{sanitize(server)}` is not a server URL"
            yield _file_problem(field, problem, "write a URL such as `https://host:6443`")
        if server in servers:
            shown, owner = redact_password(server), sanitize(servers[server])
            problem = f"cluster `{owner}` already uses the server `{shown}`"
            yield _file_problem(field, problem, "remove one of the two")
        if server:
            servers[server] = name


def _check_address(text: str, field: FieldPath) -> Iterator[FileProblem]:
    shown = redact_password(text)
    if _has_password(text):
        problem = f"`{shown}` contains a password"
        yield _file_problem(
            field, problem, "pass it in the environment or with a credential helper"
        )
    elif ":" not in text:
        hint = "write a URL such as `https://host/path`, `oci://host/path` or `git@host:path`"
        yield _file_problem(field, f"`{shown}` is not a URL", hint)


def _has_password(address: str) -> bool:
    """Return whether an address contains a secret. A user alone is a token, except for ssh."""
    if redact_urls(address) == address:
        return False
    user, _, _ = address.partition("://")[2].rpartition("@")
    return ":" in user or not address.startswith("ssh://")


def _check_repositories(config: ConfigSchema, location: ConfigLocation) -> Iterator[FileProblem]:
    for address, path in config.repositories.items():
        field = ("repositories", address)
        if _has_password(address):
            yield from _check_address(address, field[:1])  # the location would contain the password
            continue
        yield from _check_address(address, field)
        yield from (problems := [*_check_path(path, field, location)])
        if not problems and not location.resolve(path).is_dir():
            hint = "write a path relative to this file"
            yield _file_problem(field, f"`{sanitize(path)}` is not a directory", hint)


def _check_chart(
    entry: ChartSchema, field: FieldPath, location: ConfigLocation
) -> Iterator[FileProblem]:
    yield from _check_address(entry.repository, (*field, "repository"))
    if entry.version and read_version(entry.version) is None:
        problem = f"`{sanitize(entry.version)}` is not a version"
        hint = "write a version such as `1.2.3`, or remove the field"
        yield _file_problem((*field, "version"), problem, hint)
        return
    yield from (problems := [*_check_path(entry.path, (*field, "path"), location)])
    if problems:
        return
    chart_path = location.resolve(entry.path)
    chart = read_chart(chart_path, location.root)
    if chart is None and not (chart_path.name.endswith(ARCHIVE_SUFFIX) and chart_path.is_file()):
        hint = f"set a directory with a `Chart.yaml`, or a `{ARCHIVE_SUFFIX}` archive"
        yield _file_problem((*field, "path"), f"`{sanitize(entry.path)}` is not a chart", hint)
    elif chart is not None and entry.version not in {"", chart.version}:
        problem = f"the chart at `{sanitize(entry.path)}` has version `{sanitize(chart.version)}`"
        hint = f"set `{sanitize(chart.version)}`, or remove the field"
        yield _file_problem((*field, "version"), problem, hint)


def _check_health(rules: tuple[HealthSchema, ...]) -> Iterator[FileProblem]:
    seen: set[tuple[str, str]] = set()
    for number, rule in enumerate(rules):
        key = (Kind.of(rule.api_version, "").group, rule.kind)
        if key in seen:
            problem, hint = "this kind already has an entry", "keep one entry for each kind"
            yield _file_problem(("health", number), problem, hint)
        seen.add(key)


def _check_path(path: str, field: FieldPath, location: ConfigLocation) -> Iterator[FileProblem]:
    try:
        location.resolve(path)
    except PathEscapeError as error:
        is_outside = error.violation is PathViolation.OUTSIDE
        reason = "is outside the repository" if is_outside else error.violation.value
        hint = "write a path relative to this file and inside the repository"
        yield _file_problem(field, f"`{sanitize(path)}` {reason}", hint)


def _file_problem(field: FieldPath, problem: str, hint: str) -> FileProblem:
    return field, FileError("file.value", problem, hint=hint)

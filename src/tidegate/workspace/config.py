"""Configuration of a repository: the closest `tidegate.yaml`, decoded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from posixpath import normpath

import msgspec

from tidegate.documents.decoder import decode_with_locations
from tidegate.errors import DocumentError, Location
from tidegate.files import PathEscapeError, open_file, resolve_within
from tidegate.model.config import (
    CONFIG_FILE,
    ChartMapping,
    ClusterMapping,
    Config,
    ControllerSetting,
    IgnoredRule,
    LintConfig,
    LocatedText,
    RepositoryMapping,
)
from tidegate.model.k8s.objects import FieldPath, Kind
from tidegate.model.units.expressions import HealthExpressions
from tidegate.source import Checkout
from tidegate.source.ignore import is_ignored, read_rules
from tidegate.workspace.config_schema import ConfigLocation, ConfigSchema, LintSchema, check_config
from tidegate.workspace.request import repository_root

MISSPELT_FILE = "tidegate.yml"


def load_config(path: Path) -> Config:
    """Return the configuration of a path. Outside Git, only a file in the directory counts."""
    resolved = path.resolve()
    return read_config(resolved, repository_root(resolved))


def read_config(path: Path, root: Path) -> Config:
    """Return the closest configuration from a path up to its repository root.

    Empty if there is no file. Raises all errors of the file.
    """
    root, file = root.resolve(), _closest_file(path.resolve(), root.resolve())
    if file is None:
        return Config()
    location, name = ConfigLocation(file.parent, root), str(file)
    text = _read_file(file, root, name)
    raw_config, locate = decode_with_locations(
        text,
        name,
        ConfigSchema,
        noun="configuration",
        check=lambda raw_config: check_config(raw_config, location),
    )
    config = _config(raw_config, locate)
    return msgspec.structs.replace(config, file=name, folder=str(file.parent))


def configured_checkouts(config: Config) -> tuple[Checkout, ...]:
    """Return the checkouts of charts, and then of whole repositories: the first match counts."""
    folder = Path(config.folder)
    charts = (
        Checkout(chart.repository, path, is_override=True, chart=chart.chart, version=chart.version)
        for chart in config.charts
        for path in [(folder / chart.path).resolve()]
    )
    repositories = (
        Checkout(repository.address, (folder / repository.path).resolve(), is_override=True)
        for repository in config.repositories
    )
    return (*charts, *repositories)


def filter_ignored(files: Iterable[str], root: Path, config: Config) -> tuple[str, ...]:
    """Return the files below `root` that are not ignored. Patterns are relative to their file."""
    config_parts, root_path = Path(config.folder).parts[1:], root.resolve().as_posix().strip("/")
    rules = read_rules("\n".join(pattern.text for pattern in config.ignore), config_parts)
    if not rules:
        return tuple(files)
    return tuple(file for file in files if not is_ignored(f"{root_path}/{file}", rules))


def _closest_file(path: Path, root: Path) -> Path | None:
    for folder in (path, *path.parents):
        if not folder.is_relative_to(root):
            break
        if os.path.lexists(folder / CONFIG_FILE):
            return folder / CONFIG_FILE
        if (folder / MISSPELT_FILE).is_file():
            problem, hint = f"`{MISSPELT_FILE}` is ignored", f"rename it to `{CONFIG_FILE}`"
            location = Location(str(folder / MISSPELT_FILE))
            raise DocumentError("documents.file", problem, location=location, hint=hint)
    return None


def _read_file(file: Path, root: Path, name: str) -> bytes:
    try:
        with open_file(resolve_within(file, root)) as stream:
            return stream.read()
    except (OSError, PathEscapeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"the path {error}"
        problem = f"cannot read the file: {reason}"
        raise DocumentError("documents.file", problem, location=Location(name)) from None


def _config(raw_config: ConfigSchema, locate: Callable[[FieldPath], Location]) -> Config:
    return Config(
        clusters=tuple(
            ClusterMapping(
                name,
                cluster.context or name,
                cluster.server.rstrip("/"),
                locate(("clusters", name)),
                cluster.labels,
            )
            for name, cluster in raw_config.clusters.items()
        ),
        repositories=tuple(
            RepositoryMapping(address, path, locate(("repositories", address)))
            for address, path in raw_config.repositories.items()
        ),
        charts=tuple(
            ChartMapping(
                chart.repository, chart.chart, chart.path, chart.version, locate(("charts", index))
            )
            for index, chart in enumerate(raw_config.charts)
        ),
        roots=tuple(
            LocatedText(normpath(text), locate(("roots", index)))
            for index, text in enumerate(raw_config.roots)
        ),
        ignore=tuple(
            LocatedText(text, locate(("ignore", index)))
            for index, text in enumerate(raw_config.ignore)
        ),
        settings=tuple(
            ControllerSetting(name, value, locate(("settings", name)))
            for name, value in raw_config.settings.items()
        ),
        health=tuple(
            HealthExpressions(
                group=Kind.of(rule.api_version, "").group,
                kind=rule.kind,
                current=rule.current,
                in_progress=rule.in_progress,
                failed=rule.failed,
                location=locate(("health", index)),
            )
            for index, rule in enumerate(raw_config.health)
        ),
        lint=LintConfig(
            ignore=tuple(
                IgnoredRule(rule.rule, rule.paths, rule.reason, locate(("lint", "ignore", index)))
                for index, rule in enumerate(raw_config.lint.ignore)
            ),
            severity=raw_config.lint.severity,
            bands=raw_config.lint.bands,
            location=locate(("lint",)) if raw_config.lint != LintSchema() else None,
        ),
    )

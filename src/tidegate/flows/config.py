"""A repository's own configuration: the nearest `tidegate.yaml`, and what it comes to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from posixpath import normpath

import msgspec

from tidegate.documents import FieldPath
from tidegate.documents.decoding import decode_placed
from tidegate.errors import DocumentError, Place
from tidegate.files import StrayPathError, follow, open_file
from tidegate.flows.config_form import ConfigForm, Ground, LintForm, flaws
from tidegate.flows.pointing import look_from
from tidegate.model.config import (
    CONFIG_FILE,
    ChartMap,
    ClusterMap,
    Config,
    ConfigText,
    IgnoredRule,
    LintConfig,
    RepositoryMap,
    Switch,
)
from tidegate.model.expressions import HealthExpressions
from tidegate.model.objects import Kind
from tidegate.source import Checkout
from tidegate.source.ignore import is_ignored, read_rules

MISSPELT = "tidegate.yml"


def config_at(path: Path) -> Config:
    """What counts at a path; outside Git, only a file in the very directory does."""
    place = path.resolve()
    return read_config(place, look_from(place))


def read_config(path: Path, root: Path) -> Config:
    """The nearest file from a path up to the root of its repository. Raises all its mistakes."""
    root, file = root.resolve(), _nearest(path.resolve(), root.resolve())
    if file is None:
        return Config()
    ground, name = Ground(file.parent, root), str(file)
    text = _read(file, root, name)
    form, place_of = decode_placed(
        text, name, ConfigForm, noun="configuration", check=lambda form: flaws(form, ground)
    )
    made = _config(form, place_of)
    return msgspec.structs.replace(made, file=name, folder=str(file.parent))


def checkouts_of(config: Config) -> tuple[Checkout, ...]:
    """What stands for charts, and then for whole repositories: the first that fits counts."""
    folder = Path(config.folder)
    charts = (
        Checkout(one.repository, place, always=True, chart=one.chart, version=one.version)
        for one in config.charts
        for place in [(folder / one.path).resolve()]
    )
    whole = (
        Checkout(one.address, (folder / one.path).resolve(), always=True)
        for one in config.repositories
    )
    return (*charts, *whole)


def without_ignored(files: Iterable[str], root: Path, config: Config) -> tuple[str, ...]:
    """The files below `root` that are looked at. Patterns are seen from their file."""
    below, above = Path(config.folder).parts[1:], root.resolve().as_posix().strip("/")
    rules = read_rules("\n".join(one.text for one in config.ignore), below)
    if not rules:
        return tuple(files)
    return tuple(one for one in files if not is_ignored(f"{above}/{one}", rules))


def _nearest(path: Path, root: Path) -> Path | None:
    for folder in (path, *path.parents):
        if not folder.is_relative_to(root):
            break
        if os.path.lexists(folder / CONFIG_FILE):
            return folder / CONFIG_FILE
        if (folder / MISSPELT).is_file():
            problem, hint = f"`{MISSPELT}` is not looked at", f"call it `{CONFIG_FILE}`"
            where = Place(str(folder / MISSPELT))
            raise DocumentError("documents.file", problem, where=where, hint=hint)
    return None


def _read(file: Path, root: Path, name: str) -> bytes:
    try:
        with open_file(follow(file, root)) as opened:
            return opened.read()
    except (OSError, StrayPathError) as error:
        why = error.strerror if isinstance(error, OSError) else f"it {error}"
        problem = f"this file cannot be read: {why}"
        raise DocumentError("documents.file", problem, where=Place(name)) from None


def _config(form: ConfigForm, place_of: Callable[[FieldPath], Place]) -> Config:
    return Config(
        clusters=tuple(
            ClusterMap(
                name,
                one.context or name,
                one.server.rstrip("/"),
                place_of(("clusters", name)),
                one.labels,
            )
            for name, one in form.clusters.items()
        ),
        repositories=tuple(
            RepositoryMap(address, path, place_of(("repositories", address)))
            for address, path in form.repositories.items()
        ),
        charts=tuple(
            ChartMap(one.repository, one.chart, one.path, one.version, place_of(("charts", at)))
            for at, one in enumerate(form.charts)
        ),
        entries=tuple(
            ConfigText(normpath(text), place_of(("entries", at)))
            for at, text in enumerate(form.entries)
        ),
        ignore=tuple(
            ConfigText(text, place_of(("ignore", at))) for at, text in enumerate(form.ignore)
        ),
        settings=tuple(
            Switch(name, value, place_of(("settings", name)))
            for name, value in form.settings.items()
        ),
        health=tuple(
            HealthExpressions(
                group=Kind.of(one.api_version, "").group,
                kind=one.kind,
                current=one.current,
                in_progress=one.in_progress,
                failed=one.failed,
                where=place_of(("health", at)),
            )
            for at, one in enumerate(form.health)
        ),
        lint=LintConfig(
            ignore=tuple(
                IgnoredRule(one.rule, one.paths, one.reason, place_of(("lint", "ignore", at)))
                for at, one in enumerate(form.lint.ignore)
            ),
            severity=form.lint.severity,
            bands=form.lint.bands,
            where=place_of(("lint",)) if form.lint != LintForm() else None,
        ),
    )

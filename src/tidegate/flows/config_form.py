"""The keys of a `tidegate.yaml`, and what their types cannot say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidegate.documents import FieldPath
from tidegate.documents.decoding import Flaw
from tidegate.errors import FileError, foreign, without_user
from tidegate.files import Stray, StrayPathError, follow, tidy
from tidegate.model.bands import Bands
from tidegate.model.finding import Severity
from tidegate.model.objects import Kind
from tidegate.source.ignore import is_rule
from tidegate.source.semver import read_version
from tidegate.source.urls import without_password
from tidegate.source.vendored import PACKED, read_chart


class ClusterForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    context: str = ""
    server: str = ""
    labels: dict[str, str] = {}


class ChartForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    repository: str
    chart: str
    path: str
    version: str = ""


class HealthForm(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    api_version: str
    kind: str = ""
    current: str
    in_progress: str = ""
    failed: str = ""


class IgnoreForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    rule: str
    reason: str
    paths: tuple[str, ...] = ()


class LintForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ignore: tuple[IgnoreForm, ...] = ()
    severity: dict[str, Severity] = {}
    bands: Bands = Bands()


class ConfigForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    clusters: dict[str, ClusterForm] = {}
    repositories: dict[str, str] = {}
    charts: tuple[ChartForm, ...] = ()
    entries: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    settings: dict[str, str | bool] = {}
    health: tuple[HealthForm, ...] = ()
    lint: LintForm = LintForm()


class Ground(NamedTuple):
    """Where the file lies, and the repository that its paths must not leave."""

    folder: Path
    root: Path

    def place(self, path: str) -> Path:
        """Raises a StrayPathError."""
        start = self.folder.relative_to(self.root).as_posix()
        return follow(self.root / tidy(path, start), self.root)


def flaws(form: ConfigForm, ground: Ground) -> Iterator[Flaw]:
    yield from _wrong_clusters(form)
    yield from _wrong_repositories(form, ground)
    for number, chart in enumerate(form.charts):
        yield from _wrong_chart(chart, ("charts", number), ground)
        if chart in form.charts[:number]:
            problem, hint = "this chart is written twice", "remove one of the two"
            yield _flaw(("charts", number), problem, hint)
    yield from _wrong_health(form.health)
    for number, text in enumerate(form.entries):
        yield from _stray(text, ("entries", number), ground)
    for number, text in enumerate(form.ignore):
        if not is_rule(text):
            problem = f"`{foreign(text)}` is no pattern"
            yield _flaw(("ignore", number), problem, "write it as in a `.gitignore`")
    for number, one in enumerate(form.lint.ignore):
        if not one.reason.strip():
            at = ("lint", "ignore", number, "reason")
            yield _flaw(at, "this says no reason", "write why nothing is to be said here")


def _wrong_clusters(form: ConfigForm) -> Iterator[Flaw]:
    servers: dict[str, str] = {}
    for name, one in form.clusters.items():
        at, server = ("clusters", name, "server"), one.server.rstrip("/")
        if _has_password(server):
            yield from _wrong_address(server, at)
        elif server and not server.startswith(("https://", "http://")):
            problem = f"`{foreign(server)}` is not the address of a server"
            yield _flaw(at, problem, "write it like `https://host:6443`")
        if server in servers:
            shown, owner = without_password(server), foreign(servers[server])
            problem = f"`{shown}` is the server of `{owner}` already"
            yield _flaw(at, problem, "remove one of the two")
        if server:
            servers[server] = name


def _wrong_address(text: str, at: FieldPath) -> Iterator[Flaw]:
    shown = without_password(text)
    if _has_password(text):
        problem = f"`{shown}` is written with a password in it"
        yield _flaw(at, problem, "give it through the environment or a credential helper")
    elif ":" not in text:
        hint = "write it like `https://host/path`, `oci://host/path` or `git@host:path`"
        yield _flaw(at, f"`{shown}` is not an address", hint)


def _has_password(address: str) -> bool:
    """A user alone is a token, unless ssh asks for one."""
    if without_user(address) == address:
        return False
    user, _, _ = address.partition("://")[2].rpartition("@")
    return ":" in user or not address.startswith("ssh://")


def _wrong_repositories(form: ConfigForm, ground: Ground) -> Iterator[Flaw]:
    for address, path in form.repositories.items():
        at = ("repositories", address)
        if _has_password(address):
            yield from _wrong_address(address, at[:1])  # a place would show the password
            continue
        yield from _wrong_address(address, at)
        yield from (stray := [*_stray(path, at, ground)])
        if not stray and not ground.place(path).is_dir():
            yield _flaw(at, f"`{foreign(path)}` is not a directory", "write it from this file on")


def _wrong_chart(one: ChartForm, at: FieldPath, ground: Ground) -> Iterator[Flaw]:
    yield from _wrong_address(one.repository, (*at, "repository"))
    if one.version and read_version(one.version) is None:
        problem = f"`{foreign(one.version)}` is not a version"
        yield _flaw((*at, "version"), problem, "write it like `1.2.3`, or leave it out")
        return
    yield from (stray := [*_stray(one.path, (*at, "path"), ground)])
    if stray:
        return
    place = ground.place(one.path)
    chart = read_chart(place, ground.root)
    if chart is None and not (place.name.endswith(PACKED) and place.is_file()):
        hint = f"name a directory with a `Chart.yaml`, or a `{PACKED}`"
        yield _flaw((*at, "path"), f"`{foreign(one.path)}` is not a chart", hint)
    elif chart is not None and one.version not in {"", chart.version}:
        problem = f"the chart at `{foreign(one.path)}` has version `{foreign(chart.version)}`"
        yield _flaw((*at, "version"), problem, "write that, or leave it out")


def _wrong_health(rules: tuple[HealthForm, ...]) -> Iterator[Flaw]:
    seen: set[tuple[str, str]] = set()
    for number, one in enumerate(rules):
        key = (Kind.of(one.api_version, "").group, one.kind)
        if key in seen:
            problem, hint = "this kind has an entry already", "keep one entry for each kind"
            yield _flaw(("health", number), problem, hint)
        seen.add(key)


def _stray(path: str, at: FieldPath, ground: Ground) -> Iterator[Flaw]:
    try:
        ground.place(path)
    except StrayPathError as stray:
        out = stray.why is Stray.OUTSIDE
        reason = "leads out of the repository" if out else stray.why.value
        hint = "write it from this file on, inside the repository"
        yield _flaw(at, f"`{foreign(path)}` {reason}", hint)


def _flaw(at: FieldPath, problem: str, hint: str) -> Flaw:
    return at, FileError("file.value", problem, hint=hint)

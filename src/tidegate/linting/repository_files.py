"""What the files of a repository say to the lint rules, whichever units use them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from tidegate.errors import DocumentError, Location
from tidegate.lint.context import LintContext, LintFile, OctalNumber, OverlayEntry
from tidegate.lint.rules.files import overlay_entries
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.bands import Bands
from tidegate.workspace.config import load_config
from tidegate.workspace.discovery.scan import RepositoryScan, parent_directories

SOPS_RULES = ".sops.yaml"
MAX_FILE_SIZE = 1_000_000
TEXT_SUFFIXES = (".yaml", ".yml", ".json")
HELMFILE_SUFFIXES = (".yaml", ".yml", ".gotmpl")
SCRIPT_SUFFIXES = (".sh", ".md", ".just", ".mk", ".yaml", ".yml")
SCRIPT_NAMES = ("Makefile", "justfile", "Justfile", "Taskfile")
_SOPS_METADATA = lazy_regex(rb"^sops:\s*(?:#.*)?$|\"sops\"\s*:", re.MULTILINE)
_OCTAL_PHASE = lazy_regex(
    rb"^[ \t]*(?:-[ \t]+)?[\"']?([\w./-]*(?:[pP]hase|[wW]ave|[bB]and))[\"']?[ \t]*:[ \t]*(0[0-7]+)"
    rb"[ \t]*(?:#.*)?\r?$",
    re.MULTILINE,
)
_API_VERSION = lazy_regex(rb"^apiVersion:", re.MULTILINE)
_HELMFILE_RELEASES = lazy_regex(
    rb"^releases:[ \t]*\r?\n((?:[ \t-].*\n|\r?\n|#.*\n)*)", re.MULTILINE
)
_APPLIED_FILE = lazy_regex(rb"([\w.-]+\.ya?ml)\b")
_RELEASE_NAME = lazy_regex(
    rb"""^ {0,4}(?:-[ ]+| {2,4})(name|chart):[ \t]*["']?([\w./:@-]+)""", re.MULTILINE
)


class RepositoryFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files that rules judge by themselves. Alternatives share them."""

    names: frozenset[str]
    overlay_targets: Mapping[str, tuple[str, ...]]
    """By directory of a kustomization, the local paths that it names."""

    missing_entries: tuple[OverlayEntry, ...]
    """Local paths in kustomizations that are not in the repository."""

    git_ignored: frozenset[str]
    """Files that kustomizations name and Git ignores."""

    sops_configs: tuple[LintFile, ...]
    encrypted: tuple[LintFile, ...]
    """Files that SOPS has encrypted."""

    values: tuple[LintFile, ...]
    """Default values of charts."""

    octals: tuple[OctalNumber, ...]
    helmfile_charts: frozenset[str]
    """Names of the releases and charts that helmfile installs, before Argo CD or Flux runs."""

    applying_scripts: Mapping[str, str]
    """By the name of a manifest file, the script or the page that applies it with kubectl."""

    bands: Bands


def read_repository_files(scan: RepositoryScan) -> RepositoryFiles:
    """Search the files of a scan, which reads each of them once."""
    texts = _scan_texts(scan)
    entries = [
        entry
        for file in _read_files(scan, scan.overlays.values())
        for entry in overlay_entries(file)
    ]
    known = {*scan.files, *(folder for file in scan.files for folder in parent_directories(file))}
    return RepositoryFiles(
        names=frozenset(scan.files),
        overlay_targets=_targets_by_directory(entries),
        missing_entries=tuple(entry for entry in entries if entry.target not in known),
        git_ignored=_git_ignored_targets(scan, entries),
        sops_configs=tuple(_read_files(scan, _files_named(scan, SOPS_RULES))),
        encrypted=texts.encrypted,
        values=tuple(_read_files(scan, _files_named(scan, "values.yaml"))),
        octals=texts.octals,
        helmfile_charts=texts.helmfile_charts,
        applying_scripts=_find_applying_scripts(scan),
        bands=load_config(scan.root).lint.bands if scan.files else LintContext().bands,
    )


def _targets_by_directory(entries: Iterable[OverlayEntry]) -> dict[str, tuple[str, ...]]:
    targets: dict[str, list[str]] = {}
    for entry in entries:
        targets.setdefault(posixpath.dirname(entry.overlay) or ".", []).append(entry.target)
    return {folder: tuple(paths) for folder, paths in targets.items()}


def _git_ignored_targets(scan: RepositoryScan, entries: Iterable[OverlayEntry]) -> frozenset[str]:
    targets = {entry.target for entry in entries}
    return frozenset(path for path in targets - {*scan.files} if (scan.root / path).is_file())


def _files_named(scan: RepositoryScan, name: str) -> list[str]:
    return [path for path in scan.files if posixpath.basename(path) == name]


class _Texts(msgspec.Struct, frozen=True):
    """What a search of the text of all files finds."""

    encrypted: tuple[LintFile, ...]
    octals: tuple[OctalNumber, ...]
    helmfile_charts: frozenset[str]


def _scan_texts(scan: RepositoryScan) -> _Texts:
    """Search the text of all files."""
    encrypted: list[LintFile] = []
    octals: list[OctalNumber] = []
    charts: set[str] = set()
    for name in scan.files:
        if not name.endswith((*TEXT_SUFFIXES, *HELMFILE_SUFFIXES)):
            continue
        content = scan.content(name, MAX_FILE_SIZE)
        if name.endswith(HELMFILE_SUFFIXES):
            charts |= _find_helmfile_charts(content)
        if not name.endswith(TEXT_SUFFIXES) or not scan.is_searched(name):
            continue
        if b"sops" in content and _SOPS_METADATA.search(content):
            encrypted += _read_files(scan, [name])
        octals += _find_octals(name, content)
    return _Texts(tuple(encrypted), tuple(octals), frozenset(charts))


def _find_helmfile_charts(content: bytes) -> set[str]:
    """Return the names of the releases of a helmfile, and of their charts without repository.

    The text is searched because most helmfiles are Go templates, which are no YAML.
    """
    releases = _HELMFILE_RELEASES.search(content) if b"releases:" in content else None
    if releases is None or _API_VERSION.search(content):
        return set()
    return {match[2].decode().rpartition("/")[2] for match in _RELEASE_NAME.finditer(releases[1])}


def _find_applying_scripts(scan: RepositoryScan) -> dict[str, str]:
    scripts: dict[str, str] = {}
    for name in scan.files:
        if not name.endswith(SCRIPT_SUFFIXES) and posixpath.basename(name) not in SCRIPT_NAMES:
            continue
        content = scan.content(name, MAX_FILE_SIZE)
        if b"kubectl" not in content or b"apply" not in content or _API_VERSION.search(content):
            continue
        for match in _APPLIED_FILE.finditer(content):
            scripts.setdefault(match[1].decode(), name)
    return scripts


def _find_octals(name: str, content: bytes) -> Iterator[OctalNumber]:
    """Yield unquoted phases with a leading zero."""
    if b": 0" not in content:
        return
    for match in _OCTAL_PHASE.finditer(content):
        line = content.count(b"\n", 0, match.start(1)) + 1
        column = match.start(1) - content.rfind(b"\n", 0, match.start(1))
        key = match[1].decode()
        yield OctalNumber(key, match[2].decode(), Location(name, line, column, key))


def _read_files(scan: RepositoryScan, names: Iterable[str]) -> Iterator[LintFile]:
    """Yield files as documents. Other code reports unreadable files."""
    for name in names:
        if not scan.is_searched(name):
            continue
        try:
            yield LintFile(name, scan.read_documents(scan.content(name, MAX_FILE_SIZE), name))
        except (DocumentError, ValueError):
            continue

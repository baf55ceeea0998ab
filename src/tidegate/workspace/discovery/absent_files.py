"""Findings about files that a checkout lacks: Git LFS, submodules, links that lead out of it."""

from __future__ import annotations

import configparser
from collections.abc import Collection, Iterator, Sequence

from tidegate.errors import Location
from tidegate.model.display import join_quoted
from tidegate.model.finding import Finding, Severity
from tidegate.workspace.discovery.scan import MANIFEST_SUFFIXES, RepositoryScan

LFS_START = b"version https://git-lfs.github.com/spec/"
LFS_SUFFIXES = (*MANIFEST_SUFFIXES, ".tgz")
SUBMODULES_FILE = ".gitmodules"
MAX_CONFIG_SIZE = 1_000_000


def absent_file_findings(scan: RepositoryScan, used_paths: Collection[str]) -> list[Finding]:
    """Return a finding for each way in which files are absent from a checkout.

    `used_paths`: the directories that units render.
    """
    used = {*used_paths, *scan.overlay_index.overlays, *scan.overlay_index.inputs}
    submodules = [path for path in _submodules(scan) if scan.is_searched(path)]
    links = [path for path in scan.escaping_links if scan.is_searched(path)]
    return [
        *_finding(
            "units.lfs",
            _lfs_pointers(scan),
            ("is a pointer of Git LFS", "are pointers of Git LFS"),
            "their contents are not in this checkout",
            "run `git lfs pull`",
        ),
        *_finding(
            "units.submodule",
            submodules,
            ("is an empty submodule", "are empty submodules"),
            "their files are in other repositories",
            "run `git submodule update --init`",
            Severity.WARNING if any(_is_in(path, submodules) for path in used) else Severity.NOTE,
        ),
        *_finding(
            "units.outside",
            links,
            ("is a link that leads out of this directory", "are links out of this directory"),
            "Argo CD and Flux refuse such links",
            "copy the file, or link to a file of this directory",
        ),
    ]


def _finding(
    code: str,
    paths: Sequence[str],
    verbs: tuple[str, str],
    reason: str,
    fix: str,
    severity: Severity = Severity.WARNING,
) -> Iterator[Finding]:
    """Yield one finding about all paths."""
    if not paths:
        return
    yield Finding(
        code=code,
        severity=severity,
        message=f"{join_quoted(paths, 1)} {verbs[len(paths) > 1]}",
        location=Location(paths[0]),
        reason=reason,
        fix=fix,
    )


def _is_in(path: str, directories: Sequence[str]) -> bool:
    return any(path == directory or path.startswith(f"{directory}/") for directory in directories)


def _lfs_pointers(scan: RepositoryScan) -> list[str]:
    if ".gitattributes" not in {file.rpartition("/")[2] for file in scan.files}:
        return []
    return [
        file
        for file in scan.files
        if file.endswith(LFS_SUFFIXES)
        and scan.is_searched(file)
        and scan.content(file, len(LFS_START)) == LFS_START
    ]


def _submodules(scan: RepositoryScan) -> Iterator[str]:
    """Yield the directories of submodules without files."""
    if SUBMODULES_FILE not in scan.files:
        return
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    try:
        parser.read_string(scan.content(SUBMODULES_FILE, MAX_CONFIG_SIZE).decode(errors="replace"))
    except configparser.Error:
        return
    for section in parser.sections():
        path = parser.get(section, "path", fallback="").strip("/")
        directory = scan.root / path
        if path and not (directory.is_dir() and any(directory.iterdir())):
            yield path

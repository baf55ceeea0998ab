"""What a render depends on, as one digest: files, values, options, and the tools' versions.

Two renders with one key must come to the same objects. Paths of this machine are no part of a key;
what lies there is.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from tidegate.errors import RenderError
from tidegate.external.tools import find_program
from tidegate.render.helm.files import MAX_FILES, check_chart, find, inside
from tidegate.render.helm.release import FileParameter, Layer, Release, ValuesFile

SDK = "helm-python-sdk"
CHART_FILES = ("Chart.yaml", "requirements.yaml")
_LOCAL = re.compile(r"""file://([^\s'"#]+)""")
_PATTERN = re.compile(r"[*?\[{]")
_encode = msgspec.json.Encoder(order="sorted").encode


def release_key(release: Release) -> str:
    """The key of a chart with its values. Raises for what could not be rendered either."""
    top = Path(release.root).resolve()
    chart = inside(top / release.chart.lstrip("/"), top, shown=release.chart)
    start = chart if chart.is_dir() else chart.parent
    whole = hashlib.sha256(sdk_version().encode())
    for part in (
        _encode(_without_places(release)),
        _digest_of_chart(chart, top),
        *(_digest_of_layer(layer, top, start) for layer in (*release.layers, *release.defaults)),
        *(_digest_of_tree(one, one) for one in _brought(release)),
        *(_digest_of_chart(one, top) for one in _neighbours(chart, top)),
    ):
        whole.update(hashlib.sha256(part).digest())
    return f"helm {whole.hexdigest()}"


def program_version(argv: tuple[str, ...]) -> str:
    """Which program it is, without starting it: what changes when another one is installed."""
    program = find_program(argv[0], path=os.environ.get("PATH", os.defpath)).resolve()
    seen = program.stat()
    return f"{program.name} {' '.join(argv[1:])} {seen.st_size} {seen.st_mtime_ns}"


def sdk_version() -> str:
    """Which Helm SDK is here; empty if there is none."""
    try:
        return version(SDK)
    except PackageNotFoundError:
        return ""


def _without_places(release: Release) -> Release:
    return msgspec.structs.replace(
        release,
        root="",
        chart="",
        layers=tuple(_without_root(layer) for layer in release.layers),
        defaults=tuple(msgspec.structs.replace(one, root="") for one in release.defaults),
        fetched=tuple(msgspec.structs.replace(one, path="") for one in release.fetched),
    )


def _without_root(layer: Layer) -> Layer:
    if isinstance(layer, ValuesFile | FileParameter):
        return msgspec.structs.replace(layer, root="")
    return layer


def _digest_of_chart(chart: Path, top: Path) -> bytes:
    if chart.is_dir():
        check_chart(chart, str(top))
    return _digest_of_tree(chart, top)


def _brought(release: Release) -> Iterator[Path]:
    return (Path(one.path).resolve() for one in release.fetched)


def _neighbours(chart: Path, top: Path) -> Iterator[Path]:
    """Charts of the same source that the chart names as its dependencies."""
    for name in CHART_FILES:
        file = chart / name
        text = file.read_text(errors="replace") if file.is_file() else ""
        for path in _LOCAL.findall(text):
            there = inside(chart / path.lstrip("/"), top, shown=path)
            if there.is_dir():
                yield there


def _digest_of_layer(layer: Layer, top: Path, start: Path) -> bytes:
    if not isinstance(layer, ValuesFile | FileParameter):
        return b""
    if layer.root:
        top = start = Path(layer.root).resolve()
    return _digest_of_tree(find(_fixed_part(layer.path), root=str(top), start=start), top)


def _fixed_part(path: str) -> str:
    """The path, or the directory of all files that a pattern could take."""
    pattern = _PATTERN.search(path)
    if pattern is None:
        return path
    head, slash, _ = path[: pattern.start()].rpartition("/")
    return head + slash


def _digest_of_tree(place: Path, top: Path) -> bytes:
    """Of a directory, of one file, or of nothing where there is nothing."""
    whole = hashlib.sha256()
    files = _files(str(place), (str(place),), top) if place.is_dir() else iter((str(place),))
    for number, path in enumerate(files):
        if number > MAX_FILES:
            raise RenderError("render.helm.size", f"`{place.name}` has more than {MAX_FILES} files")
        if Path(path).is_file():
            name = os.fsencode(os.path.relpath(path, place))
            whole.update(hashlib.sha256(name).digest() + _digest_of_file(path))
    return whole.digest()


def _files(directory: str, above: tuple[str, ...], top: Path) -> Iterator[str]:
    """Paths below a directory, by name; links are followed as long as they lead to new places.

    Paths are plain text here: a chart has many files, and this is done for every render.
    """
    with os.scandir(directory) as listed:
        entries = sorted(listed, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name == ".git" or (entry.is_symlink() and not _is_new(entry.path, above, top)):
            continue
        if entry.is_dir():
            yield from _files(entry.path, (*above, os.path.realpath(entry.path)), top)
        else:
            yield entry.path


def _is_new(link: str, above: tuple[str, ...], top: Path) -> bool:
    target = os.path.realpath(link)
    is_inside = target == str(top) or target.startswith(f"{top}{os.sep}")
    return is_inside and target not in above


def _digest_of_file(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()

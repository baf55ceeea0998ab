"""What a render depends on, as one digest: files, values, options, and the tools' versions.

Two renders with one key must come to the same objects. Paths of this machine are no part of a key;
what lies there is.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from tidegate.errors import RenderError
from tidegate.external.tools import find_program
from tidegate.files import PathEscapeError, resolve_within
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.chart_request import ChartRequest, FileParameter, ValuesFile, ValuesLayer
from tidegate.model.units.rendering import Overlay
from tidegate.render.helm.worker.files import MAX_FILES, check_chart, find_file, resolve_inside
from tidegate.render.inputs import CacheInputs, StatLevel
from tidegate.render.kustomize.build import inputs_digest
from tidegate.render.kustomize.collect import OverlayInputs, collect_inputs

SDK = "helm-python-sdk"
SMALL = 64 * 1024
"""Bytes that one call reads."""
CHART_FILES = ("Chart.yaml", "requirements.yaml")
_LOCAL = lazy_regex(r"""file://([^\s'"#]+)""")
_PATTERN = lazy_regex(r"[*?\[{]")
_encode = msgspec.json.Encoder(order="sorted", enc_hook=str).encode


def release_key(release: ChartRequest, looked: CacheInputs | None = None) -> str:
    """The key of a chart with its values. Raises for what could not be rendered either.

    Whatever is looked at is noted in `looked`.
    """
    looked = looked or CacheInputs()
    looked.note(release.root, StatLevel.PLACE)
    top = Path(release.root).resolve()
    digests = _Digests(top, looked)
    chart = digests.find(top / release.chart.lstrip("/"), shown=release.chart)
    start = chart if chart.is_dir() else chart.parent
    brought = (Path(one.path).resolve() for one in release.fetched)
    whole = hashlib.sha256(sdk_version().encode())
    for part in (
        _encode(_without_places(release)),
        digests.of_chart(chart),
        *(digests.of_layer(layer, start) for layer in (*release.layers, *release.defaults)),
        *(digests.of_tree(one, one) for one in brought),
        *(digests.of_chart(one) for one in digests.neighbours(chart)),
    ):
        whole.update(hashlib.sha256(part).digest())
    return f"helm {whole.hexdigest()}"


def overlay_key(overlay: Overlay, program: str, looked: CacheInputs | None = None) -> str:
    """The key of an overlay that this version of a program builds. Raises for what it could not."""
    return inputs_key(collect_inputs(overlay, looked), program)


def inputs_key(gathering: OverlayInputs, program: str) -> str:
    """The same, where all that is read is known."""
    version = f"{program} {sdk_version()}"
    return f"kustomize {inputs_digest(gathering, tool_version=version)}"


def request_text(asked: ChartRequest | Overlay) -> bytes:
    """All that is asked for, places too: the same text asks for the same."""
    kinds = [type(asked).__name__]
    if isinstance(asked, Overlay):
        kinds += [type(asked.overrides).__name__]
    return _encode((kinds, asked))


def program_version(argv: tuple[str, ...]) -> str:
    """Which program it is, without starting it: what changes when another one is installed."""
    program = find_program(argv[0], path=os.environ.get("PATH", os.defpath)).resolve()
    seen = program.stat()
    return f"{program.name} {' '.join(argv[1:])} {seen.st_size} {seen.st_mtime_ns}"


@cache
def sdk_version() -> str:
    """Which Helm SDK is here; empty if there is none."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow

    try:
        return version(SDK)
    except PackageNotFoundError:
        return ""


def _without_places(release: ChartRequest) -> ChartRequest:
    return msgspec.structs.replace(
        release,
        root="",
        chart="",
        layers=tuple(_without_root(layer) for layer in release.layers),
        defaults=tuple(msgspec.structs.replace(one, root="") for one in release.defaults),
        fetched=tuple(msgspec.structs.replace(one, path="") for one in release.fetched),
    )


def _without_root(layer: ValuesLayer) -> ValuesLayer:
    if isinstance(layer, ValuesFile | FileParameter):
        return msgspec.structs.replace(layer, root="")
    return layer


class _Digests:
    """Digests of what lies in a source. Everything is noted before it is read."""

    def __init__(self, top: Path, looked: CacheInputs) -> None:
        self._top = top
        self._looked = looked

    def find(self, wanted: Path, *, shown: str) -> Path:
        self._looked.note(wanted, StatLevel.PLACE)
        return resolve_inside(wanted, self._top, shown=shown)

    def of_chart(self, chart: Path) -> bytes:
        if chart.is_dir():
            check_chart(chart, str(self._top))
        return self.of_tree(chart, self._top)

    def neighbours(self, chart: Path) -> Iterator[Path]:
        """Charts of the same source that the chart names as its dependencies."""
        for name in CHART_FILES:
            file = chart / name
            self._looked.note(file)
            text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
            for path in _LOCAL.findall(text):
                there = self.find(chart / path.lstrip("/"), shown=path)
                if there.is_dir():
                    yield there

    def of_layer(self, layer: ValuesLayer, start: Path) -> bytes:
        if not isinstance(layer, ValuesFile | FileParameter):
            return b""
        top = self._top
        if layer.root:
            self._looked.note(layer.root, StatLevel.PLACE)
            top = start = Path(layer.root).resolve()
        path = _fixed_part(layer.path)
        self._looked.note(top / path.lstrip("/") if path.startswith("/") else start / path)
        return self.of_tree(find_file(path, root=str(top), start=start), top)

    def of_tree(self, place: Path, top: Path) -> bytes:
        """Of a directory, of one file, or of nothing where there is nothing."""
        self._looked.note(place)
        whole = hashlib.sha256()
        files = self._files(str(place), (str(place),), top) if place.is_dir() else (str(place),)
        for number, path in enumerate(files):
            if number > MAX_FILES:
                problem = f"`{place.name}` has more than {MAX_FILES} files"
                raise RenderError("render.helm.size", problem)
            content = _digest_of_file(path)
            if content:
                name = os.fsencode(path[len(str(place)) + 1 :])
                whole.update(hashlib.sha256(name).digest() + content)
        return whole.digest()

    def _files(self, directory: str, above: tuple[str, ...], top: Path) -> Iterator[str]:
        """Paths below a directory, by name; links are followed if they lead to new places.

        Paths are plain text here: a chart has many files.
        """
        self._looked.note(directory)
        with os.scandir(directory) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
        for entry in entries:
            if entry.name == ".git":
                continue
            self._looked.note(entry.path)
            if entry.is_symlink() and not _is_new(entry.path, above, top):
                continue
            if entry.is_dir():
                yield from self._files(entry.path, (*above, os.path.realpath(entry.path)), top)
            else:
                yield entry.path


def _fixed_part(path: str) -> str:
    """The path, or the directory of all files that a pattern could take."""
    pattern = _PATTERN.search(path)
    if pattern is None:
        return path
    head, slash, _ = path[: pattern.start()].rpartition("/")
    return head + slash


def _is_new(link: str, above: tuple[str, ...], top: Path) -> bool:
    try:
        return str(resolve_within(Path(link), top)) not in above
    except PathEscapeError:
        return False


def _digest_of_file(path: str) -> bytes:
    """Nothing for what is no file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    try:
        seen = os.fstat(handle)
        if not stat.S_ISREG(seen.st_mode):
            return b""
        if seen.st_size < SMALL:
            return hashlib.sha256(os.read(handle, SMALL)).digest()
        with os.fdopen(handle, "rb", closefd=False) as file:
            return hashlib.file_digest(file, "sha256").digest()
    finally:
        os.close(handle)

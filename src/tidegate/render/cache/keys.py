"""Cache keys of renders: one digest of files, values, options and tool versions.

Equal keys mean equal objects. Paths on this machine are not part of a key; the files there are.
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
SMALL_FILE = 64 * 1024
"""Bytes that one call reads."""
DEPENDENCY_FILES = ("Chart.yaml", "requirements.yaml")
_LOCAL_REPOSITORY = lazy_regex(r"""file://([^\s'"#]+)""")
_WILDCARD = lazy_regex(r"[*?\[{]")
_encode = msgspec.json.Encoder(order="sorted", enc_hook=str).encode


def release_key(release: ChartRequest, inputs: CacheInputs | None = None) -> str:
    """Return the key of a chart with its values. All files that are read are recorded in `inputs`.

    Raises RenderError for a chart that cannot be rendered.
    """
    inputs = inputs or CacheInputs()
    inputs.record(release.root, StatLevel.IDENTITY)
    root = Path(release.root).resolve()
    digests = _Digests(root, inputs)
    chart = digests.find(root / release.chart.lstrip("/"), display_path=release.chart)
    start = chart if chart.is_dir() else chart.parent
    fetched = (Path(chart.path).resolve() for chart in release.fetched)
    digest = hashlib.sha256(sdk_version().encode())
    for part in (
        _encode(_without_paths(release)),
        digests.digest_chart(chart),
        *(digests.digest_layer(layer, start) for layer in (*release.layers, *release.defaults)),
        *(digests.digest_tree(path, path) for path in fetched),
        *(digests.digest_chart(path) for path in digests.local_dependencies(chart)),
    ):
        digest.update(hashlib.sha256(part).digest())
    return f"helm {digest.hexdigest()}"


def overlay_key(overlay: Overlay, program: str, inputs: CacheInputs | None = None) -> str:
    """Return the key of an overlay, built by this version of a program.

    Raises RenderError for an overlay that cannot be built.
    """
    return inputs_key(collect_inputs(overlay, inputs), program)


def inputs_key(inputs: OverlayInputs, program: str) -> str:
    """Return the key of an overlay whose inputs are collected."""
    version = f"{program} {sdk_version()}"
    return f"kustomize {inputs_digest(inputs, tool_version=version)}"


def request_text(request: ChartRequest | Overlay) -> bytes:
    """Return the whole request as text, with paths: equal texts are equal requests."""
    kinds = [type(request).__name__]
    if isinstance(request, Overlay):
        kinds += [type(request.overrides).__name__]
    return _encode((kinds, request))


def program_version(argv: tuple[str, ...]) -> str:
    """Return a text that changes when another version of a program is installed."""
    program = find_program(argv[0], path=os.environ.get("PATH", os.defpath)).resolve()
    status = program.stat()
    return f"{program.name} {' '.join(argv[1:])} {status.st_size} {status.st_mtime_ns}"


@cache
def sdk_version() -> str:
    """Return the version of the Helm SDK; empty if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow

    try:
        return version(SDK)
    except PackageNotFoundError:
        return ""


def _without_paths(release: ChartRequest) -> ChartRequest:
    return msgspec.structs.replace(
        release,
        root="",
        chart="",
        layers=tuple(_without_root(layer) for layer in release.layers),
        defaults=tuple(msgspec.structs.replace(item, root="") for item in release.defaults),
        fetched=tuple(msgspec.structs.replace(item, path="") for item in release.fetched),
    )


def _without_root(layer: ValuesLayer) -> ValuesLayer:
    if isinstance(layer, ValuesFile | FileParameter):
        return msgspec.structs.replace(layer, root="")
    return layer


class _Digests:
    """Digests of the files of a source. Each path is recorded before it is read."""

    def __init__(self, root: Path, inputs: CacheInputs) -> None:
        self._root = root
        self._inputs = inputs

    def find(self, path: Path, *, display_path: str) -> Path:
        self._inputs.record(path, StatLevel.IDENTITY)
        return resolve_inside(path, self._root, display_path=display_path)

    def digest_chart(self, chart: Path) -> bytes:
        if chart.is_dir():
            check_chart(chart, str(self._root))
        return self.digest_tree(chart, self._root)

    def local_dependencies(self, chart: Path) -> Iterator[Path]:
        """Yield the charts of the same source that the chart depends on."""
        for name in DEPENDENCY_FILES:
            file = chart / name
            self._inputs.record(file)
            text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
            for path in _LOCAL_REPOSITORY.findall(text):
                dependency = self.find(chart / path.lstrip("/"), display_path=path)
                if dependency.is_dir():
                    yield dependency

    def digest_layer(self, layer: ValuesLayer, start: Path) -> bytes:
        if not isinstance(layer, ValuesFile | FileParameter):
            return b""
        root = self._root
        if layer.root:
            self._inputs.record(layer.root, StatLevel.IDENTITY)
            root = start = Path(layer.root).resolve()
        path = _literal_prefix(layer.path)
        self._inputs.record(root / path.lstrip("/") if path.startswith("/") else start / path)
        return self.digest_tree(find_file(path, root=str(root), start=start), root)

    def digest_tree(self, path: Path, root: Path) -> bytes:
        """Return the digest of a directory or a file; an empty digest if it does not exist."""
        self._inputs.record(path)
        digest = hashlib.sha256()
        files = self._files(str(path), (str(path),), root) if path.is_dir() else (str(path),)
        for number, file in enumerate(files):
            if number > MAX_FILES:
                problem = f"`{path.name}` has more than {MAX_FILES} files"
                raise RenderError("render.helm.size", problem)
            content = _digest_file(file)
            if content:
                name = os.fsencode(file[len(str(path)) + 1 :])
                digest.update(hashlib.sha256(name).digest() + content)
        return digest.digest()

    def _files(self, directory: str, ancestors: tuple[str, ...], root: Path) -> Iterator[str]:
        """Yield the sorted paths below a directory; links to an ancestor are not followed.

        Paths are strings here for speed: a chart has many files.
        """
        self._inputs.record(directory)
        with os.scandir(directory) as children:
            entries = sorted(children, key=lambda entry: entry.name)
        for entry in entries:
            if entry.name == ".git":
                continue
            self._inputs.record(entry.path)
            if entry.is_symlink() and not _is_followed(entry.path, ancestors, root):
                continue
            if entry.is_dir():
                yield from self._files(entry.path, (*ancestors, os.path.realpath(entry.path)), root)
            else:
                yield entry.path


def _literal_prefix(path: str) -> str:
    """Return the path, or the directory of all files that a pattern could match."""
    wildcard = _WILDCARD.search(path)
    if wildcard is None:
        return path
    head, slash, _ = path[: wildcard.start()].rpartition("/")
    return head + slash


def _is_followed(link: str, ancestors: tuple[str, ...], root: Path) -> bool:
    try:
        return str(resolve_within(Path(link), root)) not in ancestors
    except PathEscapeError:
        return False


def _digest_file(path: str) -> bytes:
    """Return the digest of a file; empty if there is no file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            return b""
        if status.st_size < SMALL_FILE:
            return hashlib.sha256(os.read(handle, SMALL_FILE)).digest()
        with os.fdopen(handle, "rb", closefd=False) as file:
            return hashlib.file_digest(file, "sha256").digest()
    finally:
        os.close(handle)

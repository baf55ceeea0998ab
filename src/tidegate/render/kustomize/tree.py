"""A tree of files without a way out of it, and the copy that a build may read.

Paths are resolved as kustomize does: joined to a directory, normalised as text, and only then
followed through links. A path that points outside the tree is rejected before anything is read.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
from collections.abc import Callable, Iterator
from enum import Enum, StrEnum
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.errors import Location, RenderError, sanitize
from tidegate.files import PathEscapeError, PathViolation, normalize_path, open_file, resolve_within
from tidegate.render.inputs import CacheInputs, StatFields, StatLevel, is_link

MANIFEST_SUFFIXES = (".yaml", ".yml")
KUSTOMIZATION_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
MAX_TREE_SIZE = 256 * 1024 * 1024
"""Bytes of all files that one overlay may read."""
MAX_FILES = 20_000
FindLocation: TypeAlias = Callable[[], Location]
"""Finds the location for an error; called only if there is one."""


class PathKind(Enum):
    """What a path leads to."""

    FILE = "a file"
    DIRECTORY = "a directory"
    NOTHING = "nothing"
    OTHER = "neither a file nor a directory"


class ResolvedPath(msgspec.Struct, frozen=True):
    """A path in a tree with all links followed, and the kind of its target."""

    path: str
    """The path in the tree."""
    kind: PathKind
    """What the path leads to."""
    links: dict[str, str] = msgspec.field(default_factory=dict)
    """Each link on the way, and its target in the tree."""


class Tree:
    """An untrusted directory.

    `mount` is its name in the copy, and `label` the prefix of its paths in messages. All paths that
    are read are recorded in `cache_inputs`.
    """

    def __init__(
        self, root: Path, *, mount: str, label: str = "", cache_inputs: CacheInputs | None = None
    ) -> None:
        self.cache_inputs = cache_inputs or CacheInputs()
        self.cache_inputs.record(root, StatLevel.IDENTITY)
        self.root = root.resolve()
        self._start = str(self.root)
        self.mount = mount
        self.label = label

    def location(self, path: str) -> Location:
        """Return the location of a path."""
        return Location(f"{self.label}{path}")

    def path_in_copy(self, path: str) -> str:
        """Return the path of a file in the copy."""
        return posixpath.normpath(f"{self.mount}/{path}")

    def find(self, directory: str, text: str, *, find_location: FindLocation) -> ResolvedPath:
        """Resolve a path, relative to a directory of this tree."""
        try:
            return self._follow(normalize_path(text, directory), text, find_location)
        except PathEscapeError as error:
            raise _path_error(error.violation, text, find_location) from None

    def list_names(self, directory: str) -> Iterator[tuple[str, bool]]:
        """Yield the sorted names in a directory, each with whether it is a directory."""
        self.cache_inputs.record(self.root / directory)
        with os.scandir(self.root / directory) as entries:
            names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        yield from sorted(names)

    def read(self, path: str, *, find_location: FindLocation, limit: int) -> bytes:
        """Return the content of a file, at most one byte more than the limit.

        `path` must be resolved.
        """
        try:
            with open_file(f"{self._start}/{path}") as file:
                return file.read(limit + 1)
        except OSError as error:
            problem = f"`{path}` cannot be read: {sanitize(error.strerror or 'it changed')}"
            raise RenderError("render.kustomize.file", problem, location=find_location()) from None

    def _follow(self, joined: str, text: str, find_location: FindLocation) -> ResolvedPath:
        links: dict[str, str] = {}
        current, fields = "", None
        for name in joined.split("/"):
            current = f"{current}/{name}" if current not in {"", "."} else name
            fields = self._note(current)
            if is_link(fields):
                target = resolve_within(self.root / current, self.root).relative_to(self.root)
                links[current] = current = target.as_posix()
                fields = self._note(current)
        mode = fields[2] if fields else _file_mode(f"{self._start}/{current}", text, find_location)
        return ResolvedPath(current, _path_kind(mode), links)

    def _note(self, path: str) -> StatFields:
        return self.cache_inputs.record(f"{self._start}/{path}", StatLevel.LINK)


def _file_mode(path: str, text: str, find_location: FindLocation) -> int:
    """Return the mode of a file; 0 if it does not exist."""
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        problem = f"`{sanitize(text)}` cannot be accessed: {sanitize(error.strerror or '')}"
        raise RenderError("render.kustomize.file", problem, location=find_location()) from None


def _path_kind(mode: int) -> PathKind:
    if not mode:
        return PathKind.NOTHING
    if stat.S_ISREG(mode):
        return PathKind.FILE
    return PathKind.DIRECTORY if stat.S_ISDIR(mode) else PathKind.OTHER


def _path_error(violation: PathViolation, text: str, find_location: FindLocation) -> RenderError:
    reason = "points outside the tree" if violation is PathViolation.OUTSIDE else violation.value
    problem = f"`{sanitize(text)}` {reason}"
    if violation is PathViolation.LINK_LOOP:
        return RenderError("render.kustomize.file", problem, location=find_location())
    hint = "a build may read only files of its source"
    return RenderError("render.kustomize.outside", problem, location=find_location(), hint=hint)


def find_kustomization(tree: Tree, directory: str, *, may_lack: bool) -> str:
    """Return the name of the kustomization file; empty without one if `may_lack` is set.

    Like `RecognizedKustomizationFileNames` in `konfig/general.go` of sigs.k8s.io/kustomize/api
    0.21.1.
    """
    names = [name for name in KUSTOMIZATION_NAMES if _is_file(tree, directory, name)]
    location = tree.location(directory)
    if len(names) > 1:
        problem = f"found more than one kustomization: `{names[0]}` and `{names[1]}`"
        hint = "remove all but one"
        raise RenderError("render.kustomize.ambiguous", problem, location=location, hint=hint)
    if not names and not may_lack:
        problem = "no kustomization.yaml in this directory"
        hint = "add one, or reference the files directly"
        raise RenderError("render.kustomize.none", problem, location=location, hint=hint)
    return names[0] if names else ""


def find_manifests(tree: Tree, directory: str, below: str = "") -> list[str]:
    """Return the manifests that Flux uses where there is no kustomization: all below a directory.

    A directory with a kustomization counts as a whole. The paths are in the order of a walk.

    Like `scanManifests` in `kustomize_generator.go` of fluxcd/pkg/kustomize 1.35.6.
    """
    paths: list[str] = []
    current = posixpath.join(directory, below)
    for name, is_directory in tree.list_names(current):
        path = posixpath.join(below, name)
        if is_directory:
            subdirectory = posixpath.join(directory, path)
            has_kustomization = any(
                _is_file(tree, subdirectory, candidate) for candidate in KUSTOMIZATION_NAMES
            )
            paths += [path] if has_kustomization else find_manifests(tree, directory, path)
        elif name.endswith(MANIFEST_SUFFIXES):
            paths.append(path)
    return paths


def _is_file(tree: Tree, directory: str, name: str) -> bool:
    def find_location() -> Location:
        return tree.location(posixpath.join(directory, name))

    return tree.find(directory, name, find_location=find_location).kind is PathKind.FILE


def is_below(path: str, directory: str) -> bool:
    """Return whether a path is a directory, or inside of it."""
    return directory in {".", path} or path.startswith(f"{directory}/")


class BuildCopy(msgspec.Struct):
    """Files and links by their path in the copy; in memory until a build writes them."""

    files: dict[str, bytes] = msgspec.field(default_factory=dict)
    """Contents by path."""
    links: dict[str, str] = msgspec.field(default_factory=dict)
    """Link targets by path."""
    remaining_bytes: int = MAX_TREE_SIZE
    """Bytes that the build may still read."""

    def __repr__(self) -> str:
        return f"BuildCopy({len(self.files)} files)"

    def add_links(self, tree: Tree, resolved: ResolvedPath) -> None:
        """Add the links on the way to a path, so that kustomize follows the same way."""
        for link, target in resolved.links.items():
            self.links[tree.path_in_copy(link)] = tree.path_in_copy(target)

    def add(self, tree: Tree, path: str, find_location: FindLocation) -> bytes:
        """Add a file of a tree and return its content."""
        copy_path = tree.path_in_copy(path)
        if copy_path not in self.files:
            self.files[copy_path] = self.read(tree, path, find_location)
        return self.files[copy_path]

    def read(self, tree: Tree, path: str, find_location: FindLocation) -> bytes:
        """Return the content of a file of a tree, and count it."""
        content = tree.read(path, find_location=find_location, limit=self.remaining_bytes)
        self.count(len(content), find_location)
        return content

    def count(self, amount: int, find_location: FindLocation) -> None:
        """Count bytes against the limit of one build. Raises RenderError above the limit."""
        self.remaining_bytes -= amount
        if self.remaining_bytes < 0 or len(self.files) >= MAX_FILES:
            problem = "the overlay reads more files or bytes than allowed"
            hint = "keep large files out of generators and charts"
            raise RenderError("render.kustomize.size", problem, location=find_location(), hint=hint)

    def write(self, scratch: Path) -> None:
        """Write all files and links below a scratch directory."""
        for path, content in self.files.items():
            try:
                (scratch / path).parent.mkdir(parents=True, exist_ok=True)
                (scratch / path).write_bytes(content)
            except OSError as error:
                problem = f"cannot copy the file: {sanitize(error.strerror or '')}"
                location = Location(path.partition("/")[2])
                raise RenderError("render.kustomize.file", problem, location=location) from None
        for link, link_target in self.links.items():
            target = scratch / link
            if not target.is_symlink() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(os.path.relpath(scratch / link_target, target.parent))

    def digest(self, *more: str) -> str:
        """Return a digest of the names and contents, and of `more`."""
        parts = [
            *more,
            *(f"{link}>{link_target}" for link, link_target in sorted(self.links.items())),
        ]
        for path, content in sorted(self.files.items()):
            parts += (path, hashlib.sha256(content).hexdigest())
        return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()


class FileUse(StrEnum):
    """What a file is used for that may be encrypted."""

    FILE = "a file of a Secret"
    ENV = "a file of variables of a Secret"
    PATCH = "a patch"


class DecryptableFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that Flux decrypts before the build."""

    path: str
    """The path in the copy."""
    name: str
    """The suffix defines the format."""
    use: FileUse
    """What the file is used for."""
    content: bytes
    """The content."""

    def __repr__(self) -> str:
        return f"DecryptableFile(path={self.path!r})"

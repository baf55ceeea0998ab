"""One tree of files, no way out of it, and the copy that a build may read.

Paths are taken as kustomize takes them: joined to a directory, tidied as text, and only then
followed through links. Whatever leads out of the tree is refused before anything is read.
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

MANIFEST_ENDINGS = (".yaml", ".yml")
KUSTOMIZATION_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
LARGEST_TREE = 256 * 1024 * 1024
"""Bytes of all files that one overlay may reach."""
MOST_FILES = 20_000
FindLocation: TypeAlias = Callable[[], Location]
"""Finds the place to blame; it is asked only when there is something to blame."""


class PathKind(Enum):
    """What lies at the end of a path."""

    FILE = "a file"
    DIRECTORY = "a directory"
    NOTHING = "nothing"
    OTHER = "neither a file nor a directory"


class ResolvedPath(msgspec.Struct, frozen=True):
    """A path in a tree with all links followed, and what is there."""

    path: str
    found: PathKind
    links: dict[str, str] = msgspec.field(default_factory=dict)
    """Each link on the way, and where in the tree it leads."""


class Tree:
    """A directory that somebody gave us.

    `mount` is its name in the copy, and `label` what messages put before its paths. Whatever is
    looked at is noted in `looked`.
    """

    def __init__(
        self, root: Path, *, mount: str, label: str = "", looked: CacheInputs | None = None
    ) -> None:
        self.looked = looked or CacheInputs()
        self.looked.record(root, StatLevel.IDENTITY)
        self.root = root.resolve()
        self._start = str(self.root)
        self.mount = mount
        self.label = label

    def place_of(self, path: str) -> Location:
        return Location(f"{self.label}{path}")

    def copied(self, path: str) -> str:
        """The path of something in the copy."""
        return posixpath.normpath(f"{self.mount}/{path}")

    def find(self, directory: str, text: str, *, where: FindLocation) -> ResolvedPath:
        """Where `text` leads, seen from a directory of this tree."""
        try:
            return self._follow(normalize_path(text, directory), text, where)
        except PathEscapeError as stray:
            raise _astray(stray.violation, text, where) from None

    def names(self, directory: str) -> Iterator[tuple[str, bool]]:
        """The names in a directory in order, and for each whether it is itself a directory."""
        self.looked.record(self.root / directory)
        with os.scandir(self.root / directory) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        yield from sorted(found)

    def read(self, path: str, *, where: FindLocation, limit: int) -> bytes:
        """A file's content, or a byte more than the limit. `path` was found, so it has no link."""
        try:
            with open_file(f"{self._start}/{path}") as file:
                return file.read(limit + 1)
        except OSError as error:
            problem = f"`{path}` cannot be read: {sanitize(error.strerror or 'it changed')}"
            raise RenderError("render.kustomize.file", problem, location=where()) from None

    def _follow(self, joined: str, text: str, where: FindLocation) -> ResolvedPath:
        links: dict[str, str] = {}
        current, signs = "", None
        for name in joined.split("/"):
            current = f"{current}/{name}" if current not in {"", "."} else name
            signs = self._note(current)
            if is_link(signs):
                target = resolve_within(self.root / current, self.root).relative_to(self.root)
                links[current] = current = target.as_posix()
                signs = self._note(current)
        mode = signs[2] if signs else _mode_of(f"{self._start}/{current}", text, where)
        return ResolvedPath(current, _kind_of(mode), links)

    def _note(self, path: str) -> StatFields:
        return self.looked.record(f"{self._start}/{path}", StatLevel.LINK)


def _mode_of(path: str, text: str, where: FindLocation) -> int:
    """0 where nothing is."""
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        problem = f"`{sanitize(text)}` cannot be looked at: {sanitize(error.strerror or '')}"
        raise RenderError("render.kustomize.file", problem, location=where()) from None


def _kind_of(mode: int) -> PathKind:
    if not mode:
        return PathKind.NOTHING
    if stat.S_ISREG(mode):
        return PathKind.FILE
    return PathKind.DIRECTORY if stat.S_ISDIR(mode) else PathKind.OTHER


def _astray(why: PathViolation, text: str, where: FindLocation) -> RenderError:
    reason = "leads out of the tree" if why is PathViolation.OUTSIDE else why.value
    problem = f"`{sanitize(text)}` {reason}"
    if why is PathViolation.LINK_LOOP:
        return RenderError("render.kustomize.file", problem, location=where())
    hint = "a build reads only files of its own source"
    return RenderError("render.kustomize.outside", problem, location=where(), hint=hint)


def find_kustomization(tree: Tree, directory: str, *, may_lack: bool) -> str:
    """The name of the one kustomization file; empty if there is none and there may be none."""
    names = [name for name in KUSTOMIZATION_NAMES if _is_file(tree, directory, name)]
    place = tree.place_of(directory)
    if len(names) > 1:
        problem = f"there is more than one kustomization: `{names[0]}` and `{names[1]}`"
        hint = "remove all but one"
        raise RenderError("render.kustomize.several", problem, location=place, hint=hint)
    if not names and not may_lack:
        problem = "there is no kustomization.yaml in this directory"
        hint = "add one, or name the files themselves"
        raise RenderError("render.kustomize.none", problem, location=place, hint=hint)
    return names[0] if names else ""


def find_manifests(tree: Tree, directory: str, below: str = "") -> list[str]:
    """What Flux takes where there is no kustomization: every manifest below a directory.

    A directory that has a kustomization is taken as a whole. The paths are in the order of a walk.
    """
    found: list[str] = []
    here = posixpath.join(directory, below)
    for name, is_directory in tree.names(here):
        path = posixpath.join(below, name)
        if is_directory:
            inner = posixpath.join(directory, path)
            is_own = any(_is_file(tree, inner, known) for known in KUSTOMIZATION_NAMES)
            found += [path] if is_own else find_manifests(tree, directory, path)
        elif name.endswith(MANIFEST_ENDINGS):
            found.append(path)
    return found


def _is_file(tree: Tree, directory: str, name: str) -> bool:
    def where() -> Location:
        return tree.place_of(posixpath.join(directory, name))

    return tree.find(directory, name, where=where).found is PathKind.FILE


def is_below(path: str, directory: str) -> bool:
    """True if a path is a directory or something in it."""
    return directory in {".", path} or path.startswith(f"{directory}/")


class BuildCopy(msgspec.Struct):
    """Files and links by their path in the copy; they are kept in memory until they are needed."""

    files: dict[str, bytes] = msgspec.field(default_factory=dict)
    links: dict[str, str] = msgspec.field(default_factory=dict)
    room: int = LARGEST_TREE

    def __repr__(self) -> str:
        return f"Copy({len(self.files)} files)"

    def link(self, tree: Tree, spot: ResolvedPath) -> None:
        """Keep the links on the way to a spot, so that kustomize goes the same way."""
        for link, target in spot.links.items():
            self.links[tree.copied(link)] = tree.copied(target)

    def take(self, tree: Tree, path: str, where: FindLocation) -> bytes:
        """A file of a tree, read once."""
        copied = tree.copied(path)
        if copied not in self.files:
            self.files[copied] = self.read(tree, path, where)
        return self.files[copied]

    def read(self, tree: Tree, path: str, where: FindLocation) -> bytes:
        """What is in a file of a tree, counted."""
        content = tree.read(path, where=where, limit=self.room)
        self.spend(len(content), where)
        return content

    def spend(self, amount: int, where: FindLocation) -> None:
        """Count bytes against what one build may read."""
        self.room -= amount
        if self.room < 0 or len(self.files) >= MOST_FILES:
            problem = "the overlay reaches more files, or more bytes, than a build may read"
            hint = "keep large files out of generators and charts"
            raise RenderError("render.kustomize.size", problem, location=where(), hint=hint)

    def write(self, scratch: Path) -> None:
        """Lay everything out below a directory that is ours alone."""
        for path, content in self.files.items():
            try:
                (scratch / path).parent.mkdir(parents=True, exist_ok=True)
                (scratch / path).write_bytes(content)
            except OSError as error:
                problem = f"the file cannot be copied: {sanitize(error.strerror or '')}"
                where = Location(path.partition("/")[2])
                raise RenderError("render.kustomize.file", problem, location=where) from None
        for link, aim in self.links.items():
            target = scratch / link
            if not target.is_symlink() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(os.path.relpath(scratch / aim, target.parent))

    def digest(self, *more: str) -> str:
        """Equal for builds that read the same bytes under the same names."""
        parts = [*more, *(f"{link}>{aim}" for link, aim in sorted(self.links.items()))]
        for path, content in sorted(self.files.items()):
            parts += (path, hashlib.sha256(content).hexdigest())
        return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()


class FileUse(StrEnum):
    """What a file is there for that may be encrypted."""

    FILE = "a file of a Secret"
    ENV = "a file of variables of a Secret"
    PATCH = "a patch"


class DecryptableFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that Flux decrypts before it builds. The ending of `name` says its format."""

    path: str
    name: str
    use: FileUse
    content: bytes

    def __repr__(self) -> str:
        return f"Input(path={self.path!r})"

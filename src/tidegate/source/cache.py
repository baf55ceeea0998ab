"""Trees that were fetched before, kept by what is in them, for every process at once.

    trees/<digest>/tree     the files, never changed again
    trees/<digest>/lock     held, shared, by every process that uses the tree
    notes/<name>            which tree a commit or chart is; what a remote said last
    making/…                trees that are not complete yet

Nothing ever waits for another process. A tree is made beside the others and moved to its place in
one step; who comes second throws his own away. When the cache is over its limit, what was used
least recently goes, unless somebody holds its lock.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from tidegate.errors import Place, SourceError, foreign
from tidegate.source.tree import (
    MIB,
    digest_entries,
    refuse_links_out,
    tree_size,
    walk_tree,
)

DEFAULT_LIMIT = 2048 * MIB
LAYOUT = "1"


class CachedTree(msgspec.Struct, frozen=True):
    """A tree in the cache."""

    root: Path
    digest: str
    files: tuple[str, ...]
    size: int


class CacheSize(msgspec.Struct, frozen=True):
    """What `tidegate cache` shows."""

    root: Path
    trees: int
    notes: int
    size: int
    limit: int


class _Record(msgspec.Struct, frozen=True):
    digest: str
    files: tuple[str, ...]
    size: int


class _Item(msgspec.Struct, frozen=True, order=True):
    used: int
    path: Path
    size: int


def default_cache_root() -> Path:
    """Where caches live on this system, by the usual variable."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    return base / "tidegate"


class Cache:
    """One directory, shared. Trees handed out stay until `close`, or the end of the process."""

    def __init__(self, root: Path, *, limit: int = DEFAULT_LIMIT) -> None:
        self.root = root
        self.limit = limit
        base = root / f"v{LAYOUT}"
        self._trees, self._notes, self._making = base / "trees", base / "notes", base / "making"
        self._held: dict[str, int] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._guard = threading.Lock()

    def turn(self, name: str) -> asyncio.Lock:
        """Within this process, one at a time fetches the same thing."""
        return self._turns.setdefault(name, asyncio.Lock())

    def find(self, name: str) -> CachedTree | None:
        """The tree that goes by this name."""
        note = self.recall(name)
        return self._take(note.decode()) if note else None

    async def keep(
        self, name: str, fill: Callable[[Path], Awaitable[None]], *, shown: str
    ) -> CachedTree:
        """Make a tree with `fill`, which is given an empty directory, and keep it by this name.

        `shown` is how errors call the source.
        """
        self._prepare()
        made = Path(tempfile.mkdtemp(dir=self._making))
        lock = _hold(made / "lock", os.O_CREAT)
        try:
            (made / "tree").mkdir()
            await fill(made / "tree")
            tree = await asyncio.to_thread(self._settle, made, shown)
        except OSError as error:
            raise _unusable(self.root, error) from error
        finally:
            if lock is not None:
                os.close(lock)
            await asyncio.to_thread(shutil.rmtree, made, ignore_errors=True)
        self.note(name, tree.digest.encode())
        await asyncio.to_thread(self.shrink)
        return tree

    def note(self, name: str, text: bytes) -> None:
        """Remember a text by a name; the last one counts."""
        self._prepare()
        try:
            with tempfile.NamedTemporaryFile(dir=self._making, delete=False) as file:
                file.write(text)
            Path(file.name).replace(self._note_path(name))
        except OSError as error:
            raise _unusable(self.root, error) from error

    def recall(self, name: str) -> bytes | None:
        path = self._note_path(name)
        try:
            os.utime(path)
            return path.read_bytes()
        except OSError:
            return None

    def size(self) -> CacheSize:
        trees, notes = list(self._tree_items()), list(self._note_items())
        total = sum(item.size for item in (*trees, *notes))
        return CacheSize(self.root, len(trees), len(notes), total, self.limit)

    def shrink(self, limit: int | None = None) -> int:
        """Remove what was used least recently until the rest is within the limit.

        Gives the number of bytes that are free again.
        """
        limit = self.limit if limit is None else limit
        items = sorted((*self._tree_items(), *self._note_items()))
        total, freed = sum(item.size for item in items), 0
        for item in items:
            if total - freed > limit and self._remove(item.path):
                freed += item.size
        for left in self._leavings():
            self._remove(left)
        return freed

    def clear(self) -> int:
        """Remove all that nobody uses now."""
        return self.shrink(limit=-1)

    def close(self) -> None:
        """Let go of every tree that was handed out."""
        for digest in tuple(self._held):
            self._let_go(digest)

    def _prepare(self) -> None:
        try:
            for directory in (self._trees, self._notes, self._making):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _unusable(self.root, error) from error

    def _note_path(self, name: str) -> Path:
        return self._notes / hashlib.sha256(name.encode()).hexdigest()

    def _settle(self, made: Path, shown: str) -> CachedTree:
        """Look at what was made and move it to its place, unless it is there already."""
        entries = walk_tree(made / "tree")
        files = refuse_links_out(made / "tree", entries, shown)
        for entry in entries:
            if not entry.is_link:
                (made / "tree" / entry.path).chmod(0o555 if entry.executable else 0o444)
        digest = digest_entries(made / "tree", entries)
        record = _Record(digest, files, tree_size(entries))
        (made / "record").write_bytes(msgspec.json.encode(record))
        for _ in range(3):
            with suppress(OSError):
                made.rename(self._place_of(digest))
            tree = self._take(digest)
            if tree is not None:
                return tree
        raise _unusable(self.root, OSError("a tree in it cannot be replaced"))

    def _place_of(self, digest: str) -> Path:
        return self._trees / digest.rpartition(":")[2]

    def _take(self, digest: str) -> CachedTree | None:
        """Hold the tree's lock, and make sure that it is the lock of the tree that is there."""
        place = self._place_of(digest)
        with self._guard:
            lock = self._held.get(digest) or _hold(place / "lock")
            if lock is None:
                return None
            self._held[digest] = lock
        try:
            seen, now = os.fstat(lock), (place / "lock").stat()
            if seen.st_ino != now.st_ino:
                raise FileNotFoundError
            os.utime(place / "lock")
            record = msgspec.json.decode((place / "record").read_bytes(), type=_Record)
        except (OSError, msgspec.MsgspecError):
            self._let_go(digest)
            return None
        return CachedTree(place / "tree", record.digest, record.files, record.size)

    def _let_go(self, digest: str) -> None:
        with self._guard:
            if (lock := self._held.pop(digest, None)) is not None:
                os.close(lock)

    def _tree_items(self) -> Iterator[_Item]:
        for place in _listed(self._trees):
            with suppress(OSError, msgspec.MsgspecError):
                record = msgspec.json.decode((place / "record").read_bytes(), type=_Record)
                yield _Item((place / "lock").stat().st_mtime_ns, place, record.size)

    def _note_items(self) -> Iterator[_Item]:
        for path in _listed(self._notes):
            with suppress(OSError):
                seen = path.stat()
                yield _Item(seen.st_mtime_ns, path, seen.st_size)

    def _leavings(self) -> Iterator[Path]:
        """What processes that were killed have left half made."""
        return (path for path in _listed(self._making) if path.is_dir())

    def _remove(self, path: Path) -> bool:
        if path.parent == self._notes:
            path.unlink(missing_ok=True)
            return True
        lock = _hold(path / "lock", alone=True)
        if lock is None:
            return False
        try:
            doomed = self._making / f"{path.name}.{os.getpid()}"
            path.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)
        except OSError:
            return False
        finally:
            os.close(lock)
        return True


def _hold(path: Path, flags: int = 0, *, alone: bool = False) -> int | None:
    """Lock a file without waiting; nothing if it is gone, or held by someone else."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _listed(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def _unusable(root: Path, error: OSError) -> SourceError:
    problem = f"the cache cannot be used: {foreign(error.strerror or str(error))}"
    return SourceError("source.cache", problem, where=Place(str(root)))

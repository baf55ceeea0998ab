"""The cache: by content, in one step, bounded, and for several processes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support import cache_filler
from tidegate.errors import SourceError
from tidegate.source.cache import Cache, CacheEntryKind, CacheStats, default_cache_root

ROOT = Path(__file__).parents[3]


def writes(**files: str) -> Callable[[Path], Awaitable[None]]:
    async def fill(place: Path) -> None:
        for name, text in files.items():
            (place / name).write_text(text)

    return fill


def ages(cache: Cache, *, seconds: int) -> None:
    """Make everything that is in the cache look as if it was used so long ago."""
    for path in cache.root.rglob("*"):
        seen = path.lstat()
        os.utime(path, (seen.st_atime - seconds, seen.st_mtime - seconds))


def held(cache: Cache) -> dict[CacheEntryKind, CacheStats]:
    return {stat.kind: stat for stat in cache.stats()}


def files_below(place: Path) -> list[Path]:
    return [path for path in place.rglob("*") if path.is_file()]


async def test_a_tree_is_found_again_by_its_name(tmp_path: Path) -> None:
    made = await Cache(tmp_path).store("shop", writes(a="1", b="2"), source_name="shop")

    result = Cache(tmp_path).find("shop")

    assert result == made
    assert result.files == ("a", "b")
    assert result.size == 2


async def test_the_same_content_is_kept_once(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    item = await cache.store("one", writes(a="1"), source_name="one")
    two = await cache.store("two", writes(a="1"), source_name="two")

    assert item.root == two.root
    assert held(cache)[CacheEntryKind.SOURCES].count == 1


async def test_a_tree_that_could_not_be_made_leaves_nothing(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    async def fill(place: Path) -> None:
        (place / "half").write_text("x")
        raise SourceError("source.size", "too large")

    with pytest.raises(SourceError):
        await cache.store("shop", fill, source_name="shop")

    assert cache.find("shop") is None
    assert files_below(tmp_path) == []


async def test_a_link_out_of_the_tree_is_refused(tmp_path: Path) -> None:
    async def fill(place: Path) -> None:
        (place / "leak").symlink_to("/etc/passwd")

    with pytest.raises(SourceError) as caught:
        await Cache(tmp_path).store("shop", fill, source_name="shop")

    assert caught.value.code == "source.link"


async def test_the_least_recently_used_entry_is_removed_first(tmp_path: Path) -> None:
    first = Cache(tmp_path, limit=2500)
    await first.store("old", writes(a="x" * 1000), source_name="old")
    await first.store("used", writes(a="y" * 1000), source_name="used")
    first.close()
    ages(first, seconds=1000)
    second = Cache(tmp_path, limit=2500)
    second.find("used")

    await second.store("new", writes(a="z" * 1000), source_name="new")

    assert second.find("old") is None
    assert second.find("used") is not None
    assert second.find("new") is not None
    assert sum(item.size for item in held(second).values()) <= 2500


async def test_a_tree_in_use_stays(tmp_path: Path) -> None:
    user = Cache(tmp_path)
    tree = await user.store("shop", writes(a="1"), source_name="shop")

    Cache(tmp_path).clear()
    kept = (tree.root / "a").read_text()
    user.close()
    Cache(tmp_path).clear()

    assert kept == "1"
    assert not tree.root.exists()
    assert all(item.size == 0 for item in held(Cache(tmp_path)).values())


async def test_incomplete_entries_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    await cache.store("shop", writes(a="1"), source_name="shop")
    left = tmp_path / "v1" / "making" / "left"
    (left / "tree").mkdir(parents=True)
    (left / "lock").touch()

    cache.shrink()

    assert not left.exists()


def test_a_note_is_remembered_and_the_last_one_counts(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    cache.write_text("refs", b"one")
    cache.write_text("refs", b"two")

    assert cache.read_text("refs") == b"two"
    assert cache.read_text("other") is None


async def test_the_content_of_the_cache_is_counted_by_kind(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    await cache.store("shop", writes(a="123"), source_name="shop")
    await cache.store("web", writes(a="12345"), source_name="web", kind=CacheEntryKind.CHARTS)
    cache.renders.write("web", b"1234567")

    result = held(cache)

    sizes = {
        kind: (item.count, item.size)
        for kind, item in result.items()
        if kind != CacheEntryKind.ANSWERS
    }
    assert sizes == {
        CacheEntryKind.SOURCES: (1, 3),
        CacheEntryKind.CHARTS: (1, 5),
        CacheEntryKind.RENDERS: (1, 7),
    }
    assert result[CacheEntryKind.ANSWERS].count == 2
    assert 0 < result[CacheEntryKind.CHARTS].oldest_use == result[CacheEntryKind.CHARTS].last_used


async def test_one_kind_can_be_cleared_and_the_others_stay(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    await cache.store("shop", writes(a="123"), source_name="shop")
    cache.renders.write("web", b"1234567")
    cache.close()

    freed = cache.clear(kinds=frozenset({CacheEntryKind.RENDERS}))

    assert freed == 7
    assert cache.renders.read("web") is None
    assert cache.find("shop") is not None


async def test_renders_count_against_the_limit(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=1500)
    cache.renders.write("old", b"x" * 1000)
    ages(cache, seconds=1000)
    cache.renders.write("new", b"y" * 1000)

    cache.shrink()

    assert cache.renders.read("old") is None
    assert cache.renders.read("new") == b"y" * 1000


def test_files_are_not_readable_for_other_users(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")

    cache.renders.write("web", b"password: x")

    (text,) = files_below(tmp_path)
    assert text.stat().st_mode & 0o077 == 0
    assert text.parent.stat().st_mode & 0o077 == 0


async def test_a_cache_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(SourceError) as caught:
        await Cache(tmp_path / "file").store("shop", writes(a="1"), source_name="shop")

    assert caught.value.code == "source.cache"


async def test_several_processes_fill_and_empty_one_cache_at_once(tmp_path: Path) -> None:
    argv = (sys.executable, cache_filler.__file__, str(tmp_path), "5")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    pipe = asyncio.subprocess.PIPE
    fillers = [
        await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe, env=environment)
        for _ in range(3)
    ]
    for filler in fillers:
        assert filler.stdout is not None
        assert await filler.stdout.readline() == b"ready\n"

    written = [await filler.communicate(b"go\n") for filler in fillers]

    assert [filler.returncode for filler in fillers] == [0, 0, 0]
    assert len({digest for digest, _ in written}) == 1


def test_the_cache_is_where_the_system_keeps_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/tmp/caches")  # noqa: S108

    assert default_cache_root() == Path("/var/tmp/caches/tidegate")  # noqa: S108

"""`tidegate cache`, from outside."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.helm_charts import write_chart
from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_command import Tidegate
from tidegate.cli.commands.cache import CACHE_KINDS
from tidegate.source import Cache, CacheEntryKind

DAY = 86_400


@pytest.fixture
def tidegate(tmp_path: Path) -> Tidegate:
    return Tidegate(tmp_path / "home")


async def fill(tidegate: Tidegate) -> None:
    """One thing of every kind."""

    async def write(place: Path) -> None:
        (place / "a").write_text("x" * 2048)

    async def write_another(place: Path) -> None:
        (place / "b").write_text("y" * 1024)

    cache = Cache(tidegate.cache)
    await cache.store("shop", write, source_name="shop")
    await cache.store("web", write_another, source_name="web", kind=CacheEntryKind.CHARTS)
    cache.renders.write("web", b"z" * 512)
    cache.close()


def age(place: Path, *, days: int) -> None:
    for path in place.rglob("*"):
        seen = path.lstat()
        os.utime(path, (seen.st_atime - days * DAY, seen.st_mtime - days * DAY))


async def test_cache_show_lists_each_kind_with_its_size_and_age(
    wording: RecordedWording, tidegate: Tidegate
) -> None:
    await fill(tidegate)
    age(tidegate.cache, days=3)

    ran = await tidegate.run("cache")

    rows = [line.split() for line in ran.lines]
    assert [row[:4] for row in rows[1:4]] == [
        ["sources", "1", "2.0", "KiB"],
        ["charts", "1", "1.0", "KiB"],
        ["renders", "1", "512", "B"],
    ]
    wording(ran.lines[:4])
    assert "2.0 GiB" in ran.lines[-1]
    assert ran.lines[-1].endswith(" ~/.cache/tidegate")


async def test_programs_can_read_it(tidegate: Tidegate) -> None:
    await fill(tidegate)

    ran = await tidegate.run("cache", "show", "-o", "json")

    document = json.loads(ran.stdout)
    assert document["root"] == str(tidegate.cache)
    assert [section["kind"] for section in document["sections"]] == list(CACHE_KINDS)
    assert [section["bytes"] for section in document["sections"]][:3] == [2048, 1024, 512]
    assert all(section["newest"] <= section["oldest"] < DAY for section in document["sections"])


async def test_an_empty_cache_is_no_error_and_is_not_created(
    wording: RecordedWording, tidegate: Tidegate
) -> None:
    shown = await tidegate.run("cache", "show")
    cleared = await tidegate.run("cache", "clear")

    assert (shown.code, cleared.code) == (0, 0)
    wording(cleared.stdout)
    assert not tidegate.cache.exists()


async def test_clearing_one_kind_keeps_the_others(tidegate: Tidegate) -> None:
    await fill(tidegate)

    ran = await tidegate.run("cache", "clear", "renders", "charts", "-o", "json")

    assert json.loads(ran.stdout) == {"removed": 2, "bytes": 1536, "kept": 0}
    held = {stat.kind: stat.count for stat in Cache(tidegate.cache).stats()}
    assert (
        held[CacheEntryKind.RENDERS],
        held[CacheEntryKind.CHARTS],
        held[CacheEntryKind.SOURCES],
    ) == (0, 0, 1)


async def test_an_entry_in_use_is_kept(wording: RecordedWording, tidegate: Tidegate) -> None:
    await fill(tidegate)
    user = Cache(tidegate.cache)
    used = user.find("shop")

    ran = await tidegate.run("cache", "clear")
    user.close()
    afterwards = await tidegate.run("cache", "clear")

    assert used is not None
    wording(ran.stdout)
    wording(afterwards.stdout)


async def test_a_cleared_chart_is_rendered_again(tidegate: Tidegate, tmp_path: Path) -> None:
    chart = write_chart(tmp_path / "web")
    await tidegate.run("render", chart)

    await tidegate.run("cache", "clear")
    again = await tidegate.run("render", chart)

    assert again.started > 0


async def test_an_unknown_kind_is_a_usage_error(tidegate: Tidegate) -> None:
    ran = await tidegate.run("cache", "clear", "cookies")

    assert ran.code == 2
    assert "cookies" in ran.stderr
    assert set(CACHE_KINDS) == {kind.value for kind in CacheEntryKind}

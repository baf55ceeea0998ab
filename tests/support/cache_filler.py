"""Fills a cache in a process of its own, and starts after a line on stdin."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tidegate.source.cache import Cache


async def fill(place: Path) -> None:
    for number in range(50):
        (place / f"{number}.yaml").write_text("x" * 1000)


async def main(root: Path, rounds: int) -> None:
    cache = Cache(root)
    digests = set()
    for number in range(rounds):
        tree = await cache.store(f"name {number}", fill, source_name="a test")
        if len(tree.files) != 50:
            raise SystemExit(3)
        digests.add(tree.digest)
        cache.shrink(limit=0)
    print(digests)  # noqa: T201


if __name__ == "__main__":
    print("ready", flush=True)  # noqa: T201
    sys.stdin.readline()
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))

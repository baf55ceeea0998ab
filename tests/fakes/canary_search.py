"""Looks for a canary wherever a run of the command could have left it."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from tidegate.render.scratch import MEMORY, PREFIX


def is_in(canary: str, text: bytes) -> bool:
    """As it is, or in the middle of something in base64."""
    plain = canary.encode()
    encoded = (base64.b64encode(b"." * shift + plain)[4:-4] for shift in range(3))
    return plain in text or any(form in text for form in encoded)


def contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file below, as it is and unpacked. What goes away meanwhile is somebody else's."""
    for path in folder.rglob("*"):
        try:
            content = path.read_bytes() if path.is_file() else b""
        except OSError:
            continue
        yield path, content
        try:
            yield path, zlib.decompress(content)
        except zlib.error:
            continue


def seen(
    canaries: Iterable[str], said: Iterable[tuple[str, str]], folders: Iterable[Path]
) -> list[str]:
    """Which canary is seen where: in what was said, in folders, in files kept in memory."""
    texts = [(name, text.encode()) for name, text in said]
    places = (*folders, *MEMORY.glob(f"{PREFIX}*"))
    texts += [(str(path), content) for folder in places for path, content in contents(folder)]
    return [
        f"{canary} in {where}"
        for canary in canaries
        for where, text in texts
        if is_in(canary, text)
    ]

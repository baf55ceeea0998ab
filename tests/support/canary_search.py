"""Looks for a canary wherever a run of the command could have left it, here or in a cluster."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tests.support.cluster_client import ClusterClient, require_items
from tidegate.engine.records.storage import TIDEGATE_NAMESPACE
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, Kind
from tidegate.render.scratch import MEMORY, PREFIX
from tidegate.world.requests import List, Selection

SECRET, LEASE, EVENT = (
    Kind("", "v1", "Secret"),
    Kind("coordination.k8s.io", "v1", "Lease"),
    Kind("", "v1", "Event"),
)


def is_in(canary: str, text: bytes) -> bool:
    """As it is, or in the middle of something in base64."""
    plain = canary.encode()
    encoded = (base64.b64encode(b"." * shift + plain)[4:-4] for shift in range(3))
    return plain in text or any(form in text for form in encoded)


def contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file below, as it is and unpacked. Files of other processes may disappear."""
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
    canaries: Iterable[str], given_text: Iterable[tuple[str, str]], folders: Iterable[Path]
) -> list[str]:
    """Which canary is seen where: in what was said, in folders, in files kept in memory."""
    texts = [(name, text.encode()) for name, text in given_text]
    places = (*folders, *left_in_memory())
    texts += [(str(path), content) for folder in places for path, content in contents(folder)]
    return [
        f"{canary} in {location}"
        for canary in canaries
        for location, text in texts
        if is_in(canary, text)
    ]


def left_in_memory() -> list[Path]:
    """Directories of ended processes; those of running processes belong to others."""
    return [path for path in MEMORY.glob(f"{PREFIX}*") if not _is_somebodys(path)]


def _is_somebodys(folder: Path) -> bool:
    process = folder.name.removeprefix(PREFIX).partition("-")[0]
    return Path("/proc", process).exists()


async def left_in(client: ClusterClient) -> list[bytes]:
    """All that rollouts leave in a cluster: journals, also decoded, leases and events."""
    pages = await client.ask(
        List(Selection(SECRET, TIDEGATE_NAMESPACE)), List(Selection(LEASE)), List(Selection(EVENT))
    )
    bodies = [item.body for page in pages for item in require_items(page)]
    return [*bodies, *(text for body in bodies for text in _decoded(body))]


def _decoded(body: bytes) -> list[bytes]:
    held: Json = msgspec.json.decode(body)
    return [base64.b64decode(str(text)) for text in get_mapping(held, "data").values()]

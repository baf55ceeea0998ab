"""Get the objects of a bucket as a tree of files.

The revision is the digest of their names and marks, as Flux has it: nothing is fetched again where
nothing has changed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tidegate.errors import Location, SourceError, sanitize
from tidegate.files import PathEscapeError, normalize_path
from tidegate.model.units.source import BucketSource, Revision, Snapshot
from tidegate.source.bucket.objects import Bucket, BucketObject
from tidegate.source.ignore import FILE_NAME, is_ignored, read_rules
from tidegate.source.options import FetchOptions
from tidegate.source.web import (
    FORBIDDEN,
    MISSING,
    HttpClient,
    check_http_url,
    open_http_client,
    redact_url,
    url_origin,
)

AT_ONCE = 16


async def fetch_bucket(source: BucketSource, access: FetchOptions) -> Snapshot:
    """The tree of all objects that count."""
    where = Location(redact_url(source.url))
    if source.provider:
        problem = f"objects of a bucket of `{source.provider}` are not fetched"
        hint = f"`--repo-map {redact_url(source.url)}=PATH` puts a directory in its place"
        raise SourceError("source.bucket.cloud", problem, location=where, hint=hint)
    check_http_url(source.url)
    credentials = access.keyring.find(url_origin(source.url))
    latest = f"bucket {msgspec.json.encode(source).decode()}"
    async with access.cache.turn(latest), open_http_client(access, credentials) as web:
        bucket = Bucket(source, web, credentials)
        known = access.recall(latest, redact_url(source.url))
        if known is not None:
            objects = msgspec.json.decode(known, type=list[BucketObject])
        else:
            objects = await _kept(source, bucket, web, access)
            access.cache.note(latest, msgspec.json.encode(objects))
        revision = _revision_of(objects)

        async def fill(place: Path) -> None:
            await _fill(objects, bucket, web, access, place)

        name = f"{latest} {revision}"
        tree = await access.tree(
            name, fill, what=redact_url(source.url), shown=redact_url(source.url)
        )
    return Snapshot(source, revision, tree.root, tree.files, digest=tree.digest)


def filter_bucket_files(source: BucketSource, root: Path, files: Iterable[str]) -> tuple[str, ...]:
    """Of the files of a directory in the place of a bucket, those that the bucket would have."""
    rules = root / FILE_NAME
    text = rules.read_text(encoding="utf-8", errors="replace") if rules.is_file() else ""
    wanted = (one for one in files if one.startswith(source.prefix))
    return tuple(_counting(wanted, source, text))


async def _kept(
    source: BucketSource, bucket: Bucket, web: HttpClient, access: FetchOptions
) -> list[BucketObject]:
    """Rules are looked for at the root of the bucket alone, wherever the prefix begins."""
    objects = {one.name: one for one in await bucket.objects(access.limits)}
    has_rules = bool(source.prefix) or FILE_NAME in objects
    unseen = frozenset({FORBIDDEN, MISSING})
    ask = msgspec.structs.replace(bucket.ask(FILE_NAME), accepts=unseen)
    got = await web.get(ask) if has_rules else None
    text = got.body.decode("utf-8", "replace") if got and got.status not in unseen else ""
    return [objects[name] for name in _counting(sorted(objects), source, text)]


def _counting(names: Iterable[str], source: BucketSource, text: str) -> Iterable[str]:
    rules = (*read_rules(text), *read_rules(source.ignore))
    return (one for one in names if one != FILE_NAME and not is_ignored(one, rules))


def _revision_of(objects: Iterable[BucketObject]) -> Revision:
    index = "".join(
        f"{one.name} {one.mark}\n" for one in sorted(objects, key=lambda one: one.name.encode())
    )
    return Revision("", f"sha256:{hashlib.sha256(index.encode()).hexdigest()}")


async def _fill(
    objects: Iterable[BucketObject],
    bucket: Bucket,
    web: HttpClient,
    access: FetchOptions,
    place: Path,
) -> None:
    at_once = asyncio.Semaphore(AT_ONCE)

    async def get(name: str) -> None:
        target = place / _path(name, bucket)
        await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
        ask = msgspec.structs.replace(bucket.ask(name), into=target, limit=access.limits.file_size)
        async with at_once:
            await web.get(ask)

    try:
        async with asyncio.TaskGroup() as group:
            for one in objects:
                group.create_task(get(one.name))
    except* OSError:
        problem = "an object of it has the name of a directory of others"
        raise SourceError("source.bucket.object", problem, location=bucket.where) from None
    except* SourceError as errors:
        raise errors.exceptions[0] from None


def _path(name: str, bucket: Bucket) -> str:
    try:
        return normalize_path(name)
    except PathEscapeError:
        problem = f"the object `{sanitize(name)}` has no path that could be inside of a tree"
        raise SourceError("source.bucket.object", problem, location=bucket.where) from None

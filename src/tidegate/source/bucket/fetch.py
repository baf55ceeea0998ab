"""Objects of a bucket, fetched as a tree of files.

The revision is the digest of their names and ETags, as in source-controller: unchanged buckets are
not fetched again.

Like `fetchEtagIndex` in `internal/controller/bucket_controller.go` and `Digest` in
`internal/index/digest.go` of source-controller 1.9.6.
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
    NOT_FOUND,
    HttpClient,
    check_http_url,
    open_http_client,
    redact_url,
    url_origin,
)

MAX_DOWNLOADS = 16


async def fetch_bucket(source: BucketSource, options: FetchOptions) -> Snapshot:
    """Return the tree of all objects that are not ignored."""
    location = Location(redact_url(source.url))
    if source.provider:
        problem = f"buckets of provider `{source.provider}` are not supported"
        hint = f"use a directory instead: `--repo-map {redact_url(source.url)}=PATH`"
        raise SourceError("source.bucket.cloud", problem, location=location, hint=hint)
    check_http_url(source.url)
    credentials = options.credentials.find(url_origin(source.url))
    cache_name = f"bucket {msgspec.json.encode(source).decode()}"
    async with options.cache.lock(cache_name), open_http_client(options, credentials) as client:
        bucket = Bucket(source, client, credentials)
        cached = options.read_cached_text(cache_name, redact_url(source.url))
        if cached is not None:
            objects = msgspec.json.decode(cached, type=list[BucketObject])
        else:
            objects = await _list_objects(source, bucket, client, options)
            options.cache.write_text(cache_name, msgspec.json.encode(objects))
        revision = _revision(objects)

        async def fill(directory: Path) -> None:
            await _fill(objects, bucket, client, options, directory)

        name = f"{cache_name} {revision}"
        tree = await options.find_or_fetch_tree(
            name, fill, display_name=redact_url(source.url), source_name=redact_url(source.url)
        )
    return Snapshot(source, revision, tree.root, tree.files, digest=tree.digest)


def filter_bucket_files(source: BucketSource, root: Path, files: Iterable[str]) -> tuple[str, ...]:
    """Return the files of a mapped directory that the bucket would contain."""
    rules = root / FILE_NAME
    text = rules.read_text(encoding="utf-8", errors="replace") if rules.is_file() else ""
    candidates = (file for file in files if file.startswith(source.prefix))
    return tuple(_filter_names(candidates, source, text))


async def _list_objects(
    source: BucketSource, bucket: Bucket, client: HttpClient, options: FetchOptions
) -> list[BucketObject]:
    """List the objects of a bucket that are not ignored.

    The ignore file is read at the root of the bucket, also with a prefix.
    """
    objects = {item.name: item for item in await bucket.list_objects(options.limits)}
    has_rules = bool(source.prefix) or FILE_NAME in objects
    absent_statuses = frozenset({FORBIDDEN, NOT_FOUND})
    request = msgspec.structs.replace(
        bucket.request_for(FILE_NAME), accepted_statuses=absent_statuses
    )
    download = await client.get(request) if has_rules else None
    text = (
        download.body.decode("utf-8", "replace")
        if download and download.status not in absent_statuses
        else ""
    )
    return [objects[name] for name in _filter_names(sorted(objects), source, text)]


def _filter_names(names: Iterable[str], source: BucketSource, text: str) -> Iterable[str]:
    rules = (*read_rules(text), *read_rules(source.ignore))
    return (name for name in names if name != FILE_NAME and not is_ignored(name, rules))


def _revision(objects: Iterable[BucketObject]) -> Revision:
    index = "".join(
        f"{item.name} {item.etag}\n"
        for item in sorted(objects, key=lambda item: item.name.encode())
    )
    return Revision("", f"sha256:{hashlib.sha256(index.encode()).hexdigest()}")


async def _fill(
    objects: Iterable[BucketObject],
    bucket: Bucket,
    client: HttpClient,
    options: FetchOptions,
    directory: Path,
) -> None:
    semaphore = asyncio.Semaphore(MAX_DOWNLOADS)

    async def get(name: str) -> None:
        path = directory / _path(name, bucket)
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        request = msgspec.structs.replace(
            bucket.request_for(name), target=path, limit=options.limits.file_size
        )
        async with semaphore:
            await client.get(request)

    try:
        async with asyncio.TaskGroup() as group:
            for item in objects:
                group.create_task(get(item.name))
    except* OSError:
        problem = "an object has the same name as a directory of other objects"
        raise SourceError("source.bucket.object", problem, location=bucket.location) from None
    except* SourceError as errors:
        raise errors.exceptions[0] from None


def _path(name: str, bucket: Bucket) -> str:
    try:
        return normalize_path(name)
    except PathEscapeError:
        problem = f"the object `{sanitize(name)}` is not a valid path of a file"
        raise SourceError("source.bucket.object", problem, location=bucket.location) from None

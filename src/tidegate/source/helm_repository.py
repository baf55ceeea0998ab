"""Charts of Helm repositories: read the index, choose a version, check the digest."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urljoin, urlsplit, urlunsplit

import msgspec

from tidegate.documents import read_documents
from tidegate.errors import DocumentError, Location, SourceError, sanitize
from tidegate.model.units.source import ChartSource, Credentials, OciSource, Revision, Snapshot
from tidegate.source.archive import unpack
from tidegate.source.cache import CacheEntryKind
from tidegate.source.credentials import authorization_header
from tidegate.source.oci.artifacts import fetch_oci
from tidegate.source.options import FetchOptions
from tidegate.source.semver import pick_highest, read_version, require_range
from tidegate.source.tree import CHART_LAYER, check_chart, check_digest
from tidegate.source.vendored import read_chart
from tidegate.source.web import (
    DownloadRequest,
    HttpClient,
    check_http_url,
    open_http_client,
    redact_url,
    url_origin,
)


class ChartEntry(msgspec.Struct, frozen=True):
    """One version of a chart in an index."""

    version: str
    """The version."""
    urls: tuple[str, ...] = ()
    """The addresses of the archive."""
    digest: str = ""
    """The SHA-256 digest of the archive; empty if unknown."""


Index = dict[str, tuple[ChartEntry, ...]]


async def fetch_chart(source: ChartSource, options: FetchOptions) -> Snapshot:
    """Fetch the highest version of a chart in the requested range."""
    check_http_url(source.repository)
    credentials = options.credentials.find(url_origin(source.repository))
    async with (
        options.cache.lock(f"chart {source.repository}"),
        open_http_client(options, credentials) as client,
    ):
        index = await _fetch_index(source, client, credentials, options)
        entry = choose_entry(source, index.get(source.chart, ()))
        return await _fetch_entry(source, entry, client, credentials, options)


def choose_entry(source: ChartSource, entries: Sequence[ChartEntry]) -> ChartEntry:
    """Return the entry of exactly the version, else of the highest version in the range.

    Like `Get` in `pkg/repo/v1/index.go` of Helm 4.2.4 and `GetChartVersion` in
    `internal/helm/repository/chart_repository.go` of source-controller 1.9.6.
    """
    location = Location(redact_url(source.repository))
    if not entries:
        problem = f"chart `{sanitize(source.chart)}` not found"
        raise SourceError("source.chart.missing", problem, location=location)
    by_version = {entry.version: entry for entry in reversed(entries)}
    if source.version in by_version:
        return by_version[source.version]
    highest = pick_highest(require_range(source.version or "*"), by_version)
    if highest is None:
        name, version_range = sanitize(source.chart), sanitize(source.version or "*")
        problem = f"chart `{name}` has no version that matches `{version_range}`"
        newest = pick_highest(require_range(">=0-0"), by_version)
        hint = f"the newest version is `{sanitize(newest.text)}`" if newest else ""
        raise SourceError("source.chart.version", problem, location=location, hint=hint)
    return by_version[highest.text]


def read_index(text: bytes, name: str) -> Index:
    """Read an index, which is YAML or JSON; invalid entries are dropped.

    Like `loadIndex` in `pkg/repo/v1/index.go` of Helm 4.2.4.
    """
    try:
        entries = _index_entries(text, name)
    except DocumentError as error:
        problem = "cannot read the index of the repository"
        raise SourceError("source.chart.index", problem, location=Location(name)) from error
    return {
        chart: tuple(entry for item in versions if (entry := _read_entry(item)))
        for chart, versions in entries.items()
        if isinstance(versions, list)
    }


def join_url(repository: str, reference: str) -> str:
    """Return the address of a chart: absolute, or relative to the repository."""
    if "://" in reference:
        return reference
    parts = urlsplit(repository)
    base = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + "/", "", ""))
    joined = urljoin(base, reference)
    return f"{joined}?{parts.query}" if parts.query else joined


async def _fetch_index(
    source: ChartSource, client: HttpClient, credentials: Credentials, options: FetchOptions
) -> Index:
    url = join_url(source.repository, "index.yaml")
    cache_name = f"index {url}"
    cached = options.read_cached_text(cache_name, redact_url(source.repository))
    if cached is not None:
        return msgspec.json.decode(cached, type=Index)
    download = await client.get(
        DownloadRequest(url=url, authorization=authorization_header(credentials))
    )
    cached_index = options.cache.read_text(f"index {download.sha256}")
    if cached_index is None:
        index = await asyncio.to_thread(read_index, download.body, redact_url(url))
        cached_index = msgspec.json.encode(index)
        options.cache.write_text(f"index {download.sha256}", cached_index)
    options.cache.write_text(cache_name, cached_index)
    return msgspec.json.decode(cached_index, type=Index)


async def _fetch_entry(
    source: ChartSource,
    entry: ChartEntry,
    client: HttpClient,
    credentials: Credentials,
    options: FetchOptions,
) -> Snapshot:
    if not entry.urls:
        problem = f"version `{sanitize(entry.version)}` has no URL"
        raise SourceError(
            "source.chart.index", problem, location=Location(redact_url(source.repository))
        )
    url = join_url(source.repository, entry.urls[0])
    if url.startswith("oci://"):
        return await _fetch_from_registry(source, entry, url, options)
    sends_credentials = (
        url_origin(url) == url_origin(source.repository) or source.shares_credentials
    )
    request = DownloadRequest(
        url=url,
        authorization=authorization_header(credentials) if sends_credentials else "",
        shares_credentials=source.shares_credentials,
        limit=options.limits.download,
    )

    async def fill(directory: Path) -> None:
        await _download_archive(request, entry, client, directory, options)
        _check_entry(directory, source.chart, entry, redact_url(url))

    name = f"chart {url} {entry.version} {entry.digest}"
    display_name = f"{source.chart} {entry.version} from {redact_url(source.repository)}"
    tree = await options.find_or_fetch_tree(
        name,
        fill,
        display_name=display_name,
        source_name=redact_url(url),
        kind=CacheEntryKind.CHARTS,
    )
    revision = Revision(entry.version)
    return Snapshot(source, revision, tree.root, tree.files, digest=tree.digest)


async def _fetch_from_registry(
    source: ChartSource, entry: ChartEntry, url: str, options: FetchOptions
) -> Snapshot:
    """Fetch a chart from an OCI registry that the index names, by tag or digest."""
    address, _, digest = url.partition("@")
    path, colon, tag = address.rpartition(":")
    has_tag = bool(colon) and "/" not in tag
    artifact = OciSource(
        path if has_tag else address,
        tag=tag if has_tag else entry.version.replace("+", "_"),
        digest=digest,
        media_type=CHART_LAYER,
        plain_http=source.plain_http,
    )
    snapshot = await fetch_oci(artifact, options)
    _check_entry(snapshot.root, source.chart, entry, redact_url(url))
    revision = Revision(entry.version, snapshot.revision.digest)
    return msgspec.structs.replace(snapshot, source=source, revision=revision)


async def _download_archive(
    request: DownloadRequest,
    entry: ChartEntry,
    client: HttpClient,
    directory: Path,
    options: FetchOptions,
) -> None:
    with tempfile.TemporaryDirectory(prefix="tidegate-") as scratch:
        archive = Path(scratch) / "chart.tgz"
        download = await client.get(msgspec.structs.replace(request, target=archive))
        check_digest(download.sha256, entry.digest, redact_url(request.url))
        await asyncio.to_thread(
            unpack, archive, directory, name=redact_url(request.url), limits=options.limits, strip=1
        )


def _check_entry(directory: Path, chart: str, entry: ChartEntry, name: str) -> None:
    """Raise SourceError if an archive does not contain the chart of its index entry.

    An index is made from the `Chart.yaml` of its archives: `indexDirectory` in
    `pkg/repo/v1/index.go` of Helm 4.2.4.
    """
    check_chart(directory, name)
    content = read_chart(directory, directory)
    if content is None:
        problem = "it has no readable `Chart.yaml`"
    elif content.name != chart or not _are_equal(content.version, entry.version):
        actual = sanitize(f"{content.name} {content.version}")
        problem = f"it contains chart `{actual}`, not `{sanitize(f'{chart} {entry.version}')}`"
    else:
        return
    raise SourceError("source.chart.archive", problem, location=Location(name))


def _are_equal(version: str, other: str) -> bool:
    """Return whether two versions are equal; their build metadata may differ."""
    versions = [read_version(text) for text in (version, other)]
    keys = [item and item.sort_key for item in versions]
    return version == other or (None not in keys and keys[0] == keys[1])


def _index_entries(text: bytes, name: str) -> dict[str, object]:
    index: object
    try:
        index = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        documents = read_documents(text, name)
        index = documents[0].body if documents else {}
    entries = index.get("entries") if isinstance(index, dict) else None
    if not isinstance(entries, dict):
        problem = "the index of the repository has no `entries`"
        raise SourceError("source.chart.index", problem, location=Location(name))
    return {str(chart): versions for chart, versions in entries.items()}


def _read_entry(item: object) -> ChartEntry | None:
    try:
        return msgspec.convert(item, ChartEntry)
    except msgspec.ValidationError:
        return None

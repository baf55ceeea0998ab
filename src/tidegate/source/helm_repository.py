"""Get a chart from a Helm repository: read its index, choose a version, check the digest."""

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
from tidegate.source.semver import pick_highest, require_range
from tidegate.source.tree import CHART_LAYER, check_chart, check_digest
from tidegate.source.web import (
    DownloadRequest,
    HttpClient,
    check_http_url,
    open_http_client,
    redact_url,
    url_origin,
)


class ChartEntry(msgspec.Struct, frozen=True):
    """One version of a chart, as an index lists it."""

    version: str
    urls: tuple[str, ...] = ()
    digest: str = ""


Index = dict[str, tuple[ChartEntry, ...]]


async def fetch_chart(source: ChartSource, access: FetchOptions) -> Snapshot:
    """The chart's own directory, of the highest version that the range takes."""
    check_http_url(source.repository)
    credentials = access.keyring.find(url_origin(source.repository))
    async with (
        access.cache.turn(f"chart {source.repository}"),
        open_http_client(access, credentials) as web,
    ):
        index = await _index(source, web, credentials, access)
        entry = choose_entry(source, index.get(source.chart, ()))
        return await _chart(source, entry, web, credentials, access)


def choose_entry(source: ChartSource, entries: Sequence[ChartEntry]) -> ChartEntry:
    """The very version if it is written so, else the highest in the range."""
    where = Location(redact_url(source.repository))
    if not entries:
        problem = f"there is no chart `{sanitize(source.chart)}`"
        raise SourceError("source.chart.missing", problem, location=where)
    by_version = {entry.version: entry for entry in reversed(entries)}
    if source.version in by_version:
        return by_version[source.version]
    found = pick_highest(require_range(source.version or "*"), by_version)
    if found is None:
        name, wanted = sanitize(source.chart), sanitize(source.version or "*")
        problem = f"chart `{name}` has no version in `{wanted}`"
        newest = pick_highest(require_range(">=0-0"), by_version)
        hint = f"the newest is `{sanitize(newest.text)}`" if newest else ""
        raise SourceError("source.chart.version", problem, location=where, hint=hint)
    return by_version[found.text]


def read_index(text: bytes, name: str) -> Index:
    """Read an index, which is YAML or JSON; entries that are not as they should be are dropped."""
    try:
        entries = _entries_of(text, name)
    except DocumentError as error:
        problem = "the repository's index cannot be read"
        raise SourceError("source.chart.index", problem, location=Location(name)) from error
    return {
        chart: tuple(entry for item in listed if (entry := _entry(item)))
        for chart, listed in entries.items()
        if isinstance(listed, list)
    }


def join_url(repository: str, reference: str) -> str:
    """Where a chart is: an address of its own, or one below the repository's."""
    if "://" in reference:
        return reference
    parts = urlsplit(repository)
    base = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + "/", "", ""))
    joined = urljoin(base, reference)
    return f"{joined}?{parts.query}" if parts.query else joined


async def _index(
    source: ChartSource, web: HttpClient, credentials: Credentials, access: FetchOptions
) -> Index:
    url = join_url(source.repository, "index.yaml")
    latest = f"index {url}"
    known = access.recall(latest, redact_url(source.repository))
    if known is not None:
        return msgspec.json.decode(known, type=Index)
    got = await web.get(DownloadRequest(url=url, authorization=authorization_header(credentials)))
    read_before = access.cache.recall(f"index {got.sha256}")
    if read_before is None:
        index = await asyncio.to_thread(read_index, got.body, redact_url(url))
        read_before = msgspec.json.encode(index)
        access.cache.note(f"index {got.sha256}", read_before)
    access.cache.note(latest, read_before)
    return msgspec.json.decode(read_before, type=Index)


async def _chart(
    source: ChartSource,
    entry: ChartEntry,
    web: HttpClient,
    credentials: Credentials,
    access: FetchOptions,
) -> Snapshot:
    if not entry.urls:
        problem = f"version `{sanitize(entry.version)}` has no address"
        raise SourceError(
            "source.chart.index", problem, location=Location(redact_url(source.repository))
        )
    url = join_url(source.repository, entry.urls[0])
    if url.startswith("oci://"):
        return await _chart_in_registry(source, entry, url, access)
    same = url_origin(url) == url_origin(source.repository) or source.shares_credentials
    ask = DownloadRequest(
        url=url,
        authorization=authorization_header(credentials) if same else "",
        shares=source.shares_credentials,
        limit=access.limits.download,
    )

    async def fill(place: Path) -> None:
        await _unpack(ask, entry, web, place, access)

    name = f"chart {url} {entry.version} {entry.digest}"
    what = f"{source.chart} {entry.version} from {redact_url(source.repository)}"
    tree = await access.tree(
        name, fill, what=what, shown=redact_url(url), kind=CacheEntryKind.CHARTS
    )
    revision = Revision(entry.version)
    return Snapshot(source, revision, tree.root, tree.files, digest=tree.digest)


async def _chart_in_registry(
    source: ChartSource, entry: ChartEntry, url: str, access: FetchOptions
) -> Snapshot:
    """Some indexes send us on to a registry, to a tag or a digest there."""
    address, _, digest = url.partition("@")
    path, colon, tag = address.rpartition(":")
    tagged = bool(colon) and "/" not in tag
    artifact = OciSource(
        path if tagged else address,
        tag=tag if tagged else entry.version.replace("+", "_"),
        digest=digest,
        media_type=CHART_LAYER,
        plain_http=source.plain_http,
    )
    found = await fetch_oci(artifact, access)
    check_chart(found.root, redact_url(url))
    revision = Revision(entry.version, found.revision.digest)
    return msgspec.structs.replace(found, source=source, revision=revision)


async def _unpack(
    ask: DownloadRequest, entry: ChartEntry, web: HttpClient, place: Path, access: FetchOptions
) -> None:
    with tempfile.TemporaryDirectory(prefix="tidegate-") as folder:
        packed = Path(folder) / "chart.tgz"
        got = await web.get(msgspec.structs.replace(ask, into=packed))
        check_digest(got.sha256, entry.digest, redact_url(ask.url))
        await asyncio.to_thread(
            unpack, packed, place, name=redact_url(ask.url), limits=access.limits, strip=1
        )
    check_chart(place, redact_url(ask.url))


def _entries_of(text: bytes, name: str) -> dict[str, object]:
    whole: object
    try:
        whole = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        documents = read_documents(text, name)
        whole = documents[0].body if documents else {}
    entries = whole.get("entries") if isinstance(whole, dict) else None
    if not isinstance(entries, dict):
        problem = "the repository's index has no `entries`"
        raise SourceError("source.chart.index", problem, location=Location(name))
    return {str(chart): listed for chart, listed in entries.items()}


def _entry(item: object) -> ChartEntry | None:
    try:
        return msgspec.convert(item, ChartEntry)
    except msgspec.ValidationError:
        return None

"""Objects of an S3 bucket, with their ETags."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote, unquote_plus, urlsplit
from xml.etree import ElementTree as ET

import msgspec

from tidegate.errors import Location, SourceError, sanitize
from tidegate.model.units.source import BucketSource, Credentials
from tidegate.source.bucket.signature import UNRESERVED, AccessKey, sign, write_query
from tidegate.source.tree import MIB, TreeLimits
from tidegate.source.web import (
    FORBIDDEN,
    NOT_FOUND,
    UNAUTHORIZED,
    Download,
    DownloadRequest,
    HttpClient,
    redact_url,
    url_origin,
)

DEFAULT_REGION = "us-east-1"
REGION_HEADER = "x-amz-bucket-region"
HOST_STYLE_DOMAINS = ("amazonaws.com", "amazonaws.com.cn", "aliyuncs.com")
"""Domains whose buckets have a host of their own."""
MOVED_PERMANENTLY, BAD_REQUEST = 301, 400
LISTING_ERRORS = frozenset({MOVED_PERMANENTLY, BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND})
"""Statuses that may be due to a wrong region."""


class BucketObject(msgspec.Struct, frozen=True):
    """An object of a bucket."""

    name: str
    """The key of the object."""
    etag: str = msgspec.field(name="mark")
    """Changes with the content. The cache calls it `mark`."""
    size: int = 0
    """The size in bytes."""


class Bucket:
    """One bucket of a server, accessed with a key or without."""

    def __init__(self, source: BucketSource, client: HttpClient, credentials: Credentials) -> None:
        self._source, self._client = source, client
        self._region = source.region or _endpoint_region(source.endpoint)
        self._key = (
            AccessKey(credentials.username, credentials.password)
            if credentials.password is not None and credentials.username
            else None
        )
        self.location = Location(redact_url(source.url))

    async def list_objects(self, limits: TreeLimits) -> list[BucketObject]:
        """Return all objects below the prefix, without those that represent directories."""
        objects: list[BucketObject] = []
        token = ""
        while True:
            download = await self._fetch_page(token)
            page = _parse_page(download.body, self.location)
            objects += _page_objects(page)
            self._check(objects, limits)
            token = _child_text(page, "NextContinuationToken")
            if _child_text(page, "IsTruncated") != "true" or not token:
                return [item for item in objects if not item.name.endswith("/")]

    def request_for(self, name: str) -> DownloadRequest:
        """Return the request for one object."""
        return self._signed_request(f"{self._base_url}/{quote(name, safe=f'/{UNRESERVED}')}")

    async def _fetch_page(self, token: str) -> Download:
        """Fetch a page of the list; try again if the server names another region."""
        download = await self._client.get(self._page_request(token))
        region = download.headers.get(REGION_HEADER, "")
        if download.status in LISTING_ERRORS and region and region != self._region:
            self._region = region
            download = await self._client.get(self._page_request(token))
        if download.status in LISTING_ERRORS:
            raise self._access_error(download)
        return download

    def _page_request(self, token: str) -> DownloadRequest:
        query = [("encoding-type", "url"), ("list-type", "2")]
        query += [("prefix", self._source.prefix)] if self._source.prefix else []
        query += [("continuation-token", token)] if token else []
        request = self._signed_request(f"{self._base_url}/?{write_query(query)}")
        return msgspec.structs.replace(request, accepted_statuses=LISTING_ERRORS)

    def _signed_request(self, url: str) -> DownloadRequest:
        if self._key is None:
            return DownloadRequest(url=url)
        now = datetime.now(UTC)  # noqa: TID251  (the server compares it with its own clock)
        signature = sign(url, self._key, self._region, now)
        return DownloadRequest(
            url=url, authorization=signature.authorization, signed_headers=signature.headers
        )

    @property
    def _base_url(self) -> str:
        host, name = urlsplit(self._source.url).hostname or "", self._source.name
        if host.endswith(HOST_STYLE_DOMAINS) and "." not in name:
            scheme, _, rest = url_origin(self._source.url).partition("://")
            return f"{scheme}://{name}.{rest}"
        return f"{url_origin(self._source.url)}/{name}"

    def _check(self, objects: list[BucketObject], limits: TreeLimits) -> None:
        if len(objects) > limits.files:
            problem = f"the bucket has more than {limits.files} objects"
        elif sum(item.size for item in objects) > limits.tree_size:
            problem = f"the bucket is larger than {limits.tree_size // MIB} MiB"
        else:
            return
        raise SourceError("source.bucket.size", problem, location=self.location)

    def _access_error(self, download: Download) -> SourceError:
        message = (
            _child_text(_parse_page(download.body, self.location), "Message")
            if download.body
            else ""
        )
        suffix = f": {sanitize(message)}" if message else ""
        if download.status == NOT_FOUND:
            problem = f"bucket not found: `{sanitize(self._source.name)}`{suffix}"
            return SourceError("source.bucket.missing", problem, location=self.location)
        problem = f"the server refused access with status {download.status}{suffix}"
        hint = "provide a Secret with `accesskey` and `secretkey`, or map the URL to a directory"
        return SourceError("source.bucket.credentials", problem, location=self.location, hint=hint)


def _endpoint_region(endpoint: str) -> str:
    """Return the region in an Amazon host such as `s3.eu-west-1.amazonaws.com`."""
    host = endpoint.partition("://")[2] or endpoint
    before, domain, _ = host.partition(".amazonaws.com")
    region = before.removeprefix("s3").lstrip(".-")
    return region if domain and before.startswith("s3") and region else DEFAULT_REGION


def _parse_page(body: bytes, location: Location) -> ET.Element:
    error = SourceError(
        "source.bucket.answer", "the response is not a list of objects", location=location
    )
    if b"<!" in body:  # a list of objects declares no entities
        raise error
    try:
        return ET.fromstring(body)  # noqa: S314  (see above)
    except ET.ParseError:
        raise error from None


def _page_objects(page: ET.Element) -> list[BucketObject]:
    entries = [entry for entry in page if _local_name(entry.tag) == "Contents"]
    is_escaped = _child_text(page, "EncodingType") == "url"
    return [
        BucketObject(
            name=unquote_plus(_child_text(entry, "Key"))
            if is_escaped
            else _child_text(entry, "Key"),
            etag=_child_text(entry, "ETag").strip('"'),
            size=int(size) if (size := _child_text(entry, "Size")).isdecimal() else 0,
        )
        for entry in entries
    ]


def _child_text(parent: ET.Element, name: str) -> str:
    return next((child.text or "" for child in parent if _local_name(child.tag) == name), "")


def _local_name(tag: str) -> str:
    """Return a tag without its XML namespace, which some servers omit."""
    return tag.rpartition("}")[2]

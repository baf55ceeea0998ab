"""What a bucket has: its objects with the marks by which a change of one is known."""

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
    MISSING,
    UNAUTHORIZED,
    Download,
    DownloadRequest,
    HttpClient,
    redact_url,
    url_origin,
)

DEFAULT_REGION = "us-east-1"
REGION = "x-amz-bucket-region"
BY_HOST = ("amazonaws.com", "amazonaws.com.cn", "aliyuncs.com")
"""Whose buckets are hosts of their own."""
MOVED, REFUSED = 301, 400
NOT_OURS = frozenset({MOVED, REFUSED, UNAUTHORIZED, FORBIDDEN, MISSING})


class BucketObject(msgspec.Struct, frozen=True):
    """An object by its name; `mark` is another one whenever its content is."""

    name: str
    mark: str
    size: int = 0


class Bucket:
    """One bucket on one server, asked with a key or without."""

    def __init__(self, source: BucketSource, web: HttpClient, credentials: Credentials) -> None:
        self._source, self._web = source, web
        self._region = source.region or _region_of(source.endpoint)
        self._key = (
            AccessKey(credentials.username, credentials.password)
            if credentials.password is not None and credentials.username
            else None
        )
        self.where = Location(redact_url(source.url))

    async def objects(self, limits: TreeLimits) -> list[BucketObject]:
        """All of them below the prefix, but those that stand for directories."""
        found: list[BucketObject] = []
        following = ""
        while True:
            got = await self._page(following)
            page = _read(got.body, self.where)
            found += _listed(page)
            self._check(found, limits)
            following = _text(page, "NextContinuationToken")
            if _text(page, "IsTruncated") != "true" or not following:
                return [one for one in found if not one.name.endswith("/")]

    def ask(self, name: str) -> DownloadRequest:
        """What asks for one object."""
        return self._signed(f"{self._base}/{quote(name, safe=f'/{UNRESERVED}')}")

    async def _page(self, following: str) -> Download:
        """A server may say that the bucket is in another region than we thought."""
        got = await self._web.get(self._listing(following))
        told = got.headers.get(REGION, "")
        if got.status in NOT_OURS and told and told != self._region:
            self._region = told
            got = await self._web.get(self._listing(following))
        if got.status in NOT_OURS:
            raise self._refusal(got)
        return got

    def _listing(self, following: str) -> DownloadRequest:
        asked = [("encoding-type", "url"), ("list-type", "2")]
        asked += [("prefix", self._source.prefix)] if self._source.prefix else []
        asked += [("continuation-token", following)] if following else []
        ask = self._signed(f"{self._base}/?{write_query(asked)}")
        return msgspec.structs.replace(ask, accepts=NOT_OURS)

    def _signed(self, url: str) -> DownloadRequest:
        if self._key is None:
            return DownloadRequest(url=url)
        now = datetime.now(UTC)  # noqa: TID251  (the server compares it with its own clock)
        signature = sign(url, self._key, self._region, now)
        return DownloadRequest(
            url=url, authorization=signature.authorization, signed=signature.headers
        )

    @property
    def _base(self) -> str:
        host, name = urlsplit(self._source.url).hostname or "", self._source.name
        if host.endswith(BY_HOST) and "." not in name:
            scheme, _, rest = url_origin(self._source.url).partition("://")
            return f"{scheme}://{name}.{rest}"
        return f"{url_origin(self._source.url)}/{name}"

    def _check(self, found: list[BucketObject], limits: TreeLimits) -> None:
        if len(found) > limits.files:
            problem = f"there are more than {limits.files} objects in it"
        elif sum(one.size for one in found) > limits.tree_size:
            problem = f"what is in it is larger than {limits.tree_size // MIB} MiB"
        else:
            return
        raise SourceError("source.bucket.size", problem, location=self.where)

    def _refusal(self, got: Download) -> SourceError:
        said = _text(_read(got.body, self.where), "Message") if got.body else ""
        told = f": {sanitize(said)}" if said else ""
        if got.status == MISSING:
            problem = f"there is no bucket `{sanitize(self._source.name)}`{told}"
            return SourceError("source.bucket.missing", problem, location=self.where)
        problem = f"the server says no, with status {got.status}{told}"
        hint = "give a Secret with `accesskey` and `secretkey`, or map the address to a directory"
        return SourceError("source.bucket.credentials", problem, location=self.where, hint=hint)


def _region_of(endpoint: str) -> str:
    """Amazon has it in the host: `s3.eu-west-1.amazonaws.com`."""
    host = endpoint.partition("://")[2] or endpoint
    before, amazon, _ = host.partition(".amazonaws.com")
    region = before.removeprefix("s3").lstrip(".-")
    return region if amazon and before.startswith("s3") and region else DEFAULT_REGION


def _read(body: bytes, where: Location) -> ET.Element:
    refusal = SourceError(
        "source.bucket.answer", "the answer is no list of objects", location=where
    )
    if b"<!" in body:  # nobody who lists objects has entities to declare
        raise refusal
    try:
        return ET.fromstring(body)  # noqa: S314  (see above)
    except ET.ParseError:
        raise refusal from None


def _listed(page: ET.Element) -> list[BucketObject]:
    entries = [one for one in page if _bare(one.tag) == "Contents"]
    is_escaped = _text(page, "EncodingType") == "url"
    return [
        BucketObject(
            name=unquote_plus(_text(one, "Key")) if is_escaped else _text(one, "Key"),
            mark=_text(one, "ETag").strip('"'),
            size=int(size) if (size := _text(one, "Size")).isdecimal() else 0,
        )
        for one in entries
    ]


def _text(above: ET.Element, name: str) -> str:
    return next((one.text or "" for one in above if _bare(one.tag) == name), "")


def _bare(tag: str) -> str:
    """Some servers have a namespace of XML, some have none."""
    return tag.rpartition("}")[2]

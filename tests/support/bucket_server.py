"""A server of one bucket that supports listing and reading objects, like S3."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from urllib.parse import quote_plus
from xml.sax.saxutils import escape

from aiohttp import web

NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


@dataclass(slots=True)
class BucketServer:
    """Objects by name. With a `key`, only those who sign with one of that name are let in."""

    name: str = "platform"
    objects: dict[str, bytes] = field(default_factory=dict)
    key: str = ""
    region: str = "us-east-1"
    page: int = 2
    requests: list[str] = field(default_factory=list)
    """The requested objects."""

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/{bucket}/", self._list)
        app.router.add_get("/{bucket}/{name:.+}", self._give)
        return app

    def revision(self, *names: str) -> str:
        """As source-controller writes it: the digest of names and marks."""
        index = "".join(f"{name} {mark_of(self.objects[name])}\n" for name in sorted(names))
        return f"sha256:{hashlib.sha256(index.encode()).hexdigest()}"

    async def _list(self, request: web.Request) -> web.Response:
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        prefix = request.query.get("prefix", "")
        start = int(request.query.get("continuation-token", "0"))
        names = sorted(name for name in self.objects if name.startswith(prefix))
        page = names[start : start + self.page]
        entries = "".join(
            f"<Contents><Key>{escape(quote_plus(name, safe='/'))}</Key>"
            f'<ETag>"{mark_of(self.objects[name])}"</ETag>'
            f"<Size>{len(self.objects[name])}</Size></Contents>"
            for name in page
        )
        is_cut = start + self.page < len(names)
        following = f"<NextContinuationToken>{start + self.page}</NextContinuationToken>"
        body = (
            f'<?xml version="1.0"?><ListBucketResult {NAMESPACE}>'
            f"<IsTruncated>{str(is_cut).lower()}</IsTruncated><EncodingType>url</EncodingType>"
            f"{following if is_cut else ''}{entries}</ListBucketResult>"
        )
        return web.Response(text=body, content_type="application/xml")

    async def _give(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        self.requests.append(name)
        body = self.objects.get(name)
        return self._refusal(request) or (
            read_result(404, "NoSuchKey") if body is None else web.Response(body=body)
        )

    def _refusal(self, request: web.Request) -> web.Response | None:
        if request.match_info["bucket"] != self.name:
            return read_result(404, "The specified bucket does not exist")
        value = request.headers.get("Authorization", "")
        if self.key and f"Credential={self.key}/" not in value:
            return read_result(403, "Access Denied.")
        if self.key and f"/{self.region}/s3/" not in value:
            return read_result(400, "the region is wrong", {"x-amz-bucket-region": self.region})
        return None


def mark_of(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def read_result(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    body = f"<Error><Message>{message}</Message></Error>"
    return web.Response(text=body, status=status, content_type="application/xml", headers=headers)

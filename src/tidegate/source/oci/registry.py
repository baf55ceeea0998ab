"""Client of one repository in an OCI registry; it gets a token when the registry requires one.

Tags are filtered by an untrusted regular expression, in a process that can be killed: an expression
can make Python's `re` run forever.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TypeVar
from urllib.parse import urlencode, urljoin

import msgspec

from tidegate.errors import Location, ProcessError, SourceError, sanitize
from tidegate.external.process import Command, Limits, run
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.source import Credentials
from tidegate.source.credentials import authorization_header
from tidegate.source.web import UNAUTHORIZED, Download, DownloadRequest, HttpClient, url_origin

MAX_PAGES = 100
FILTER_TIMEOUT = Ms(5 * SECOND)
INVALID_EXPRESSION = 3
FILTER_SCRIPT = f"""
import json, re, sys
text, tags = json.load(sys.stdin)
try:
    shape = re.compile(text)
except re.error:
    sys.exit({INVALID_EXPRESSION})
json.dump([tag for tag in tags if shape.search(tag)], sys.stdout)
"""
ReplyT = TypeVar("ReplyT")
_PARAMETER = lazy_regex(r'([a-z]+)="([^"]*)"', re.IGNORECASE)
_NEXT = lazy_regex(r'<([^>]+)>\s*;\s*rel="?next"?')


class _TokenReply(msgspec.Struct):
    token: str = ""
    """The token."""
    access_token: str = ""
    """The token, under its name in OAuth 2."""


class _TagsReply(msgspec.Struct):
    tags: list[str] | None = None
    """The tags of the page."""


class Registry:
    """One repository of a registry, with the token that it issued."""

    def __init__(
        self, client: HttpClient, origin: str, name: str, credentials: Credentials
    ) -> None:
        self._client = client
        self._origin = origin
        self._name = name
        self._credentials = credentials
        self._authorization = authorization_header(credentials)

    @property
    def display_url(self) -> str:
        """Return the address for messages and cache names."""
        return f"oci://{self._origin.partition('://')[2]}/{self._name}"

    async def get(self, path: str, *, accept: str = "*/*", limit: int) -> Download:
        """Download a path of the repository."""
        return await self.request(path, DownloadRequest(url="", accept=accept, limit=limit))

    async def request(self, path: str, request: DownloadRequest) -> Download:
        """Download a path; if the registry names a token service, get a token and try again."""
        url = path if path.startswith("http") else f"{self._origin}/v2/{self._name}/{path}"
        first_request = msgspec.structs.replace(
            request,
            url=url,
            authorization=self._authorization,
            accepted_statuses=frozenset({UNAUTHORIZED}),
        )
        download = await self._client.get(first_request)
        if download.status != UNAUTHORIZED:
            return download
        self._authorization = await self._login(download.headers.get("www-authenticate", ""))
        return await self._client.get(
            msgspec.structs.replace(
                first_request, authorization=self._authorization, accepted_statuses=frozenset()
            )
        )

    async def list_tags(self) -> list[str]:
        """Return all tags, page by page."""
        tags: list[str] = []
        path = "tags/list?n=1000"
        for _ in range(MAX_PAGES):
            download = await self.get(path, limit=16 * 1024 * 1024)
            tags += self._decode(download.body, _TagsReply).tags or []
            next_link = _NEXT.search(download.headers.get("link", ""))
            if next_link is None:
                return tags
            path = urljoin(f"{self._origin}/v2/{self._name}/tags/list", next_link[1])
            if url_origin(path) != self._origin:
                break
        problem = "the list of tags does not end, or continues on another server"
        raise SourceError("source.oci.tags", problem, location=Location(self.display_url))

    async def _login(self, challenge: str) -> str:
        scheme, _, rest = challenge.partition(" ")
        parameters = dict(_PARAMETER.findall(rest))
        realm = parameters.get("realm", "")
        # A token service may have another host, but then it must use TLS.
        is_trusted = realm.startswith("https://") or url_origin(realm) == self._origin
        if scheme.lower() != "bearer" or not is_trusted:
            return authorization_header(self._credentials)
        scope = parameters.get("scope") or f"repository:{self._name}:pull"
        query = {"service": parameters.get("service", ""), "scope": scope}
        url = realm + ("&" if "?" in realm else "?") + urlencode(query)
        download = await self._client.get(
            DownloadRequest(url=url, authorization=authorization_header(self._credentials))
        )
        token = self._decode(download.body, _TokenReply)
        return f"Bearer {token.token or token.access_token}"

    def _decode(self, body: bytes, reply_type: type[ReplyT]) -> ReplyT:
        try:
            return msgspec.json.decode(body, type=reply_type)
        except (msgspec.MsgspecError, RecursionError) as error:
            problem = "cannot parse the response of the registry"
            raise SourceError(
                "source.oci.answer", problem, location=Location(self.display_url)
            ) from error


async def filter_tags(expression: str, tags: Sequence[str]) -> list[str]:
    """Return the tags in which the regular expression matches."""
    command = Command(
        argv=(sys.executable, "-I", "-S", "-c", FILTER_SCRIPT),
        stdin=msgspec.json.encode([expression, tags]),
        accepted_codes=frozenset({0, INVALID_EXPRESSION}),
    )
    try:
        result = await run(command, limits=Limits(time=FILTER_TIMEOUT))
    except ProcessError as error:
        raise _filter_error(expression, "takes too long") from error
    if result.exit_code:
        raise _filter_error(expression, "is not a regular expression")
    return msgspec.json.decode(result.stdout, type=list[str])


def _filter_error(expression: str, reason: str) -> SourceError:
    return SourceError("source.oci.filter", f"the filter `{sanitize(expression)}` {reason}")

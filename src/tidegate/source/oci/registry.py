"""Speak with one repository of an OCI registry, and get a token for it when it wants one.

Tags are picked by a stranger's regular expression in a process that can be ended: Python's can be
made to run for ever, and both the expression and the tags are foreign.
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

MOST_PAGES = 100
PATIENCE = Ms(5 * SECOND)
NOT_AN_EXPRESSION = 3
SCRIPT = f"""
import json, re, sys
text, tags = json.load(sys.stdin)
try:
    shape = re.compile(text)
except re.error:
    sys.exit({NOT_AN_EXPRESSION})
json.dump([tag for tag in tags if shape.search(tag)], sys.stdout)
"""
Shape = TypeVar("Shape")
_PARAMETER = lazy_regex(r'([a-z]+)="([^"]*)"', re.IGNORECASE)
_NEXT = lazy_regex(r'<([^>]+)>\s*;\s*rel="?next"?')


class _Token(msgspec.Struct):
    token: str = ""
    access_token: str = ""


class _Tags(msgspec.Struct):
    tags: list[str] | None = None


class Registry:
    """One repository: its address, and the token it gave us."""

    def __init__(self, web: HttpClient, origin: str, name: str, credentials: Credentials) -> None:
        self._web = web
        self._origin = origin
        self._name = name
        self._credentials = credentials
        self._secret = authorization_header(credentials)

    @property
    def shown(self) -> str:
        return f"oci://{self._origin.partition('://')[2]}/{self._name}"

    async def get(self, path: str, *, accept: str = "*/*", limit: int) -> Download:
        return await self.send(path, DownloadRequest(url="", accept=accept, limit=limit))

    async def send(self, path: str, ask: DownloadRequest) -> Download:
        """Ask; and once more with a token, if the registry says where to get one."""
        url = path if path.startswith("http") else f"{self._origin}/v2/{self._name}/{path}"
        first = msgspec.structs.replace(
            ask, url=url, authorization=self._secret, accepts=frozenset({UNAUTHORIZED})
        )
        got = await self._web.get(first)
        if got.status != UNAUTHORIZED:
            return got
        self._secret = await self._login(got.headers.get("www-authenticate", ""))
        return await self._web.get(
            msgspec.structs.replace(first, authorization=self._secret, accepts=frozenset())
        )

    async def tags(self) -> list[str]:
        """All tags, page after page."""
        found: list[str] = []
        path = "tags/list?n=1000"
        for _ in range(MOST_PAGES):
            got = await self.get(path, limit=16 * 1024 * 1024)
            found += self._decode(got.body, _Tags).tags or []
            following = _NEXT.search(got.headers.get("link", ""))
            if following is None:
                return found
            path = urljoin(f"{self._origin}/v2/{self._name}/tags/list", following[1])
            if url_origin(path) != self._origin:
                break
        problem = "the list of tags has no end, or goes on elsewhere"
        raise SourceError("source.oci.tags", problem, location=Location(self.shown))

    async def _login(self, challenge: str) -> str:
        scheme, _, rest = challenge.partition(" ")
        asked = dict(_PARAMETER.findall(rest))
        realm = asked.get("realm", "")
        # A registry may send us elsewhere for a token, but not to a place without TLS.
        may_ask = realm.startswith("https://") or url_origin(realm) == self._origin
        if scheme.lower() != "bearer" or not may_ask:
            return authorization_header(self._credentials)
        scope = asked.get("scope") or f"repository:{self._name}:pull"
        query = {"service": asked.get("service", ""), "scope": scope}
        url = realm + ("&" if "?" in realm else "?") + urlencode(query)
        got = await self._web.get(
            DownloadRequest(url=url, authorization=authorization_header(self._credentials))
        )
        token = self._decode(got.body, _Token)
        return f"Bearer {token.token or token.access_token}"

    def _decode(self, body: bytes, shape: type[Shape]) -> Shape:
        try:
            return msgspec.json.decode(body, type=shape)
        except (msgspec.MsgspecError, RecursionError) as error:
            problem = "what the registry says cannot be read"
            raise SourceError(
                "source.oci.answer", problem, location=Location(self.shown)
            ) from error


async def filter_tags(text: str, tags: Sequence[str]) -> list[str]:
    """The tags in which the expression is found."""
    command = Command(
        argv=(sys.executable, "-I", "-S", "-c", SCRIPT),
        stdin=msgspec.json.encode([text, tags]),
        accepted_codes=frozenset({0, NOT_AN_EXPRESSION}),
    )
    try:
        ran = await run(command, limits=Limits(time=PATIENCE))
    except ProcessError as error:
        raise _unusable(text, "takes too long") from error
    if ran.exit_code:
        raise _unusable(text, "is not a regular expression")
    return msgspec.json.decode(ran.stdout, type=list[str])


def _unusable(text: str, reason: str) -> SourceError:
    return SourceError("source.oci.filter", f"the filter `{sanitize(text)}` {reason}")

"""Ask HTTP servers for files: bounded, checked, and with credentials for the right host only."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import msgspec

from tidegate.errors import Location, SourceError, sanitize
from tidegate.model.times import SECOND
from tidegate.model.units.source import Credentials
from tidegate.source.cache import CachedTree
from tidegate.source.credentials import authorization_header
from tidegate.source.options import FetchOptions, offline_error
from tidegate.source.tree import MIB

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

FILE_NAME = "file"
"""What a file is called in a tree of its own."""
CHUNK = 64 * 1024
MOST_REDIRECTS = 5
LARGEST_TEXT = 64 * MIB
REDIRECTS = frozenset({301, 302, 303, 307, 308})
UNAUTHORIZED, FORBIDDEN, MISSING = 401, 403, 404


class DownloadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One file to ask for. With `into` it is written there, else it is given back.

    `authorization` is sent to the host of `url`, and to others only with `shares`; `signed` are the
    headers that belong to it.
    """

    url: str
    accept: str = "*/*"
    authorization: str = ""
    signed: tuple[tuple[str, str], ...] = ()
    shares: bool = False
    limit: int = LARGEST_TEXT
    into: Path | None = None
    accepts: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        return f"WebAsk({self.url})"


class Download(msgspec.Struct, frozen=True):
    """An answer, with the digest of what was received."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    sha256: str


class HttpClient(msgspec.Struct, frozen=True):
    """Connections that last as long as one fetch."""

    session: ClientSession

    async def get(self, ask: DownloadRequest) -> Download:
        """Follow redirects to the file; anything but success is an error."""
        from tidegate.external.http_client import aiohttp  # noqa: PLC0415  (a local source must not pay)

        try:
            return await self._follow(ask)
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError) as error:
            raise _server_error("source.http.untrusted", ask.url, error) from error
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise _server_error("source.http.unreachable", ask.url, error) from error

    async def _follow(self, ask: DownloadRequest) -> Download:
        url, secret = ask.url, ask.authorization
        for _ in range(MOST_REDIRECTS + 1):
            check_http_url(url)
            headers = {"Accept": ask.accept, "Accept-Encoding": "identity"}
            if secret:
                headers |= {"Authorization": secret, **dict(ask.signed)}
            async with self.session.get(url, headers=headers, allow_redirects=False) as reply:
                if reply.status not in REDIRECTS or "Location" not in reply.headers:
                    return await _receive(reply, ask)
                following = urljoin(url, reply.headers["Location"])
            if url_origin(following) != url_origin(url) and not ask.shares:
                secret = ""
            if url.startswith("https:") and not following.startswith("https:"):
                problem = "the server redirects to an address without TLS"
                raise SourceError(
                    "source.http.redirect", problem, location=Location(redact_url(url))
                )
            url = following
        problem = f"there are more than {MOST_REDIRECTS} redirects"
        raise SourceError("source.http.redirect", problem, location=Location(redact_url(ask.url)))


@asynccontextmanager
async def open_http_client(
    access: FetchOptions, credentials: Credentials
) -> AsyncIterator[HttpClient]:
    from tidegate.external.http_client import aiohttp  # noqa: PLC0415  (as above)

    patience = access.patience / SECOND
    timeout = aiohttp.ClientTimeout(total=patience, sock_connect=min(30, patience))
    connector = aiohttp.TCPConnector(ssl=_tls(credentials))
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, trust_env=True, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        yield HttpClient(session)


def url_origin(url: str) -> str:
    """Scheme, host and port, as credentials are bound to them."""
    parts = urlsplit(url)
    usual = {"https": 443, "http": 80}.get(parts.scheme)
    host = (parts.hostname or "").lower()
    port = "" if parts.port in (None, usual) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def check_http_url(url: str) -> None:
    """Refuse what is not plainly an address of a web server, or has a password in it."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable()
        _ = parts.port
    except ValueError:
        fits = False
        parts = urlsplit("")
    if not fits:
        raise SourceError(
            "source.url",
            f"`{redact_url(url)}` is not an address of a web server",
            hint="write it as `https://host/path`",
        )
    if parts.password is not None:
        problem = f"`{redact_url(url)}` is written with a password in it"
        raise SourceError("source.url.password", problem, hint="give it as a Secret instead")


def redact_url(url: str) -> str:
    """An address for people: signed links have their secret behind the question mark."""
    bare = url.partition("?")[0]
    scheme, split, rest = bare.partition("://")
    host, slash, path = rest.partition("/")
    return sanitize(f"{scheme}{split}{host.rpartition('@')[2]}{slash}{path}")


async def _receive(reply: ClientResponse, ask: DownloadRequest) -> Download:
    if not (reply.ok or reply.status in ask.accepts):
        raise _refusal(reply.status, ask.url)
    digest, size, kept = hashlib.sha256(), 0, bytearray()
    target = ask.into.open("wb") if ask.into and reply.ok else None
    try:
        async for piece in reply.content.iter_chunked(CHUNK):
            size += len(piece)
            if size > ask.limit:
                problem = f"the answer is larger than {ask.limit // MIB} MiB"
                raise SourceError(
                    "source.http.size", problem, location=Location(redact_url(ask.url))
                )
            digest.update(piece)
            if target is None:
                kept += piece
            else:
                target.write(piece)
    finally:
        if target is not None:
            target.close()
    headers = {name.lower(): value for name, value in reply.headers.items()}
    return Download(reply.status, headers, bytes(kept), f"sha256:{digest.hexdigest()}")


def _refusal(status: int, url: str) -> SourceError:
    where = Location(redact_url(url))
    if status in (UNAUTHORIZED, FORBIDDEN):
        return SourceError(
            "source.http.credentials",
            f"the server says no, with status {status}",
            location=where,
            hint="set TIDEGATE_TOKEN_<HOST>, or give a Secret",
        )
    if status == MISSING:
        return SourceError("source.http.missing", "there is no such file", location=where)
    return SourceError("source.http.failed", f"the server answers with {status}", location=where)


def _server_error(code: str, url: str, error: Exception) -> SourceError:
    told = _system_says(error)
    reason = sanitize(told or str(error)) or "no answer in time"
    return SourceError(
        code, f"the server cannot be asked: {reason}", location=Location(redact_url(url))
    )


def _system_says(error: Exception) -> str:
    """Why there is no connection, without the address that it is told with."""
    from tidegate.external.http_client import aiohttp  # noqa: PLC0415  (as above)

    if not isinstance(error, aiohttp.ClientConnectorError) or isinstance(
        error, aiohttp.ClientSSLError
    ):
        return ""
    return error.os_error.strerror or ""


def _tls(credentials: Credentials) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=credentials.ca_certificate or None)
        if credentials.certificate and credentials.key is not None:
            with tempfile.NamedTemporaryFile("w", prefix="tidegate-") as pair:
                pair.write(f"{credentials.certificate}\n{credentials.key.reveal()}\n")
                pair.flush()
                context.load_cert_chain(pair.name)
    except (ssl.SSLError, ValueError) as error:
        problem = "the certificate, its key or the certificate authority cannot be used"
        raise SourceError("source.certificate", problem) from error
    return context


async def fetch_file(url: str, access: FetchOptions) -> CachedTree:
    """A tree of one file. It may be another one tomorrow, so it is asked for each time."""
    check_http_url(url)
    name = f"file {url}"
    async with access.cache.turn(name):
        if access.offline:
            known = access.cache.find(name)
            if known is None:
                raise offline_error(redact_url(url))
            return known
        credentials = access.keyring.find(url_origin(url))
        async with open_http_client(access, credentials) as web:
            got = await web.get(
                DownloadRequest(url=url, authorization=authorization_header(credentials))
            )

        async def fill(place: Path) -> None:
            await asyncio.to_thread((place / FILE_NAME).write_bytes, got.body)

        return await access.cache.keep(name, fill, shown=redact_url(url))

"""HTTP downloads: limited in size, checked, and with credentials only for their host."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
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
"""Name of the file in a tree of one file."""
CHUNK = 64 * 1024
MAX_REDIRECTS = 5
MAX_TEXT_SIZE = 64 * MIB
REDIRECTS = frozenset({301, 302, 303, 307, 308})
UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 401, 403, 404


class DownloadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP download."""

    url: str
    """The address."""
    accept: str = "*/*"
    """The `Accept` header."""
    authorization: str = ""
    """Value of the `Authorization` header; only for the host of `url`."""
    signed_headers: tuple[tuple[str, str], ...] = ()
    """Headers that the authorization covers."""
    shares_credentials: bool = False
    """Whether other hosts get the authorization as well."""
    limit: int = MAX_TEXT_SIZE
    """Bytes that the response may have."""
    target: Path | None = None
    """File to write to; without one, the content is returned."""
    accepted_statuses: frozenset[int] = frozenset()
    """Error statuses that are returned instead of raised."""

    def __repr__(self) -> str:
        return f"DownloadRequest({self.url})"


class Download(msgspec.Struct, frozen=True):
    """A response, with the digest of its content."""

    status: int
    """HTTP status."""
    headers: Mapping[str, str]
    """The response headers."""
    body: bytes
    """The body."""
    sha256: str
    """The SHA-256 digest of the body."""


class HttpClient(msgspec.Struct, frozen=True):
    """HTTP connections of one fetch."""

    session: ClientSession
    """The session of aiohttp."""

    async def get(self, request: DownloadRequest) -> Download:
        """Follow redirects and return the response.

        Raises SourceError for an error status that is not accepted.
        """
        from tidegate.external.http_client import aiohttp  # noqa: PLC0415  (slow; local sources need none)

        try:
            return await self._follow(request)
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError) as error:
            raise _server_error("source.http.untrusted", request.url, error) from error
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise _server_error("source.http.unreachable", request.url, error) from error

    async def _follow(self, request: DownloadRequest) -> Download:
        url, authorization = request.url, request.authorization
        for _ in range(MAX_REDIRECTS + 1):
            check_http_url(url)
            headers = {"Accept": request.accept, "Accept-Encoding": "identity"}
            if authorization:
                headers |= {"Authorization": authorization, **dict(request.signed_headers)}
            async with self.session.get(url, headers=headers, allow_redirects=False) as response:
                if response.status not in REDIRECTS or "Location" not in response.headers:
                    return await _read_response(response, request)
                redirect = urljoin(url, response.headers["Location"])
            if url_origin(redirect) != url_origin(url) and not request.shares_credentials:
                authorization = ""
            if url.startswith("https:") and not redirect.startswith("https:"):
                problem = "the server redirects to a URL without TLS"
                raise SourceError(
                    "source.http.redirect", problem, location=Location(redact_url(url))
                )
            url = redirect
        problem = f"more than {MAX_REDIRECTS} redirects"
        raise SourceError(
            "source.http.redirect", problem, location=Location(redact_url(request.url))
        )


@asynccontextmanager
async def open_http_client(
    options: FetchOptions, credentials: Credentials
) -> AsyncIterator[HttpClient]:
    """Open an HTTP client; it is closed at the end of the block."""
    from tidegate.external.http_client import aiohttp  # noqa: PLC0415  (as above)

    seconds = options.timeout / SECOND
    timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=min(30, seconds))
    connector = aiohttp.TCPConnector(ssl=_tls_context(credentials))
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, trust_env=True, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        yield HttpClient(session)


def url_origin(url: str) -> str:
    """Return the scheme, host and port of an address; credentials are bound to them."""
    parts = urlsplit(url)
    default_port = {"https": 443, "http": 80}.get(parts.scheme)
    host = (parts.hostname or "").lower()
    port = "" if parts.port in (None, default_port) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def check_http_url(url: str) -> None:
    """Raise SourceError if a text is no HTTP address, or contains a password."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable()
        _ = parts.port
    except ValueError:
        is_valid = False
        parts = urlsplit("")
    if not is_valid:
        raise SourceError(
            "source.url",
            f"`{redact_url(url)}` is not an HTTP URL",
            hint="write it as `https://host/path`",
        )
    if parts.password is not None:
        problem = f"`{redact_url(url)}` contains a password"
        raise SourceError("source.url.password", problem, hint="use a Secret instead")


def redact_url(url: str) -> str:
    """Return an address without user and query, to be shown: signed links have secrets in the
    query.
    """
    without_query = url.partition("?")[0]
    scheme, separator, rest = without_query.partition("://")
    host, slash, path = rest.partition("/")
    return sanitize(f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}")


async def _read_response(response: ClientResponse, request: DownloadRequest) -> Download:
    if not (response.ok or response.status in request.accepted_statuses):
        raise _status_error(response.status, request.url)
    digest, size, content = hashlib.sha256(), 0, bytearray()
    target = request.target.open("wb") if request.target and response.ok else None
    try:
        async for chunk in response.content.iter_chunked(CHUNK):
            size += len(chunk)
            if size > request.limit:
                problem = f"the response is larger than {request.limit // MIB} MiB"
                raise SourceError(
                    "source.http.size", problem, location=Location(redact_url(request.url))
                )
            digest.update(chunk)
            if target is None:
                content += chunk
            else:
                target.write(chunk)
    finally:
        if target is not None:
            target.close()
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Download(response.status, headers, bytes(content), f"sha256:{digest.hexdigest()}")


def _status_error(status: int, url: str) -> SourceError:
    location = Location(redact_url(url))
    if status in (UNAUTHORIZED, FORBIDDEN):
        return SourceError(
            "source.http.credentials",
            f"the server refused access with status {status}",
            location=location,
            hint="set TIDEGATE_TOKEN_<HOST>, or provide a Secret",
        )
    if status == NOT_FOUND:
        return SourceError("source.http.missing", "file not found", location=location)
    return SourceError(
        "source.http.failed", f"the server responded with status {status}", location=location
    )


def _server_error(code: str, url: str, error: Exception) -> SourceError:
    system_error = _connection_error(error)
    reason = sanitize(system_error or str(error)) or "timed out"
    return SourceError(
        code, f"cannot reach the server: {reason}", location=Location(redact_url(url))
    )


def _connection_error(error: Exception) -> str:
    """Return the system's reason for a failed connection, without the address; empty if unknown."""
    from tidegate.external.http_client import aiohttp  # noqa: PLC0415  (as above)

    if not isinstance(error, aiohttp.ClientConnectorError) or isinstance(
        error, aiohttp.ClientSSLError
    ):
        return ""
    return error.os_error.strerror or ""


@cache
def _tls_context_for(ca_certificate: str) -> ssl.SSLContext:
    """Return the context for a certificate authority; to read those of the system takes long."""
    return ssl.create_default_context(cadata=ca_certificate or None)


def _tls_context(credentials: Credentials) -> ssl.SSLContext:
    try:
        if not credentials.certificate:
            return _tls_context_for(credentials.ca_certificate)
        context = ssl.create_default_context(cadata=credentials.ca_certificate or None)
        if credentials.certificate and credentials.key is not None:
            with tempfile.NamedTemporaryFile("w", prefix="tidegate-") as pem_file:
                pem_file.write(f"{credentials.certificate}\n{credentials.key.reveal()}\n")
                pem_file.flush()
                context.load_cert_chain(pem_file.name)
    except (ssl.SSLError, ValueError) as error:
        problem = "the certificate, its key or the certificate authority is invalid"
        raise SourceError("source.certificate", problem) from error
    return context


async def fetch_file(url: str, options: FetchOptions) -> CachedTree:
    """Fetch one file as a tree. It may change, so it is fetched each time."""
    check_http_url(url)
    name = f"file {url}"
    async with options.cache.lock(name):
        if options.offline:
            cached = options.cache.find(name)
            if cached is None:
                raise offline_error(redact_url(url))
            return cached
        credentials = options.credentials.find(url_origin(url))
        async with open_http_client(options, credentials) as client:
            download = await client.get(
                DownloadRequest(url=url, authorization=authorization_header(credentials))
            )

        async def fill(directory: Path) -> None:
            await asyncio.to_thread((directory / FILE_NAME).write_bytes, download.body)

        return await options.cache.store(name, fill, source_name=redact_url(url))

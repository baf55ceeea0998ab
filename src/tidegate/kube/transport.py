"""HTTP to one API server: one session, every request sent once.

Retrying is the courier's. The one exception is a credential that the server no longer takes: it is
renewed and the request sent again, since a request that is not authenticated was not looked at.
"""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

import msgspec
from multidict import CIMultiDict
from yarl import URL

from tidegate.errors import LateError, TidegateError
from tidegate.external.http_client import aiohttp
from tidegate.kube.access.context import ClientCertificate, KubeTarget
from tidegate.kube.credentials import Auth, auth_source
from tidegate.kube.replies import UNAUTHORIZED, Reply
from tidegate.kube.requests import HttpRequest
from tidegate.kube.tls import expired, make_context
from tidegate.model.identity import Identity
from tidegate.world.facts import Loss, Lost, Sent

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ConnectionKey

LOSSES: tuple[tuple[type[Exception], Sent, Loss], ...] = (
    (LateError, Sent.NO, Loss.HANGING),
    (TidegateError, Sent.NO, Loss.CREDENTIALS),
    (aiohttp.ClientSSLError, Sent.NO, Loss.UNTRUSTED),
    (aiohttp.ServerFingerprintMismatch, Sent.NO, Loss.UNTRUSTED),
    (aiohttp.ClientProxyConnectionError, Sent.NO, Loss.PROXY),
    (aiohttp.ClientHttpProxyError, Sent.NO, Loss.PROXY),
    (aiohttp.ClientConnectorDNSError, Sent.NO, Loss.UNKNOWN_HOST),
    (aiohttp.ClientConnectorError, Sent.NO, Loss.REFUSED),
    (aiohttp.ConnectionTimeoutError, Sent.NO, Loss.TIMEOUT),
    (TimeoutError, Sent.MAYBE, Loss.TIMEOUT),
    (Exception, Sent.MAYBE, Loss.DISCONNECTED),
)
"""The first that fits. Only what broke before a connection stood was certainly not sent."""
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 65.0
"""An API server gives up on its own after 60 seconds, and then says so."""

SHORT = aiohttp.ClientTimeout(total=ANSWER_SECONDS, sock_connect=CONNECT_SECONDS)
LARGE = 2**20
"""Bytes that would keep everything else waiting if they were sent in one piece."""
ENDLESS = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
MISHAPS = (aiohttp.ClientError, TimeoutError, OSError, TidegateError)
USER_AGENT = "tidegate"
LARGEST = 256 * 1024 * 1024
"""Bytes of one answer, unpacked: a page of 500 large objects fits many times."""
TOO_LARGE = 413


def loss_of(error: Exception) -> Lost:
    """What the caller is told of an exchange that broke."""
    sent, reason = next((sent, loss) for kind, sent, loss in LOSSES if isinstance(error, kind))
    hint = error.hint if isinstance(error, TidegateError) else ""
    return Lost(sent, reason, _words(error), hint)


def _outgoing(body: bytes) -> io.BytesIO | bytes | None:
    return io.BytesIO(body) if len(body) > LARGE else body or None


def _words(error: Exception) -> str:
    match error:
        case TidegateError():
            return error.problem
        case aiohttp.ClientConnectorCertificateError():
            return str(error.certificate_error)
        case _:
            return str(error) or type(error).__name__


class AbruptConnector(aiohttp.TCPConnector):
    """Connections that are hung up at once where they cannot be used again.

    A goodbye over TLS in good order waits for the other side, which may be silent or go on talking.
    Until then the connection stays open, perhaps longer than whoever asked.
    """

    def _release(
        self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False
    ) -> None:
        if (should_close or protocol.should_close) and protocol.transport is not None:
            protocol.transport.abort()
        super()._release(key, protocol, should_close=should_close)


class Flight(msgspec.Struct):
    """One call on its way: with whose rights, and whether it has left."""

    identity: Identity | None = None
    sent: bool = False


class Transport:
    """One session to one API server, renewed when the client certificate is."""

    def __init__(self, target: KubeTarget) -> None:
        self._target = target
        self._base = target.server.rstrip("/")
        self._credentials = auth_source(target)
        self._certificate: ClientCertificate | None = None
        self._session: aiohttp.ClientSession | None = None
        self._retired: list[aiohttp.ClientSession] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in [self._session, *self._retired]:
            if session is not None:
                await session.close()

    async def send(self, request: HttpRequest, flight: Flight) -> Reply | Lost:
        """Send a request and read the whole reply."""
        try:
            async with self._exchange(request, flight, SHORT) as response:
                return await _read(response)
        except MISHAPS as error:
            return loss_of(error)

    async def stream(
        self, request: HttpRequest, flight: Flight
    ) -> AsyncGenerator[bytes | Reply | Lost]:
        """Send a request and hand on its reply as it comes; a refusal or a loss comes last."""
        try:
            async with self._exchange(request, flight, ENDLESS) as response:
                if not response.ok:
                    yield await _read(response)
                    return
                async for chunk in response.content.iter_any():
                    yield chunk
        except MISHAPS as error:
            yield loss_of(error)

    @asynccontextmanager
    async def _exchange(
        self, request: HttpRequest, flight: Flight, limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        auth = await self._credentials.current()
        response = await self._request(request, flight, auth, limits)
        if response.status == UNAUTHORIZED:
            self._complain_of_age(auth)
            newer = await self._credentials.refresh(auth)
            if newer is not auth:
                response.release()
                response = await self._request(request, flight, newer, limits)
        try:
            yield response
        except BaseException:
            response.close()
            raise
        finally:
            response.release()

    def _complain_of_age(self, auth: Auth) -> None:
        """The server says only that it does not know us; the certificate may tell why."""
        if auth.certificate is not None:
            error = expired(auth.certificate, user=self._target.user)
            if error is not None:
                raise error

    async def _request(
        self, request: HttpRequest, flight: Flight, auth: Auth, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        session = self._session_for(auth.certificate)
        headers = CIMultiDict(auth.headers(flight.identity))
        headers["Accept"] = request.accept
        if request.content_type:
            headers["Content-Type"] = request.content_type
        flight.sent = True
        return await session.request(
            request.method,
            URL(self._base + request.path, encoded=True),
            data=_outgoing(request.body),
            headers=headers,
            timeout=limits,
            allow_redirects=False,
            proxy=self._target.proxy.reveal() if self._target.proxy else None,
            server_hostname=self._target.tls_server_name or None,
        )

    def _session_for(self, certificate: ClientCertificate | None) -> aiohttp.ClientSession:
        """The session whose connections show this certificate; streams of an old one go on."""
        if self._session is not None and self._certificate == certificate:
            return self._session
        if self._session is not None:
            self._retired.append(self._session)
        connector = AbruptConnector(ssl=make_context(self._target, certificate), limit=0)
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": USER_AGENT},
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        # aiohttp sends GET, PUT and DELETE a second time when a kept connection turns out dead.
        # Whether that is safe is the courier's to know.
        self._session._retry_connection = False  # noqa: SLF001
        self._certificate = certificate
        return self._session


async def _read(response: aiohttp.ClientResponse, limit: int = LARGEST) -> Reply:
    """The whole reply, unpacked; of one that goes on and on, that it does."""
    warnings = response.headers.getall("Warning", ())
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > limit:
            response.close()
            return Reply(TOO_LARGE, f"the answer is larger than {limit // 1024**2} MiB".encode())
    return Reply(
        response.status,
        bytes(body),
        response.headers.get("Retry-After", ""),
        tuple(_warning_text(warning) for warning in warnings),
    )


def _warning_text(header: str) -> str:
    """`299 - "text"`: the text, with its quotes undone."""
    _, _, quoted = header.partition('"')
    return quoted.removesuffix('"').replace('\\"', '"').replace("\\\\", "\\")

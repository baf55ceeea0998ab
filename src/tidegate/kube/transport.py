"""HTTP to one API server: one session, each request sent once.

The `RequestScheduler` retries. The only exception is an expired credential: it is
renewed and the request is sent again, since a server does not process an unauthenticated request.
"""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

import msgspec
from multidict import CIMultiDict
from yarl import URL

from tidegate.errors import TidegateError, WaitTimeoutError
from tidegate.external.http_client import aiohttp
from tidegate.kube.access.context import ClientCertificate, KubeTarget
from tidegate.kube.credentials import Auth, make_auth_source
from tidegate.kube.http_requests import HttpRequest
from tidegate.kube.http_responses import UNAUTHORIZED, HttpResponse
from tidegate.kube.tls import expiry_error, make_context
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.world.messages import Delivery, LossReason, NoResponse

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ConnectionKey

LOSS_BY_ERROR: tuple[tuple[type[Exception], Delivery, LossReason], ...] = (
    (WaitTimeoutError, Delivery.NOT_SENT, LossReason.CREDENTIALS_TIMEOUT),
    (TidegateError, Delivery.NOT_SENT, LossReason.CREDENTIALS),
    (aiohttp.ClientSSLError, Delivery.NOT_SENT, LossReason.UNTRUSTED),
    (aiohttp.ServerFingerprintMismatch, Delivery.NOT_SENT, LossReason.UNTRUSTED),
    (aiohttp.ClientProxyConnectionError, Delivery.NOT_SENT, LossReason.PROXY),
    (aiohttp.ClientHttpProxyError, Delivery.NOT_SENT, LossReason.PROXY),
    (aiohttp.ClientConnectorDNSError, Delivery.NOT_SENT, LossReason.UNKNOWN_HOST),
    (aiohttp.ClientConnectorError, Delivery.NOT_SENT, LossReason.CONNECTION_REFUSED),
    (aiohttp.ConnectionTimeoutError, Delivery.NOT_SENT, LossReason.TIMEOUT),
    (TimeoutError, Delivery.MAYBE_SENT, LossReason.TIMEOUT),
    (Exception, Delivery.MAYBE_SENT, LossReason.DISCONNECTED),
)
"""The first match counts. Only errors before the connection was open mean "certainly not sent"."""
CONNECT_SECONDS = 10.0
RESPONSE_SECONDS = 65.0
"""An API server itself times out after 60 seconds, and reports that.

Like `RequestTimeout` in `pkg/server/config.go` of k8s.io/apiserver 0.36.4.
"""
REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=RESPONSE_SECONDS, sock_connect=CONNECT_SECONDS)
LARGE_BODY = 2**20
"""Bytes that would block other requests if they were sent in one piece."""
STREAM_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
CONNECTION_ERRORS = (aiohttp.ClientError, TimeoutError, OSError, TidegateError)
USER_AGENT = "tidegate"
MAX_RESPONSE_SIZE = 256 * 1024 * 1024
"""Maximum bytes of one decompressed response: a page of 500 large objects fits many times."""
TOO_LARGE = 413


def no_response_from_error(error: Exception) -> NoResponse:
    """Return the outcome for a request that failed without a response."""
    delivery, reason = next(
        (delivery, loss_reason)
        for error_type, delivery, loss_reason in LOSS_BY_ERROR
        if isinstance(error, error_type)
    )
    hint = error.hint if isinstance(error, TidegateError) else ""
    return NoResponse(delivery, reason, _error_message(error), hint)


def _request_data(body: bytes) -> io.BytesIO | bytes | None:
    return io.BytesIO(body) if len(body) > LARGE_BODY else body or None


def _error_message(error: Exception) -> str:
    match error:
        case TidegateError():
            return error.problem
        case aiohttp.ClientConnectorCertificateError():
            return str(error.certificate_error)
        case _:
            return str(error) or type(error).__name__


class AbortingConnector(aiohttp.TCPConnector):
    """A connector that aborts connections which cannot be reused.

    An orderly TLS shutdown waits for the other side, which may be silent or continue to send. The
    connection would stay open, perhaps longer than its caller.
    """

    def _release(
        self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False
    ) -> None:
        if (should_close or protocol.should_close) and protocol.transport is not None:
            protocol.transport.abort()
        super()._release(key, protocol, should_close=should_close)


class InFlightRequest(msgspec.Struct):
    """A request that is being sent."""

    identity: ImpersonatedUser | None = None
    """User to impersonate."""
    sent: bool = False
    """Whether the request may have reached the server."""


class Transport:
    """One HTTP session to one API server, replaced when the client certificate changes."""

    def __init__(self, target: KubeTarget) -> None:
        self._target = target
        self._base = target.server.rstrip("/")
        self._credentials = make_auth_source(target)
        self._certificate: ClientCertificate | None = None
        self._session: aiohttp.ClientSession | None = None
        self._retired: list[aiohttp.ClientSession] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in [self._session, *self._retired]:
            if session is not None:
                await session.close()

    async def send(
        self, request: HttpRequest, in_flight: InFlightRequest
    ) -> HttpResponse | NoResponse:
        """Send a request and read the complete response."""
        try:
            async with self._open_response(request, in_flight, REQUEST_TIMEOUT) as response:
                return await _read_response(response)
        except CONNECTION_ERRORS as error:
            return no_response_from_error(error)

    async def stream(
        self, request: HttpRequest, in_flight: InFlightRequest
    ) -> AsyncGenerator[bytes | HttpResponse | NoResponse]:
        """Send a request and yield the response in chunks. An error response or a failure comes
        last.
        """
        try:
            async with self._open_response(request, in_flight, STREAM_TIMEOUT) as response:
                if not response.ok:
                    yield await _read_response(response)
                    return
                async for chunk in response.content.iter_any():
                    yield chunk
        except CONNECTION_ERRORS as error:
            yield no_response_from_error(error)

    @asynccontextmanager
    async def _open_response(
        self, request: HttpRequest, in_flight: InFlightRequest, timeout: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        auth = await self._credentials.current()
        response = await self._request(request, in_flight, auth, timeout)
        if response.status == UNAUTHORIZED:
            self._raise_if_expired(auth)
            newer = await self._credentials.refresh(auth)
            if newer is not auth:
                response.release()
                response = await self._request(request, in_flight, newer, timeout)
        try:
            yield response
        except BaseException:
            response.close()
            raise
        finally:
            response.release()

    def _raise_if_expired(self, auth: Auth) -> None:
        """Raise if the client certificate has expired. The server only responds with 401."""
        if auth.certificate is not None:
            error = expiry_error(auth.certificate, user=self._target.user)
            if error is not None:
                raise error

    async def _request(
        self,
        request: HttpRequest,
        in_flight: InFlightRequest,
        auth: Auth,
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        session = self._session_for(auth.certificate)
        headers = CIMultiDict(auth.headers(in_flight.identity))
        headers["Accept"] = request.accept
        if request.content_type:
            headers["Content-Type"] = request.content_type
        in_flight.sent = True
        return await session.request(
            request.method,
            URL(self._base + request.path, encoded=True),
            data=_request_data(request.body),
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            proxy=self._target.proxy.reveal() if self._target.proxy else None,
            server_hostname=self._target.tls_server_name or None,
        )

    def _session_for(self, certificate: ClientCertificate | None) -> aiohttp.ClientSession:
        """Return the session for a client certificate. Streams of an old session continue."""
        if self._session is not None and self._certificate == certificate:
            return self._session
        if self._session is not None:
            self._retired.append(self._session)
        connector = AbortingConnector(ssl=make_context(self._target, certificate), limit=0)
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": USER_AGENT},
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        # aiohttp sends GET, PUT and DELETE a second time when a kept connection turns out dead.
        # Only the `RequestScheduler` knows whether that is safe.
        self._session._retry_connection = False  # noqa: SLF001
        self._certificate = certificate
        return self._session


async def _read_response(
    response: aiohttp.ClientResponse, limit: int = MAX_RESPONSE_SIZE
) -> HttpResponse:
    """Read the complete response. One that is too large is replaced by an error response."""
    warnings = response.headers.getall("Warning", ())
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit:
            response.close()
            return HttpResponse(
                TOO_LARGE, f"the response is larger than {limit // 1024**2} MiB".encode()
            )
    return HttpResponse(
        response.status,
        bytes(body),
        response.headers.get("Retry-After", ""),
        tuple(_warning_text(warning) for warning in warnings),
    )


def _warning_text(header: str) -> str:
    """Return the text of a `Warning` header, `299 - "text"`, without its quotes."""
    _, _, quoted = header.partition('"')
    return quoted.removesuffix('"').replace('\\"', '"').replace("\\\\", "\\")

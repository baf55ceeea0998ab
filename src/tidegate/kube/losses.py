"""How an answer was lost, told from the exception: was the call sent, and whose fault is it?"""

from __future__ import annotations

import aiohttp

from tidegate.errors import TidegateError
from tidegate.world.facts import Loss, Lost, Sent

LOSSES: tuple[tuple[type[Exception], Sent, Loss], ...] = (
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


def loss_of(error: Exception) -> Lost:
    """What the caller is told of an exchange that broke."""
    sent, reason = next((sent, loss) for kind, sent, loss in LOSSES if isinstance(error, kind))
    hint = error.hint if isinstance(error, TidegateError) else ""
    return Lost(sent, reason, _words(error), hint)


def _words(error: Exception) -> str:
    match error:
        case TidegateError():
            return error.problem
        case aiohttp.ClientConnectorCertificateError():
            return str(error.certificate_error)
        case _:
            return str(error) or type(error).__name__

"""Exceptions for error outcomes, with the attempted action and a hint."""

from __future__ import annotations

from types import UnionType
from typing import NamedTuple

from tidegate.errors import ClusterError, Location, WaitTimeoutError, sanitize
from tidegate.world.messages import (
    AlreadyExists,
    Conflict,
    ErrorOutcome,
    Expired,
    Forbidden,
    Invalid,
    LossReason,
    NoResponse,
    NotFound,
    NotServed,
    Outcome,
    ServerError,
    TooManyRequests,
    is_error,
)


class ErrorInfo(NamedTuple):
    """Code and hint of an error."""

    code: str
    """Error code."""
    hint: str
    """Hint for the user."""


UNAUTHORIZED = 401
UNAUTHORIZED_INFO = ErrorInfo(
    "cluster.unauthorized", "sign in again, or choose another context or user"
)
OUTCOME_INFO: dict[type[ErrorOutcome], ErrorInfo] = {
    Conflict: ErrorInfo("cluster.conflict", "read the object again: another client changed it"),
    AlreadyExists: ErrorInfo(
        "cluster.exists", "choose another name, or change the existing object"
    ),
    Expired: ErrorInfo("cluster.expired", "list again"),
    ServerError: ErrorInfo("cluster.failed", "see the log of the API server"),
    Forbidden: ErrorInfo(
        "cluster.forbidden", "request the permission, or choose another context or user"
    ),
    Invalid: ErrorInfo("cluster.invalid", "correct the field"),
    NotFound: ErrorInfo("cluster.missing", "check name and namespace"),
    NotServed: ErrorInfo(
        "cluster.not-served", "install the CRD first, or check apiVersion and kind"
    ),
    TooManyRequests: ErrorInfo("cluster.throttled", "try again later"),
}
LOSS_INFO = {
    LossReason.CREDENTIALS: ErrorInfo(
        "cluster.credentials", "correct the credentials of this user"
    ),
    LossReason.DISCONNECTED: ErrorInfo(
        "cluster.disconnected", "check that this is the URL of an API server"
    ),
    LossReason.CREDENTIALS_TIMEOUT: ErrorInfo(
        "cluster.login-timeout", "run the plugin manually to see what it waits for"
    ),
    LossReason.DEADLINE_PASSED: ErrorInfo("cluster.timeout", "try again, or raise the timeout"),
    LossReason.PROXY: ErrorInfo("cluster.proxy", "check `proxy-url` of this cluster"),
    LossReason.CONNECTION_REFUSED: ErrorInfo(
        "cluster.unreachable", "check that the server is running and its URL is correct"
    ),
    LossReason.TIMEOUT: ErrorInfo(
        "cluster.timeout", "check that the server is reachable (VPN, firewall)"
    ),
    LossReason.UNKNOWN_HOST: ErrorInfo(
        "cluster.unknown-host", "check the server name, DNS and VPN"
    ),
    LossReason.UNTRUSTED: ErrorInfo(
        "cluster.untrusted", "check `certificate-authority` and `tls-server-name` of this cluster"
    ),
    LossReason.CANCELLED: ErrorInfo("cluster.timeout", "try again, or raise the timeout"),
}


def error_from_outcome(outcome: ErrorOutcome, action: str, *, location: Location) -> ClusterError:
    """Return the exception for an error outcome."""
    info = _error_info(outcome)
    is_timeout = (
        isinstance(outcome, NoResponse) and outcome.reason is LossReason.CREDENTIALS_TIMEOUT
    )
    return (WaitTimeoutError if is_timeout else ClusterError)(
        info.code, f"{action}: {sanitize(outcome.message)}", location=location, hint=info.hint
    )


def raise_for_error(
    outcome: Outcome | None,
    action: str,
    location: Location,
    *,
    ignored: type[ErrorOutcome] | UnionType | tuple[()] = (),
) -> None:
    """Raise the exception for an outcome that is an error, unless it is of an ignored type."""
    if outcome is not None and is_error(outcome) and not isinstance(outcome, ignored):
        raise error_from_outcome(outcome, action, location=location)


def _error_info(outcome: ErrorOutcome) -> ErrorInfo:
    match outcome:
        case NoResponse():
            default = LOSS_INFO[outcome.reason]
            return ErrorInfo(default.code, outcome.hint or default.hint)
        case ServerError(status=status) if status == UNAUTHORIZED:
            return UNAUTHORIZED_INFO
        case _:
            return OUTCOME_INFO[type(outcome)]
